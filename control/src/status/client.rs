//! Asking for a document.

use super::document::Document;
use anyhow::{Context, Result, bail};
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest document taken, octets: some 100,000 connections.
const DOCUMENT_BYTES: u64 = 64 << 20;
/// How long a silence is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The text of the document from the first of `paths` at which an appliance answers.
///
/// # Errors
///
/// None does; the message says what is at each of them.
pub fn ask(paths: &[PathBuf]) -> Result<String> {
    let mut reasons = Vec::new();
    for path in paths {
        match ask_one(path) {
            Ok(text) => return Ok(text),
            Err(error) => reasons.push(format!("{}: {error:#}", path.display())),
        }
    }
    bail!("no appliance answers\n{}", reasons.join("\n"))
}

fn ask_one(path: &Path) -> Result<String> {
    let stream = match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("no socket there"),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            bail!("nobody listens there any more")
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            bail!("it is another user's: ask as that user, or as root")
        }
        other => other?,
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = String::new();
    stream
        .take(DOCUMENT_BYTES)
        .read_to_string(&mut text)
        .context("no whole document came")?;
    Ok(text)
}

/// Reads a document.
///
/// # Errors
///
/// The text is none: cut short, or of an appliance of another version.
pub fn parse(text: &str) -> Result<Document> {
    serde_json::from_str(text).context("not a status document of this version")
}
