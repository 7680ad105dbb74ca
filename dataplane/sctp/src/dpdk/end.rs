//! An endpoint's end of its port.

use super::hub::{Packet, Parting, QUEUE};
use super::ports::{EtherPort, Ports};
use crate::discards::{self, Discards};
use crate::frames::Frames;
use crate::llp::Error;
use crate::udp::{Address, Sent};
use dpdk_sys::{BURST, Frame, Pool};
use std::io::{self, ErrorKind, PipeReader, PipeWriter};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

/// Datagrams that wait for the next flush, at most.
const ENTRIES: usize = 512;

/// Where an endpoint is.
#[derive(Debug)]
enum Seat {
    /// Nobody has used it yet.
    None,
    /// On the port of the lcore that uses it.
    Taken {
        port: EtherPort,
        index: usize,
        own: u16,
        pool: Pool,
    },
    /// On an lcore whose port has another address, or where another endpoint has its UDP port:
    /// nothing comes, nothing goes.
    Deaf,
}

#[derive(Debug)]
struct Entry {
    frame: Frame,
    to: Address,
}

/// An endpoint's end: datagrams on their way out, and its place among those that are heard.
#[derive(Debug)]
pub(crate) struct End {
    ports: Ports,
    /// The address wanted; port 0 for any.
    wanted: SocketAddr,
    seat: Seat,
    blanks: Vec<Frame>,
    entries: Vec<Entry>,
    /// The port did not take all at the last flush.
    stuck: bool,
    /// Datagrams that found no buffer.
    short: u64,
    silence: (PipeReader, PipeWriter),
}

impl End {
    /// Of an endpoint that is heard at that address; one that only asks wants port 0.
    ///
    /// # Errors
    ///
    /// No port has the address.
    pub(crate) fn new(ports: Ports, wanted: SocketAddr) -> Result<End, Error> {
        let os = |call, source| Error::Os { call, source };
        if !ports.has(wanted) {
            return Err(os("bind", ErrorKind::AddrNotAvailable.into()));
        }
        Ok(End {
            ports,
            wanted,
            seat: Seat::None,
            blanks: Vec::with_capacity(BURST),
            entries: Vec::with_capacity(ENTRIES),
            stuck: false,
            short: 0,
            silence: io::pipe().map_err(|source| os("pipe", source))?,
        })
    }

    /// The address: as it is, once it has been used, else as it was wanted.
    pub(crate) fn local_address(&self) -> SocketAddr {
        match &self.seat {
            Seat::Taken { port, own, .. } => SocketAddr::new(port.station().ip(), *own),
            Seat::None | Seat::Deaf => self.wanted,
        }
    }

    /// Takes a place on the port of the lcore that calls, if it has none.
    pub(crate) fn sit_down(&mut self) {
        if !matches!(self.seat, Seat::None) {
            return;
        }
        self.seat = self.find_seat().unwrap_or(Seat::Deaf);
    }

    #[cold]
    fn find_seat(&self) -> Option<Seat> {
        let port = self.ports.here()?;
        let ip = self.wanted.ip();
        if ip != port.station().ip() && !ip.is_unspecified() {
            return None;
        }
        let mut hub = port.wait();
        let (index, own) = hub.seat(self.wanted.port())?;
        let pool = hub.pool();
        let port = port.clone();
        Some(Seat::Taken {
            port,
            index,
            own,
            pool,
        })
    }

    /// Octets of the longest IP packet on the way to anybody.
    pub(crate) fn mtu(&self) -> u32 {
        let narrowest = || self.ports.iter().map(|port| port.station().mtu).min();
        match &self.seat {
            Seat::Taken { port, .. } => port.station().mtu.into(),
            Seat::None | Seat::Deaf => narrowest().unwrap_or(1280).into(),
        }
    }

    /// Room for a datagram of that length; `None` when it is to be dropped, or flushed first.
    pub(crate) fn room(&mut self, len: usize, to: Address) -> Option<&mut [u8]> {
        let Seat::Taken { pool, .. } = &self.seat else {
            return None;
        };
        if self.entries.len() == ENTRIES {
            return None;
        }
        if self.blanks.is_empty() && pool.take(&mut self.blanks).is_err() {
            self.short += 1;
            return None;
        }
        let mut frame = self.blanks.pop()?;
        frame.lay_out(len)?;
        self.entries.push(Entry { frame, to });
        Some(self.entries.last_mut()?.frame.octets_mut())
    }

    /// Nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.stuck
    }

    /// Datagrams that found no buffer, so far.
    pub(crate) fn refused(&self) -> u64 {
        self.short
    }

    /// What has come to the port and was not taken, for the first of its endpoints to tell.
    pub(crate) fn discards(&self) -> Discards {
        match &self.seat {
            Seat::Taken { port, index, .. } => port.wait().discards(*index),
            Seat::None | Seat::Deaf => discards::NONE,
        }
    }

    /// What the port has counted, for the first of its endpoints to tell.
    pub(crate) fn frames(&self) -> Frames {
        match &self.seat {
            Seat::Taken { port, index, .. } => port.wait().frames(*index),
            Seat::None | Seat::Deaf => Frames::default(),
        }
    }

    /// Gives the port what it takes.
    pub(crate) fn flush(&mut self) -> Sent {
        if self.is_empty() {
            return Sent::All;
        }
        let Seat::Taken { port, own, .. } = &self.seat else {
            return Sent::All;
        };
        let Some(mut hub) = port.try_lock() else {
            return Sent::Part;
        };
        for Entry { frame, to } in self.entries.drain(..) {
            let from = *own;
            hub.send(to.to_socket_addr(), Parting { frame, from });
        }
        self.stuck = !hub.push();
        if self.stuck { Sent::Part } else { Sent::All }
    }

    /// Never readable: a port cannot wake anybody.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.silence.0.as_fd()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // What says goodbye goes first.
        self.flush();
        if let Seat::Taken { port, index, .. } = &self.seat {
            port.wait().leave(*index);
        }
    }
}

/// Packets of one batch. Its lists are as long as they can become from the start: they change places with the hub's.
#[derive(Debug)]
pub(crate) struct Inbox {
    packets: Vec<Packet>,
    spent: Vec<Frame>,
    more: bool,
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            packets: Vec::with_capacity(QUEUE),
            spent: Vec::with_capacity(QUEUE),
            more: false,
        }
    }
}

impl Inbox {
    /// Takes what has come, up to a burst; how many packets that was.
    pub(crate) fn fill(&mut self, end: &mut End, now: Instant) -> usize {
        self.spent
            .extend(self.packets.drain(..).map(Packet::into_frame));
        Frame::free_all(&mut self.spent);
        self.more = false;
        end.sit_down();
        if let Seat::Taken { port, index, .. } = &end.seat
            && let Some(mut hub) = port.try_lock()
        {
            self.more = hub.receive(*index, &mut self.packets, now);
        }
        self.packets.len()
    }

    /// Whether the last burst left nothing behind, as far as it can tell.
    pub(crate) fn is_short(&self) -> bool {
        !self.more
    }

    /// A packet of the last batch, and who sent it.
    pub(crate) fn datagram(&self, index: usize) -> Option<(Address, &[u8])> {
        let packet = self.packets.get(index)?;
        Some((packet.from(), packet.octets()?))
    }
}
