//! Standard output, which may be full or gone: an error like any other, not a panic. And standard
//! error, of which nobody could be told.

use anyhow::{Context, Result};
use std::fmt::Display;
use std::io::{Write, stderr, stdout};

/// Writes `text`, all of it, now.
pub(super) fn say(text: &str) -> Result<()> {
    let mut output = stdout().lock();
    output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
        .context("cannot write to standard output")
}

/// Says on standard error what is wrong, in a line of its own. Where that cannot be, the exit code
/// has to do.
pub fn complain(what: impl Display) {
    let _ = writeln!(stderr(), "{what}");
}
