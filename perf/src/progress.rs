//! One line about how far a run is; nothing where nobody looks at it.

use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

/// The line.
pub struct Progress {
    shown: bool,
    seconds: f64,
}

impl Progress {
    /// Of a run of that many seconds; shown on a terminal alone.
    #[must_use]
    pub fn new(seconds: f64) -> Self {
        Self {
            shown: stderr().is_terminal(),
            seconds,
        }
    }

    /// Says what is being done.
    pub fn say(&self, what: &str) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K{what} ...");
        }
    }

    /// Says how far the measurement is.
    pub fn at(&self, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64().min(self.seconds);
        self.say(&format!("measuring: {seconds:.1} of {:.1} s", self.seconds));
    }

    /// Leaves the line empty.
    pub fn clear(&self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
