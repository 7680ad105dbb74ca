//! The lcore's epoll instance: sockets of upper layers, the port's waker, control's bell.
//!
//! Everything is watched edge-triggered, so nothing has to be read to be quiet again: an edge
//! only says "look there". Sockets carry the id of the seat they belong to; an edge of a seat
//! that has changed hands since is dropped by its generation.

use crate::seats::SeatId;
use rpcrdma_upper::Watch;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Edges taken in one look.
pub(crate) const EDGES: usize = 64;

/// The key of what only wakes: the port's waker and control's bell. No seat id is that large.
const WAKE: u64 = u64::MAX;

/// The epoll instance, and what it said last.
pub(crate) struct Sockets {
    epoll: OwnedFd,
    /// Connections that have sockets.
    watching: usize,
    edges: Box<[epoll::Event; EDGES]>,
}

impl Sockets {
    /// An instance that watches nothing yet.
    pub(crate) fn new() -> io::Result<Sockets> {
        let none = epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(WAKE),
        };
        Ok(Sockets {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            watching: 0,
            edges: Box::new([none; EDGES]),
        })
    }

    /// Watches a descriptor that has no business but to end a sleep.
    pub(crate) fn watch_waker(&self, waker: impl AsFd) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&self.epoll, waker, EventData::new_u64(WAKE), flags)?;
        Ok(())
    }

    /// Looks for edges, for at most `patience`; `None` looks without waiting. Gives the seats
    /// that had one, and how many edges there were, wakers included.
    pub(crate) fn look(
        &mut self,
        patience: Option<Duration>,
    ) -> (usize, impl Iterator<Item = SeatId>) {
        let patience = patience.unwrap_or(Duration::ZERO);
        let timeout = Timespec {
            tv_sec: patience.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        // An interrupted wait is a short one, and no other failure is possible here: the
        // instance is ours and the buffer is good.
        let count = epoll::wait(&self.epoll, &mut self.edges[..], Some(&timeout)).unwrap_or(0);
        let seats = self.edges[..count].iter().filter_map(|edge| {
            let key = edge.data;
            u32::try_from(key.u64()).ok().map(SeatId::from_raw)
        });
        (count, seats)
    }

    /// True when any connection has sockets.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.watching > 0
    }

    /// For the upper layer in `seat` to have its sockets watched; `watching` says that it has
    /// some.
    pub(crate) fn watcher<'a>(&'a mut self, seat: SeatId, watching: &'a mut bool) -> Watcher<'a> {
        Watcher {
            sockets: self,
            seat,
            watching,
        }
    }

    /// A connection that had sockets has closed them.
    pub(crate) fn closed(&mut self) {
        self.watching = self.watching.saturating_sub(1);
    }
}

/// Watches sockets in the name of one seat.
pub(crate) struct Watcher<'a> {
    sockets: &'a mut Sockets,
    seat: SeatId,
    watching: &'a mut bool,
}

impl Watch for Watcher<'_> {
    fn watch(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let key = EventData::new_u64(self.seat.raw().into());
        epoll::add(&self.sockets.epoll, socket, key, flags)?;
        if !std::mem::replace(self.watching, true) {
            self.sockets.watching += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn seats(sockets: &mut Sockets) -> Vec<SeatId> {
        sockets.look(None).1.collect()
    }

    #[test]
    fn what_is_there_already_is_an_edge_and_later_octets_are_another() {
        let mut sockets = Sockets::new().expect("an instance");
        let (mut far, near) = UnixStream::pair().expect("a pair");
        let seat = SeatId::new(7, 3);
        let mut watching = false;
        let mut watcher = sockets.watcher(seat, &mut watching);
        watcher.watch(near.as_fd()).expect("watched");
        let (_other, second) = UnixStream::pair().expect("a pair");
        watcher.watch(second.as_fd()).expect("watched");
        drop(second);
        assert!(watching && sockets.any());
        assert_eq!(seats(&mut sockets), [seat], "writable from the start");
        assert_eq!(seats(&mut sockets), [], "an edge comes once");
        far.write_all(b"x").expect("room");
        assert_eq!(seats(&mut sockets), [seat]);
        drop(near);
        drop(far);
        assert_eq!(seats(&mut sockets), [], "closing ends the watch");
        sockets.closed();
        assert!(!sockets.any(), "two sockets of one connection");
    }

    #[test]
    fn wakers_end_a_wait_and_name_no_seat() {
        let mut sockets = Sockets::new().expect("an instance");
        let (mut far, near) = UnixStream::pair().expect("a pair");
        sockets.watch_waker(&near).expect("watched");
        far.write_all(b"x").expect("room");
        let (edges, mut seats) = sockets.look(Some(Duration::from_secs(60)));
        assert_eq!((edges, seats.next()), (1, None));
    }
}
