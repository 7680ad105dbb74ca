//! One line for each event, on standard error.
//!
//! Nothing is logged for a message: lcores count. What peers can cause, as connections refused,
//! goes through [`Complaints`], so that nobody fills a disk from afar.

use rpcrdma_config::plan::Log;
use std::fmt;
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tracing::warn;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt as layer};

/// Lines that wait to be written.
const QUEUED: usize = 4096;

/// What the level can be changed by, where the command line does not fix it.
static FILTER: OnceLock<Handle<Targets, Registry>> = OnceLock::new();

/// The thread that writes the lines; dropped, it writes those that are left, for a second at
/// most.
#[must_use = "lines are written while this is there"]
pub struct Lines(#[expect(dead_code, reason = "is dropped, never looked at")] WorkerGuard);

/// Starts logging events of `level` and above; without one, of what [`follow`] says, and till then
/// of what happens. Where the lines go to the journal, which has its own clock, they carry no
/// time. Called once, by `main`.
///
/// A thread of its own writes, and lines that find its queue full are lost: a reader of standard
/// error that reads no more must not hold up the control thread.
pub fn start(level: Option<LevelFilter>) -> Lines {
    let (writer, guard) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(QUEUED)
        .thread_name("log")
        .finish(std::io::stderr());
    let lines = layer::layer()
        .with_writer(writer)
        .with_ansi(false)
        .with_target(false);
    let journal = std::env::var_os("JOURNAL_STREAM").is_some() && !std::io::stderr().is_terminal();
    let lines = if journal {
        lines.without_time().boxed()
    } else {
        lines.boxed()
    };
    let (filter, handle) = reload::Layer::new(targets(level.unwrap_or(LevelFilter::INFO)));
    if level.is_none() {
        // Nobody else starts it.
        let _ = FILTER.set(handle);
    }
    // Somebody else's subscriber, in a test: theirs, then.
    let _ = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .try_init();
    Lines(guard)
}

/// The command line says how much is logged, whatever the configuration does.
#[must_use]
pub fn is_fixed() -> bool {
    FILTER.get().is_none()
}

/// Logs what the configuration says from now on, unless the command line did.
pub fn follow(level: Log) {
    let level = match level {
        Log::Error => LevelFilter::ERROR,
        Log::Warn => LevelFilter::WARN,
        Log::Info => LevelFilter::INFO,
        Log::Debug => LevelFilter::DEBUG,
    };
    if let Some(filter) = FILTER.get() {
        // It is there for as long as the process.
        let _ = filter.reload(targets(level));
    }
}

/// The embedded NFS server calls every refused call an error; clients cause those at will.
/// Only who asks for details of everything gets them.
fn targets(level: LevelFilter) -> Targets {
    let server = if level >= LevelFilter::DEBUG {
        LevelFilter::INFO
    } else {
        LevelFilter::OFF
    };
    Targets::new()
        .with_default(level)
        .with_target("nfs3_server", server)
}

/// Warnings that peers can cause: so many at once, then one each so often, which says how many
/// were not written.
#[derive(Debug)]
pub struct Complaints(Ration);

impl Complaints {
    /// At most `burst` lines at once, and on the average one in `interval`.
    #[must_use]
    pub const fn new(burst: u32, interval: Duration) -> Self {
        Self(Ration::new(burst, interval))
    }

    /// Writes a line if its turn has come; whether it did.
    pub fn say(&mut self, what: fmt::Arguments<'_>) -> bool {
        match self.0.claim(Instant::now()) {
            Some(0) => warn!("{what}"),
            Some(withheld) => warn!("{what} ({withheld} such lines before it were withheld)"),
            None => return false,
        }
        true
    }
}

/// So many lines at once, and then one each so often.
#[derive(Debug)]
struct Ration {
    burst: u32,
    interval: Duration,
    left: u32,
    /// Since when `left` has been as it is.
    since: Option<Instant>,
    withheld: u64,
}

impl Ration {
    /// At most `burst` lines at once, and on the average one in `interval`.
    const fn new(burst: u32, interval: Duration) -> Self {
        Self {
            burst,
            interval,
            left: burst,
            since: None,
            withheld: 0,
        }
    }

    /// Whether a line may be written now: then, how many were not since the last one.
    fn claim(&mut self, now: Instant) -> Option<u64> {
        self.refill(now);
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Some(std::mem::take(&mut self.withheld))
            }
            None => {
                self.withheld += 1;
                None
            }
        }
    }

    fn refill(&mut self, now: Instant) {
        let since = *self.since.get_or_insert(now);
        let passed = now.saturating_duration_since(since).as_nanos();
        let earned = passed
            .checked_div(self.interval.as_nanos())
            .unwrap_or(u128::MAX);
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        if earned > 0 {
            self.left = self.left.saturating_add(earned).min(self.burst);
            // What is left of an interval counts for the next one, unless nothing was wanting.
            let full = self.left == self.burst;
            let counted = self.interval.checked_mul(earned).filter(|_| !full);
            self.since = Some(counted.map_or(now, |counted| since + counted));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ration_lets_through_so_many_and_tells_of_the_rest() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut ration = Ration::new(2, Duration::from_secs(1));
        assert_eq!(ration.claim(at(0)), Some(0));
        assert_eq!(ration.claim(at(10)), Some(0));
        assert_eq!(ration.claim(at(20)), None);
        assert_eq!(ration.claim(at(900)), None);
        assert_eq!(ration.claim(at(1100)), Some(2));
        assert_eq!(ration.claim(at(1500)), None);
        assert_eq!(ration.claim(at(2050)), Some(1));
        assert_eq!(ration.claim(at(100_000)), Some(0));
        assert_eq!(ration.claim(at(100_000)), Some(0));
        assert_eq!(ration.claim(at(100_000)), None);
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_gives_nothing_away() {
        let start = Instant::now() + Duration::from_secs(10);
        let mut ration = Ration::new(1, Duration::from_secs(1));
        assert_eq!(ration.claim(start), Some(0));
        assert_eq!(ration.claim(start - Duration::from_secs(5)), None);
        assert_eq!(ration.claim(start), None);
    }

    #[test]
    fn the_embedded_server_is_quiet_unless_everything_is_asked_for() {
        use tracing::Level;
        let usual = targets(LevelFilter::INFO);
        assert!(usual.would_enable("rpcrdmad", &Level::INFO));
        assert!(!usual.would_enable("rpcrdmad", &Level::DEBUG));
        assert!(!usual.would_enable("nfs3_server::nfs_handlers", &Level::ERROR));
        assert!(targets(LevelFilter::DEBUG).would_enable("nfs3_server::tcp", &Level::INFO));
    }
}
