//! The kernel's SCTP, through one socket of the one-to-many style (RFC 6458 section 3).
//!
//! It speaks natively, protocol 132 of IP, or in UDP where the kernel has been told a port for
//! that (`net.sctp.udp_port`). It has timers, checksums and path MTU discovery of its own; what it
//! lacks is speed: each message is a system call, either way. Its use here is to be the other SCTP
//! that ours is held against, and the way to peers that have no UDP encapsulation.
//!
//! An endpoint bound to one address is single-homed; bound to none in particular, the kernel tells
//! peers all its addresses.

#[expect(unsafe_code, reason = "socket calls with control messages")]
mod socket;

use crate::llp::{AssociationId, Error, Event, LEAST_CHUNK, Llp, Reason, Refused};
use crate::notice::{LINUX, Notice};
use crate::roster::{Roster, State, Token};
use crate::settings::Settings;
use crate::udp::Address;
use socket::{Arrival, End, Socket};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Messages of one turn.
const MESSAGES: usize = 128;

/// How often room to send is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The longest chunk that is sent, whatever the path.
const LONGEST: u32 = 65_476;

/// One lcore's endpoint of the kernel's SCTP.
pub struct KernelSctp {
    socket: Socket,
    roster: Roster,
    key: RandomState,
    /// Places by peer.
    peers: HashMap<Token, u32>,
    /// Places by the kernel's number.
    numbers: HashMap<u32, u32>,
    local: SocketAddr,
    room: Box<[u8]>,
    scratch: Box<[u8]>,
    turned: Option<Instant>,
}

impl std::fmt::Debug for KernelSctp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelSctp")
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}

impl KernelSctp {
    /// An endpoint that takes associations at an SCTP address. Those that come in UDP are answered
    /// in UDP.
    ///
    /// # Errors
    ///
    /// [`Error::Absent`] where the kernel has no SCTP, [`Error::Os`].
    pub fn listen(at: SocketAddr, settings: &Settings) -> Result<KernelSctp, Error> {
        let end = KernelSctp::open(at, settings)?;
        end.socket.listen(settings.associations)?;
        Ok(end)
    }

    /// An endpoint that asks for associations: natively, or in UDP to that port of peers.
    ///
    /// # Errors
    ///
    /// As for [`KernelSctp::listen`]; [`Error::Absent`] too where UDP is asked for and the kernel
    /// has been told no port.
    pub fn connector(
        from: SocketAddr,
        encapsulation: Option<u16>,
        settings: &Settings,
    ) -> Result<KernelSctp, Error> {
        let end = KernelSctp::open(from, settings)?;
        if let Some(port) = encapsulation {
            end.socket.encapsulate(port)?;
        }
        Ok(end)
    }

    fn open(at: SocketAddr, settings: &Settings) -> Result<KernelSctp, Error> {
        let socket = Socket::open(at, settings)?;
        Ok(KernelSctp {
            local: socket.local_address()?,
            socket,
            roster: Roster::new(settings.associations),
            key: RandomState::new(),
            peers: HashMap::new(),
            numbers: HashMap::new(),
            room: vec![0; 1 << 16].into_boxed_slice(),
            scratch: vec![0; LONGEST as usize].into_boxed_slice(),
            turned: None,
        })
    }

    /// The SCTP address of this end.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn token_of(&self, peer: &Address) -> Token {
        self.key.hash_one(peer)
    }

    /// Reads and tells of one message or notification; `false` when there is none.
    fn read(&mut self, events: &mut impl FnMut(Event<'_>)) -> bool {
        let Some(arrival) = self.socket.receive(&mut self.room) else {
            return false;
        };
        let token = self.token_of(&arrival.from);
        let octets = self.room.get(..arrival.len).unwrap_or(&[]);
        match arrival.label {
            Some(label) => {
                let place = self.numbers.get(&arrival.number);
                if let Some(place) = place.or_else(|| self.peers.get(&token)) {
                    self.roster.deliver(*place, label, octets, events);
                }
            }
            None => {
                let notice = LINUX.parse(octets);
                self.heed(token, &arrival, notice, events);
            }
        }
        self.carry_out();
        true
    }

    fn heed(
        &mut self,
        token: Token,
        arrival: &Arrival,
        notice: Notice,
        events: &mut impl FnMut(Event<'_>),
    ) {
        let index = self.peers.get(&token).copied();
        match (notice, index) {
            (
                Notice::Up {
                    number,
                    inbound,
                    outbound,
                },
                _,
            ) => {
                let Some(index) = index.or_else(|| self.admit(token, arrival)) else {
                    self.roster.aborts.push((token, Some(number)));
                    return;
                };
                self.numbers.insert(number, index);
                let segment = self.socket.fragmentation_point(number);
                if let Some(place) = self.roster.at(index) {
                    place.segment = segment.unwrap_or(0).clamp(LEAST_CHUNK, LONGEST);
                }
                self.roster.begin(index, number, (inbound, outbound));
            }
            (_, Some(index)) => self.roster.heed(index, notice, events),
            (_, None) => {}
        }
    }

    /// Finds a place for a peer's association.
    fn admit(&mut self, token: Token, arrival: &Arrival) -> Option<u32> {
        let place = self.roster.take(token, arrival.from.to_socket_addr())?;
        place.arrived = true;
        self.peers.insert(token, place.id.place);
        Some(place.id.place)
    }

    /// Does what the roster has decided on.
    fn carry_out(&mut self) {
        while let Some((_, number)) = self.roster.aborts.pop() {
            if let Some(number) = number {
                // Fails where the kernel has given it up already.
                let _ = self.socket.end(number, End::Abort);
            }
        }
        while let Some(token) = self.roster.gone.pop() {
            if let Some(place) = self.peers.remove(&token) {
                self.numbers.retain(|_, at| *at != place);
            }
        }
    }
}

impl Llp for KernelSctp {
    fn associate(&mut self, to: SocketAddr, now: Instant) -> Result<AssociationId, Error> {
        self.turned.get_or_insert(now);
        let token = self.token_of(&Address::from(to));
        if let Some(place) = self.peers.get(&token) {
            let id = self.roster.at(*place).map(|place| place.id);
            return Err(id.map_or(Error::Exhausted, Error::Associated));
        }
        let place = self.roster.take(token, to).ok_or(Error::Exhausted)?;
        let id = place.id;
        match self.socket.connect(to) {
            Ok(number) => place.number = number,
            Err(error) => {
                self.roster.free(id.place);
                self.carry_out();
                return Err(error);
            }
        }
        self.peers.insert(token, id.place);
        Ok(id)
    }

    fn send(
        &mut self,
        association: AssociationId,
        stream: u16,
        ppid: u32,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Refused> {
        let place = self.roster.of(association).ok_or(Refused::Gone)?;
        place.admits(stream, len)?;
        let octets = self.scratch.get_mut(..len).ok_or(Refused::Length)?;
        fill(octets);
        let sent = self.socket.send(place.number, stream, ppid, octets);
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
                self.roster.block(association.place);
                Refused::Full
            }
            _ if error.raw_os_error() == Some(libc::EMSGSIZE) => Refused::Length,
            _ => Refused::Gone,
        })
    }

    fn max_segment(&self, association: AssociationId) -> u32 {
        let place = self.roster.peek(association);
        place.map_or(LEAST_CHUNK, |place| place.segment.max(LEAST_CHUNK))
    }

    fn await_dry(&mut self, _association: AssociationId) {
        // The kernel tells each time.
    }

    fn turn(&mut self, now: Instant, events: &mut impl FnMut(Event<'_>)) {
        self.turned = Some(now);
        let mut left = MESSAGES;
        while left > 0 && self.read(events) {
            left -= 1;
        }
        // All that the kernel has to say of an association that came up has been read, unless the
        // turn was cut short: then the next one tells.
        if left > 0 {
            self.roster.rise(events);
        }
        if self.roster.is_unsettled() && self.socket.has_room() {
            self.roster.ease();
        }
        self.roster.settle(events);
        self.carry_out();
    }

    fn flush(&mut self) {}

    fn shut_down(&mut self, association: AssociationId) {
        let Some(place) = self.roster.of(association) else {
            return;
        };
        match place.state {
            State::Up => {
                place.state = State::Closing;
                if self.socket.end(place.number, End::ShutDown).is_err() {
                    self.abort(association);
                }
            }
            State::Asking => self.abort(association),
            State::Free | State::Rising | State::Closing | State::Over(_) => {}
        }
    }

    fn abort(&mut self, association: AssociationId) {
        if self.roster.of(association).is_some() {
            self.roster.cut(association.place, Reason::Aborted);
            self.carry_out();
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let turned = self.turned.filter(|_| self.roster.is_unsettled())?;
        turned.checked_add(LOOK_EVERY)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for KernelSctp {
    fn drop(&mut self) {
        let numbers: Vec<u32> = self.numbers.keys().copied().collect();
        for number in numbers {
            // Closing the socket would shut it down in order, which takes as long as the peer likes.
            let _ = self.socket.end(number, End::Abort);
        }
    }
}
