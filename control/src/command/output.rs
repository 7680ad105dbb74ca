//! Standard output, which may be full or gone: an error like any other, not a panic.

use anyhow::{Context, Result};
use std::io::{Write, stdout};

/// Writes `text`, all of it, now.
pub(super) fn say(text: &str) -> Result<()> {
    let mut output = stdout().lock();
    output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
        .context("cannot write to standard output")
}
