//! SIGTERM and SIGINT, as something that the control loop can poll.
//!
//! The first asks for an orderly end: no new calls, those in flight answered. The second means
//! that somebody does not want to wait for that.

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// What the signals so far amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// End when the calls in flight are answered.
    Drain,
    /// End now.
    Now,
}

/// The signals that end the appliance. Dropped, they are the system's again, and kill.
#[derive(Debug)]
pub struct Signals {
    /// An octet for each signal.
    arrived: UnixStream,
    registered: Vec<SigId>,
    seen: u32,
}

impl Signals {
    /// Takes the signals over.
    ///
    /// # Errors
    ///
    /// There are no descriptors left.
    pub fn take_over() -> io::Result<Self> {
        Self::of(&[SIGTERM, SIGINT])
    }

    fn of(numbers: &[i32]) -> io::Result<Self> {
        let (arrived, send) = UnixStream::pair()?;
        arrived.set_nonblocking(true)?;
        let mut signals = Self {
            arrived,
            registered: Vec::new(),
            seen: 0,
        };
        for &number in numbers {
            signals
                .registered
                .push(pipe::register(number, send.try_clone()?)?);
        }
        Ok(signals)
    }

    /// What to do, from the first signal on.
    pub fn poll(&mut self) -> Option<Stop> {
        let mut octets = [0; 16];
        while let Ok(count @ 1..) = self.arrived.read(&mut octets) {
            self.seen = self
                .seen
                .saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
        match self.seen {
            0 => None,
            1 => Some(Stop::Drain),
            _ => Some(Stop::Now),
        }
    }
}

impl AsFd for Signals {
    /// Readable when a signal has come since [`Signals::poll`] was called.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.arrived.as_fd()
    }
}

impl Drop for Signals {
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
    use signal_hook::consts::SIGUSR1;
    use signal_hook::low_level::raise;

    #[test]
    fn one_drains_and_two_end() {
        // A signal that nothing else in this test program cares for.
        let mut signals = Signals::of(&[SIGUSR1]).unwrap();
        assert_eq!(signals.poll(), None);
        raise(SIGUSR1).unwrap();
        poll(&mut [PollFd::new(&signals, PollFlags::IN)], None).unwrap();
        assert_eq!(signals.poll(), Some(Stop::Drain));
        assert_eq!(signals.poll(), Some(Stop::Drain));
        raise(SIGUSR1).unwrap();
        poll(&mut [PollFd::new(&signals, PollFlags::IN)], None).unwrap();
        assert_eq!(signals.poll(), Some(Stop::Now));
    }
}
