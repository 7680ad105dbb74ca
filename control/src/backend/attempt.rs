//! One connection in the making: address after address, and port after port for each.

use super::ports::{Ports, is_privileged};
use super::{Connected, Failure, Wanted};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};

/// Addresses of one name that are tried.
const ADDRESSES: usize = 8;

/// The state of the attempt.
pub(super) struct Attempt {
    addresses: Vec<SocketAddr>,
    /// The address being tried.
    at: usize,
    /// The remembered port has been tried at this address.
    tried_remembered: bool,
    /// Privileged ports tried at this address.
    tried_ports: u16,
    /// The source port of the last try was ours to choose.
    chosen: bool,
    /// The socket that is connecting.
    connecting: Option<Socket>,
    /// What the last address came to.
    last: Option<io::Error>,
}

/// How far it went.
pub(super) enum Step<'a> {
    /// Nothing can be done before the socket is writable; here it is if it is a new one.
    Wait(Option<&'a Socket>),
    /// Connected.
    Done(Connected),
    /// No address is left.
    Failed(Failure),
}

/// A source port for the next try.
enum Source {
    System,
    Port(u16),
    NoneLeft,
}

impl Attempt {
    pub(super) fn new(mut addresses: Vec<SocketAddr>) -> Self {
        addresses.truncate(ADDRESSES);
        Self {
            addresses,
            at: 0,
            tried_remembered: false,
            tried_ports: 0,
            chosen: false,
            connecting: None,
            last: None,
        }
    }

    /// The address being tried.
    pub(super) fn address(&self) -> SocketAddr {
        let unknown = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        self.addresses
            .get(self.at)
            .or(self.addresses.last())
            .copied()
            .unwrap_or(unknown)
    }

    /// Goes as far as it can without waiting.
    pub(super) fn step(&mut self, wanted: &Wanted, ports: &mut Ports) -> Step<'_> {
        if let Some(socket) = self.connecting.take() {
            match socket.take_error() {
                Ok(None) if socket.peer_addr().is_err() => {
                    // Woken for nothing.
                    self.connecting = Some(socket);
                    return Step::Wait(None);
                }
                Ok(None) => match self.finish(socket, wanted, ports) {
                    Ok(connected) => return Step::Done(connected),
                    Err(error) => self.next_address(error),
                },
                Ok(Some(error)) | Err(error) => self.next(error),
            }
        }
        while self.at < self.addresses.len() {
            let port = match self.source(wanted, ports) {
                Source::System => None,
                Source::Port(port) => Some(port),
                Source::NoneLeft => return Step::Failed(Failure::NoPort),
            };
            self.chosen = port.is_some();
            match open(self.address(), port, wanted) {
                Ok(socket) => return Step::Wait(Some(self.connecting.insert(socket))),
                Err(error)
                    if error.kind() == io::ErrorKind::PermissionDenied && wanted.privileged =>
                {
                    return Step::Failed(Failure::NotPrivileged);
                }
                Err(error) => self.next(error),
            }
        }
        let error = self
            .last
            .take()
            .unwrap_or_else(|| io::ErrorKind::NotFound.into());
        Step::Failed(Failure::Refused(self.address(), error))
    }

    /// The port to try next: the one remembered, then others.
    fn source(&mut self, wanted: &Wanted, ports: &mut Ports) -> Source {
        if !self.tried_remembered {
            self.tried_remembered = true;
            let remembered = wanted
                .remember
                .as_deref()
                .and_then(|party| ports.remembered(party, self.address()))
                .filter(|&port| !wanted.privileged || is_privileged(port));
            if let Some(port) = remembered {
                return Source::Port(port);
            }
        }
        if !wanted.privileged {
            return Source::System;
        }
        self.tried_ports += 1;
        match self.tried_ports {
            1..=Ports::PRIVILEGED => Source::Port(ports.next_privileged()),
            _ => Source::NoneLeft,
        }
    }

    /// After a failure: the next port where the port was to blame, else the next address.
    fn next(&mut self, error: io::Error) {
        match Errno::from_io_error(&error) {
            Some(Errno::ADDRINUSE | Errno::ADDRNOTAVAIL) if self.chosen => {}
            _ => self.next_address(error),
        }
    }

    fn next_address(&mut self, error: io::Error) {
        self.last = Some(error);
        self.at += 1;
        self.tried_remembered = false;
        self.tried_ports = 0;
    }

    fn finish(&self, socket: Socket, wanted: &Wanted, ports: &mut Ports) -> io::Result<Connected> {
        let stream = TcpStream::from(socket);
        let (local, remote) = (stream.local_addr()?, stream.peer_addr()?);
        if local == remote {
            // Two ephemeral ports have met (TCP's simultaneous open): nobody listens there.
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if let Some(party) = &wanted.remember {
            ports.remember(party, self.address(), local.port());
        }
        Ok(Connected {
            stream,
            local,
            remote,
        })
    }
}

/// A socket that connects to `address`, from `port` if one is given.
fn open(address: SocketAddr, port: Option<u16>, wanted: &Wanted) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    crate::keepalive::set(&socket, wanted.keepalive)?;
    if port.is_some() || wanted.from.is_some() {
        // Without it, the port of a connection that has just ended is not to be had.
        socket.set_reuse_address(true)?;
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let local = SocketAddr::new(wanted.from.unwrap_or(any), port.unwrap_or(0));
        socket.bind(&local.into())?;
    }
    match socket.connect(&address.into()) {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::INPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}
