//! A progress line on a terminal, and nothing where there is none.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// Says how far the self-test is.
pub struct Progress(ProgressBar);

impl Progress {
    /// For people looking on: on standard error, if standard output is a terminal.
    #[must_use]
    pub fn on_terminal() -> Self {
        match std::io::stdout().is_terminal() {
            true => Self::drawn(ProgressDrawTarget::stderr()),
            false => Self::silent(),
        }
    }

    /// For nobody.
    #[must_use]
    pub fn silent() -> Self {
        Self::drawn(ProgressDrawTarget::hidden())
    }

    fn drawn(target: ProgressDrawTarget) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let template = "{msg:28} {bar:30} {bytes:>11} of {total_bytes} {bytes_per_sec}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Work of `bytes` octets begins.
    pub(super) fn expect(&self, bytes: u64) {
        self.0.set_length(bytes);
    }

    /// Now at this.
    pub(super) fn at(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    /// So many octets more are done.
    pub(super) fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    /// All is done; the line goes away.
    pub(super) fn done(&self) {
        self.0.finish_and_clear();
    }
}
