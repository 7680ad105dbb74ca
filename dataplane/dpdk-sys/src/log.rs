//! DPDK's log: each line to whoever listens, and the last complaints kept for error messages.
//!
//! DPDK says why it fails in its log alone; what its calls return is one errno. So this module
//! stands in the way of its messages from the first one on. They come from any thread of DPDK,
//! one at a time (the C library's stream has a lock), and not always in whole lines.

use crate::ffi;
use std::collections::VecDeque;
use std::ffi::c_char;
use std::panic::catch_unwind;
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

/// Complaints that are kept.
const KEPT: usize = 4;
/// The longest line that is kept or passed on, octets.
const LINE_MAX: usize = 512;

/// How bad a message is: DPDK's eight levels in four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// `RTE_LOG_ERR` and worse.
    Error,
    /// `RTE_LOG_WARNING`.
    Warning,
    /// `RTE_LOG_NOTICE` and `RTE_LOG_INFO`.
    Info,
    /// `RTE_LOG_DEBUG`.
    Debug,
}

impl Level {
    fn of(level: u32) -> Level {
        match level {
            0..=4 => Level::Error,
            5 => Level::Warning,
            6 | 7 => Level::Info,
            _ => Level::Debug,
        }
    }
}

/// Who listens: gets each line, without its end. What it does may not log to DPDK again.
pub type Hear = fn(Level, &str);

/// Lines as they come together.
#[derive(Default)]
struct Lines {
    begun: String,
    complaints: VecDeque<String>,
}

static LISTENER: OnceLock<Hear> = OnceLock::new();
static LINES: Mutex<Lines> = Mutex::new(Lines {
    begun: String::new(),
    complaints: VecDeque::new(),
});

fn lines() -> MutexGuard<'static, Lines> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has DPDK's messages come here; the first caller's listener gets them.
pub(crate) fn listen(hear: Hear) {
    static DIVERTED: Once = Once::new();
    let _ = LISTENER.set(hear);
    // Where it cannot be diverted it stays on standard error: no reason not to go on.
    DIVERTED.call_once(|| {
        let _ = ffi::shim_log_to(take);
    });
}

/// The last complaints, oldest first.
pub(crate) fn complaints() -> Vec<String> {
    lines().complaints.iter().cloned().collect()
}

extern "C" fn take(level: u32, octets: *const c_char, length: usize) {
    // SAFETY: the C library gives what it was given to write; it does not change meanwhile.
    let message = unsafe { std::slice::from_raw_parts(octets.cast::<u8>(), length) };
    // A listener that panics has had its words; C must not see it.
    let _ = catch_unwind(|| {
        let level = Level::of(level);
        // A statement of its own: the lock is not held while somebody listens.
        let ended = lines().add(level, &String::from_utf8_lossy(message));
        for line in ended {
            if let Some(hear) = LISTENER.get() {
                hear(level, &line);
            }
        }
    });
}

impl Lines {
    /// Adds a message; gives the lines that it ends.
    fn add(&mut self, level: Level, message: &str) -> Vec<String> {
        let mut ended = Vec::new();
        for part in message.split_inclusive('\n') {
            let room = LINE_MAX.saturating_sub(self.begun.len());
            let text = part.trim_end_matches('\n');
            self.begun
                .push_str(&text[..text.floor_char_boundary_at(room)]);
            if part.ends_with('\n') {
                let line = std::mem::take(&mut self.begun);
                let line = line.trim_end();
                if !line.is_empty() {
                    ended.push(line.to_owned());
                }
            }
        }
        if level == Level::Error {
            for line in &ended {
                self.keep(line);
            }
        }
        ended
    }

    fn keep(&mut self, line: &str) {
        if self.complaints.len() == KEPT {
            self.complaints.pop_front();
        }
        self.complaints.push_back(line.to_owned());
    }
}

/// `str::floor_char_boundary`, which the oldest compiler we support does not have.
trait Floor {
    fn floor_char_boundary_at(&self, index: usize) -> usize;
}

impl Floor for str {
    fn floor_char_boundary_at(&self, index: usize) -> usize {
        let mut index = index.min(self.len());
        while !self.is_char_boundary(index) {
            index -= 1;
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_become_lines() {
        let mut lines = Lines::default();
        assert!(lines.add(Level::Info, "EAL: half").is_empty());
        assert_eq!(
            lines.add(Level::Info, " a line\nEAL: another\nand"),
            ["EAL: half a line", "EAL: another"]
        );
        assert_eq!(lines.add(Level::Info, "\n\n"), ["and"]);
    }

    #[test]
    fn the_last_complaints_are_kept_and_nothing_else() {
        let mut lines = Lines::default();
        lines.add(Level::Info, "fine\n");
        for number in 0..6 {
            lines.add(Level::Error, &format!("wrong {number}\n"));
        }
        lines.add(Level::Warning, "odd\n");
        assert_eq!(
            lines.complaints,
            ["wrong 2", "wrong 3", "wrong 4", "wrong 5"]
        );
    }

    #[test]
    fn a_line_has_an_end_even_without_one() {
        let mut lines = Lines::default();
        lines.add(Level::Error, &"\u{e9}".repeat(LINE_MAX));
        lines.add(Level::Error, "more\n");
        assert_eq!(lines.complaints[0].len(), LINE_MAX);
    }
}
