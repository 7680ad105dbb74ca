//! SIGTERM, SIGINT and SIGHUP, as something that the control loop can poll.
//!
//! The first of those that end asks for an orderly end: no new calls, those in flight answered.
//! The second means that somebody does not want to wait for that. SIGHUP asks for the
//! configuration to be read again; several at once are one.

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// What the signals that end amount to so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// End when the calls in flight are answered.
    Drain,
    /// End now.
    Now,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// What the signals that end ask for, from the first one on.
    pub stop: Option<Stop>,
    /// The configuration is to be read again.
    pub reload: bool,
}

/// The signals that mean something to the appliance. Dropped, they are the system's again, and
/// kill.
#[derive(Debug)]
pub struct Signals {
    stops: Arrivals,
    reloads: Arrivals,
    seen: u32,
}

impl Signals {
    /// Takes the signals over.
    ///
    /// # Errors
    ///
    /// There are no descriptors left.
    pub fn take_over() -> io::Result<Self> {
        Self::of(&[SIGTERM, SIGINT], &[SIGHUP])
    }

    fn of(stops: &[i32], reloads: &[i32]) -> io::Result<Self> {
        Ok(Self {
            stops: Arrivals::of(stops)?,
            reloads: Arrivals::of(reloads)?,
            seen: 0,
        })
    }

    /// What to do now.
    pub fn poll(&mut self) -> Heard {
        self.seen = self.seen.saturating_add(self.stops.take());
        Heard {
            stop: match self.seen {
                0 => None,
                1 => Some(Stop::Drain),
                _ => Some(Stop::Now),
            },
            reload: self.reloads.take() > 0,
        }
    }

    /// Readable when signals have come since [`Signals::poll`] was called.
    #[must_use]
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.stops.octets.as_fd(), self.reloads.octets.as_fd()]
    }
}

/// Signals of a few numbers, counted.
#[derive(Debug)]
struct Arrivals {
    /// An octet for each.
    octets: UnixStream,
    registered: Vec<SigId>,
}

impl Arrivals {
    fn of(numbers: &[i32]) -> io::Result<Self> {
        let (octets, send) = UnixStream::pair()?;
        octets.set_nonblocking(true)?;
        let mut arrivals = Self {
            octets,
            registered: Vec::new(),
        };
        for &number in numbers {
            let id = pipe::register(number, send.try_clone()?)?;
            arrivals.registered.push(id);
        }
        Ok(arrivals)
    }

    /// How many have come since this was last called.
    fn take(&mut self) -> u32 {
        let mut octets = [0; 16];
        let mut taken = 0_u32;
        while let Ok(count @ 1..) = self.octets.read(&mut octets) {
            taken = taken.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
        taken
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            unregister(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use signal_hook::consts::{SIGUSR1, SIGUSR2};
    use signal_hook::low_level::raise;

    fn wait(signals: &Signals) {
        let watched = signals.descriptors();
        let mut watched = watched.map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN));
        poll(&mut watched, None).unwrap();
    }

    #[test]
    fn one_drains_and_two_end_and_others_reload() {
        // Signals that nothing else in this test program cares for.
        let mut signals = Signals::of(&[SIGUSR1], &[SIGUSR2]).unwrap();
        assert_eq!(signals.poll(), Heard::default());
        raise(SIGUSR2).unwrap();
        raise(SIGUSR2).unwrap();
        wait(&signals);
        let reload = Heard {
            stop: None,
            reload: true,
        };
        assert_eq!(signals.poll(), reload);
        assert_eq!(signals.poll(), Heard::default());
        for stop in [Stop::Drain, Stop::Now] {
            raise(SIGUSR1).unwrap();
            wait(&signals);
            for _ in 0..2 {
                let stop = Some(stop);
                let reload = false;
                assert_eq!(signals.poll(), Heard { stop, reload });
            }
        }
    }
}
