//! How packets travel in UDP: by a socket of the system's, or by a port of DPDK.
//!
//! Both take packets where they will be sent from, collect them until they are flushed, and hand
//! over in batches what has come. A branch is all that tells them apart, so that an endpoint, and
//! all that is above it, is compiled once.

use crate::discards::{self, Discards};
#[cfg(feature = "dpdk")]
use crate::dpdk;
use crate::frames::Frames;
use crate::udp::{self, Address, Outbox, Sent, route_mtu};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Packets on their way out, and what they leave by.
pub(crate) enum Carriage {
    Socket(UdpSocket, Outbox),
    #[cfg(feature = "dpdk")]
    Port(dpdk::End),
}

impl Carriage {
    /// To be called by the thread that works here, before it does.
    pub(crate) fn settle(&mut self) {
        match self {
            Carriage::Socket(..) => {}
            #[cfg(feature = "dpdk")]
            Carriage::Port(end) => end.sit_down(),
        }
    }

    /// Room for a packet of that length; `None` when it is to be dropped, or flushed first.
    #[inline]
    pub(crate) fn room(&mut self, len: usize, to: Address) -> Option<&mut [u8]> {
        match self {
            Carriage::Socket(_, outbox) => outbox.room(len, to),
            #[cfg(feature = "dpdk")]
            Carriage::Port(end) => end.room(len, to),
        }
    }

    /// Sends a packet now, from where it is; false when that cannot be, and it has to wait.
    pub(crate) fn pass(&self, packet: &[u8], to: Address) -> bool {
        match self {
            Carriage::Socket(socket, _) => udp::pass(socket.as_fd(), packet, &to) > 0,
            #[cfg(feature = "dpdk")]
            Carriage::Port(_) => false,
        }
    }

    /// Nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Carriage::Socket(_, outbox) => outbox.is_empty(),
            #[cfg(feature = "dpdk")]
            Carriage::Port(end) => end.is_empty(),
        }
    }

    /// Packets that could not be sent at all, so far.
    pub(crate) fn refused(&self) -> u64 {
        match self {
            Carriage::Socket(_, outbox) => outbox.refused(),
            #[cfg(feature = "dpdk")]
            Carriage::Port(end) => end.refused(),
        }
    }

    /// Sends what waits, as far as it can be sent now.
    pub(crate) fn flush(&mut self) -> Sent {
        match self {
            Carriage::Socket(socket, outbox) => outbox.flush(socket.as_fd()),
            #[cfg(feature = "dpdk")]
            Carriage::Port(end) => end.flush(),
        }
    }

    /// Octets of the longest IP packet on the way to a peer, as far as is known.
    pub(crate) fn mtu(&self, from: SocketAddr, to: SocketAddr) -> u32 {
        match self {
            Carriage::Socket(..) => route_mtu(from, to).unwrap_or(1_280),
            #[cfg(feature = "dpdk")]
            Carriage::Port(end) => end.mtu(),
        }
    }

    /// Readable when packets have come, unless it has to be looked after: see
    /// [`Carriage::interval`].
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Carriage::Socket(socket, _) => socket.as_fd(),
            #[cfg(feature = "dpdk")]
            Carriage::Port(end) => end.descriptor(),
        }
    }

    /// What has come and was not taken.
    pub(crate) fn discards(&self) -> Discards {
        match self {
            Carriage::Socket(..) => discards::NONE,
            #[cfg(feature = "dpdk")]
            Carriage::Port(end) => end.discards(),
        }
    }

    /// What the port has counted of frames.
    pub(crate) fn frames(&self) -> Frames {
        match self {
            Carriage::Socket(..) => Frames::default(),
            #[cfg(feature = "dpdk")]
            Carriage::Port(end) => end.frames(),
        }
    }

    /// How long it may be left alone, where nothing announces what comes.
    pub(crate) fn interval(&self) -> Option<Duration> {
        match self {
            Carriage::Socket(..) => None,
            #[cfg(feature = "dpdk")]
            Carriage::Port(_) => Some(dpdk::LOOK),
        }
    }

    /// Where what comes by this is put.
    pub(crate) fn inbox(&self) -> Inbox {
        match self {
            Carriage::Socket(..) => Inbox::Socket(udp::Inbox::new()),
            #[cfg(feature = "dpdk")]
            Carriage::Port(_) => Inbox::Port(dpdk::Inbox::default()),
        }
    }
}

/// A batch of packets that have come.
pub(crate) enum Inbox {
    Socket(udp::Inbox),
    #[cfg(feature = "dpdk")]
    Port(dpdk::Inbox),
}

impl Inbox {
    /// Takes a batch in place of the last one; how many packets that was.
    pub(crate) fn fill(&mut self, carriage: &mut Carriage, now: Instant) -> usize {
        // Only a port has a use for the time.
        let _ = now;
        match (self, carriage) {
            (Inbox::Socket(inbox), Carriage::Socket(socket, _)) => inbox.fill(socket.as_fd()),
            #[cfg(feature = "dpdk")]
            (Inbox::Port(inbox), Carriage::Port(end)) => inbox.fill(end, now),
            #[cfg(feature = "dpdk")]
            _ => 0,
        }
    }

    /// Whether the last batch left nothing behind, as far as it can tell.
    pub(crate) fn is_short(&self) -> bool {
        match self {
            Inbox::Socket(inbox) => inbox.is_short(),
            #[cfg(feature = "dpdk")]
            Inbox::Port(inbox) => inbox.is_short(),
        }
    }

    /// A packet of the last batch, and who sent it.
    #[inline]
    pub(crate) fn datagram(&self, index: usize) -> Option<(Address, &[u8])> {
        match self {
            Inbox::Socket(inbox) => inbox.datagram(index),
            #[cfg(feature = "dpdk")]
            Inbox::Port(inbox) => inbox.datagram(index),
        }
    }
}
