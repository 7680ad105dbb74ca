//! The endpoint: what its owner asks of it.

use super::desk::Path;
use super::stack::Stack;
use crate::carriage::{Carriage, Inbox};
use crate::checksum::HEADER_OCTETS;
use crate::discards::Discards;
#[cfg(feature = "dpdk")]
use crate::dpdk::{End, Ports};
use crate::frames::Frames;
use crate::llp::{AssociationId, Error, Event, LEAST_CHUNK, Llp, Reason, Refused};
use crate::roster::{Roster, State, Token};
use crate::settings::Settings;
use crate::udp::{Address, Outbox, take_merged};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use usrsctp_sys::types::{SCTP_ABORT, SCTP_EOF, SCTP_UNORDERED, sctp_sndinfo};

/// How often timers are run: the least of the library's own times is a few of these.
const TICK: Duration = Duration::from_millis(10);

/// Octets of the UDP socket's buffers, where the system grants them.
const SOCKET_BYTES: usize = 8 << 20;

/// Packets that the queue of a port of DPDK is sure to hold.
#[cfg(feature = "dpdk")]
const QUEUE_PLACES: u32 = 512;

/// Octets of a DATA chunk before its user data (RFC 9260 section 3.3.1).
const CHUNK_HEADER: u32 = 16;

/// The least packet that the library can be told, its header included.
const LEAST_PACKET: u32 = 512 + HEADER_OCTETS;

/// What an endpoint has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams read.
    pub packets_in: u64,
    /// Of these, what was no SCTP packet with the right checksum.
    pub damaged: u64,
    /// Associations of peers that found no place.
    pub turned_away: u64,
    /// Datagrams that the kernel refused to send.
    pub unsendable: u64,
    /// Packets that found no room to wait for the kernel.
    pub crowded: u64,
}

/// One lcore's SCTP endpoint in UDP.
pub struct Usrsctp {
    pub(super) stack: Stack,
    pub(super) roster: Roster,
    pub(super) inbox: Inbox,
    pub(super) settings: Settings,
    pub(super) counts: Counts,
    key: RandomState,
    local: SocketAddr,
    /// What new associations are told: octets of the longest packet.
    packet_bytes: u32,
    /// Finds the MTU of a route.
    pub(super) route: fn(&Carriage, SocketAddr, SocketAddr) -> u32,
    /// The place whose route is looked at next, and when.
    pub(super) survey: (u32, Option<Instant>),
    /// Where chunks are put together.
    scratch: Box<[u8]>,
    /// Up to when the library has been told the time.
    pub(super) told: Option<Instant>,
    /// When the last turn was.
    pub(super) turned: Option<Instant>,
}

impl std::fmt::Debug for Usrsctp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Usrsctp")
            .field("local", &self.local)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl Usrsctp {
    /// An endpoint that takes associations, at a UDP address; port 0 takes any.
    ///
    /// # Errors
    ///
    /// [`Error::Absent`] where there is no library; [`Error::Os`] and [`Error::Library`].
    pub fn listen(at: SocketAddr, settings: Settings) -> Result<Usrsctp, Error> {
        let socket = bound(at).map_err(|source| Error::Os {
            call: "bind",
            source,
        })?;
        Usrsctp::over(socket, true, settings)
    }

    /// An endpoint that only asks for associations; port 0 takes any.
    ///
    /// # Errors
    ///
    /// As for [`Usrsctp::listen`].
    pub fn connector(from: SocketAddr, settings: Settings) -> Result<Usrsctp, Error> {
        let socket = bound(from).map_err(|source| Error::Os {
            call: "bind",
            source,
        })?;
        Usrsctp::over(socket, false, settings)
    }

    /// An endpoint on a UDP socket that is bound.
    ///
    /// # Errors
    ///
    /// As for [`Usrsctp::listen`].
    pub fn over(
        socket: UdpSocket,
        listens: bool,
        mut settings: Settings,
    ) -> Result<Usrsctp, Error> {
        let os = |call, source| Error::Os { call, source };
        let local = socket
            .local_addr()
            .map_err(|source| os("getsockname", source))?;
        socket
            .set_nonblocking(true)
            .map_err(|source| os("fcntl", source))?;
        take_merged(socket.as_fd());
        let granted = widen(&socket).map_err(|source| os("setsockopt", source))?;
        // The kernel counts its own overhead too: a peer that fills half of it loses nothing.
        let holds = u32::try_from(granted / 2).unwrap_or(u32::MAX);
        settings.receive_bytes = settings.receive_bytes.min(holds).max(16_384);
        let outbox = Outbox::new(settings.in_pieces);
        Usrsctp::by(Carriage::Socket(socket, outbox), local, listens, settings)
    }

    /// An endpoint whose packets travel by `carriage`, from `local`.
    fn by(
        carriage: Carriage,
        local: SocketAddr,
        listens: bool,
        settings: Settings,
    ) -> Result<Usrsctp, Error> {
        let mut usrsctp = Usrsctp {
            roster: Roster::new(settings.associations),
            inbox: carriage.inbox(),
            stack: Stack::open(carriage, &settings, listens)?,
            settings,
            counts: Counts::default(),
            key: RandomState::new(),
            local,
            packet_bytes: 0,
            route: Carriage::mtu,
            survey: (0, None),
            scratch: vec![0; usize::from(u16::MAX)].into_boxed_slice(),
            told: None,
            turned: None,
        };
        usrsctp.limit_packets(usrsctp.packet_bytes_to(local))?;
        Ok(usrsctp)
    }

    /// An endpoint on ports of DPDK: that of the lcore which uses it first. It takes associations
    /// where `listens` is set, at an address of UDP; others have port 0 there.
    ///
    /// # Errors
    ///
    /// As for [`Usrsctp::listen`]: no port has the address, or it is to be heard at port 0, which
    /// would be another one on each lcore.
    #[cfg(feature = "dpdk")]
    pub fn at_port(
        ports: &Ports,
        at: SocketAddr,
        listens: bool,
        mut settings: Settings,
    ) -> Result<Usrsctp, Error> {
        if listens && at.port() == 0 {
            return Err(Error::Port(format!("{at} is no address to be heard at")));
        }
        let end = End::new(ports.clone(), at)?;
        // What the places of a port's queue hold, each a whole packet.
        let holds = end.mtu().saturating_mul(QUEUE_PLACES);
        settings.receive_bytes = settings.receive_bytes.min(holds);
        Usrsctp::by(Carriage::Port(end), at, listens, settings)
    }

    /// The UDP address of this end. On a port of DPDK its port is known once it has been used.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        match &self.stack.peek().carriage {
            Carriage::Socket(..) => self.local,
            #[cfg(feature = "dpdk")]
            Carriage::Port(end) => end.local_address(),
        }
    }

    /// What has happened here.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let desk = self.stack.peek();
        Counts {
            unsendable: desk.carriage.refused(),
            crowded: desk.crowded,
            ..self.counts
        }
    }

    /// What stands for a peer in the library: for its address, and for its SCTP port there, since
    /// one address may be that of several peers (RFC 6951 section 5.2). Without the port, what one
    /// sends would be taken for the other's. Never zero.
    pub(super) fn token_of(&self, address: &Address, port: u16) -> Token {
        // A pointer of this machine has to hold it.
        (self.key.hash_one((address, port)) & usize::MAX as u64) | 1
    }

    /// Octets of the longest SCTP packet on the way to a peer, a multiple of four.
    pub(super) fn packet_bytes_to(&self, peer: SocketAddr) -> u32 {
        let mtu = (self.route)(&self.stack.peek().carriage, self.local, peer);
        let headers = if peer.is_ipv4() { 20 + 8 } else { 40 + 8 };
        let packet = mtu.min(self.settings.path_mtu).saturating_sub(headers);
        (packet & !3).clamp(LEAST_PACKET, 65_504)
    }

    /// Has associations that come to be from now on send no longer packets.
    pub(super) fn limit_packets(&mut self, packet_bytes: u32) -> Result<(), Error> {
        if self.packet_bytes != packet_bytes {
            self.stack.set_packet_bytes(packet_bytes)?;
            self.packet_bytes = packet_bytes;
        }
        Ok(())
    }

    /// Octets of user data of a chunk that fills a packet of an association that comes to be now.
    pub(super) fn segment(&self) -> u32 {
        segment_of(self.packet_bytes)
    }
}

impl Llp for Usrsctp {
    fn associate(&mut self, to: SocketAddr, now: Instant) -> Result<AssociationId, Error> {
        self.told.get_or_insert(now);
        self.stack.desk().carriage.settle();
        let address = Address::from(to);
        let token = self.token_of(&address, self.settings.sctp_port);
        if let Some(path) = self.stack.peek().paths.get(&token) {
            let place = path.place;
            let id = self.roster.at(place).map(|place| place.id);
            return Err(id.map_or(Error::Exhausted, Error::Associated));
        }
        let packet_bytes = self.packet_bytes_to(to);
        self.limit_packets(packet_bytes)?;
        let segment = self.segment();
        let place = self.roster.take(token, to).ok_or(Error::Exhausted)?;
        place.segment = segment;
        let id = place.id;
        let path = Path {
            place: id.place,
            address,
        };
        self.stack.open_path(token, path);
        if let Err(error) = self.stack.connect(token, self.settings.sctp_port) {
            self.roster.free(id.place);
            self.carry_out();
            return Err(error);
        }
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
        let info = sctp_sndinfo {
            snd_sid: stream,
            snd_flags: SCTP_UNORDERED,
            snd_ppid: ppid.to_be(),
            snd_context: 0,
            snd_assoc_id: place.number,
        };
        match self.stack.send(&info, octets) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.refused(association.place, &error)),
        }
    }

    fn max_segment(&self, association: AssociationId) -> u32 {
        let place = self.roster.peek(association);
        place.map_or(LEAST_CHUNK, |place| place.segment)
    }

    fn await_dry(&mut self, association: AssociationId) {
        let Some(place) = self.roster.of(association) else {
            return;
        };
        if place.state == State::Up && !std::mem::replace(&mut place.awaits_dry, true) {
            let number = place.number;
            // Fails where the association is over, which will be told of.
            let _ = self.stack.tell_dry(number, true);
        }
    }

    fn turn(&mut self, now: Instant, events: &mut impl FnMut(Event<'_>)) {
        self.work(now, events);
    }

    fn flush(&mut self) {
        self.stack.desk().flush();
    }

    fn shut_down(&mut self, association: AssociationId) {
        let Some(place) = self.roster.of(association) else {
            return;
        };
        match place.state {
            State::Up => {
                place.state = State::Closing;
                let number = place.number;
                if self.stack.end(number, SCTP_EOF).is_err() {
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
        let desk = self.stack.peek();
        let carriage = &desk.carriage;
        if !carriage.is_empty() || !desk.parcels.is_empty() || self.roster.has_ended() {
            return self.told;
        }
        if let Some(interval) = carriage.interval() {
            return self.turned?.checked_add(interval);
        }
        let told = self.told.filter(|_| !self.roster.is_empty())?;
        told.checked_add(TICK)
    }

    fn discards(&self) -> Discards {
        let mut discards = self.stack.peek().carriage.discards();
        discards[0] = self.counts.damaged;
        discards
    }

    fn frames(&self) -> Frames {
        self.stack.peek().carriage.frames()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.stack.peek().carriage.descriptor()
    }
}

impl Usrsctp {
    /// Why the library did not take a chunk.
    fn refused(&mut self, index: u32, error: &io::Error) -> Refused {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => {
                self.roster.block(index);
                Refused::Full
            }
            Some(libc::EMSGSIZE) => Refused::Length,
            _ => Refused::Gone,
        }
    }

    /// Does what the roster has decided on.
    pub(super) fn carry_out(&mut self) {
        while let Some((token, known)) = self.roster.aborts.pop() {
            let port = self.settings.sctp_port;
            if let Some(number) = known.or_else(|| self.stack.number_of(token, port)) {
                // Fails where the library has given it up already.
                let _ = self.stack.end(number, SCTP_ABORT);
            }
        }
        while let Some(token) = self.roster.gone.pop() {
            self.stack.close_path(token);
        }
    }
}

impl Drop for Usrsctp {
    fn drop(&mut self) {
        let left: Vec<u32> = self.roster.iter().map(|place| place.id.place).collect();
        for index in left {
            self.roster.cut(index, Reason::Aborted);
        }
        self.carry_out();
    }
}

/// Octets of user data of a chunk that fills a packet.
pub(super) fn segment_of(packet_bytes: u32) -> u32 {
    let fits = packet_bytes - HEADER_OCTETS - CHUNK_HEADER;
    fits.max(LEAST_CHUNK)
}

fn bound(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    if at.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&at.into())?;
    Ok(socket.into())
}

/// Asks for buffers, and says how many octets the one for receiving got.
fn widen(socket: &UdpSocket) -> io::Result<usize> {
    let socket = socket2::SockRef::from(socket);
    socket.set_send_buffer_size(SOCKET_BYTES)?;
    socket.set_recv_buffer_size(SOCKET_BYTES)?;
    socket.recv_buffer_size()
}
