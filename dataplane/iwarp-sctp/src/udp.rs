//! SCTP of libusrsctp, in UDP: the stack that is there without root and without a kernel module.

use crate::error::Error;
use crate::fabric::IwarpFabric;
use crate::settings::Settings;
use crate::stack::{Stack, anywhere};
use rpcrdma_sctp::{Error as SctpError, Usrsctp};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// SCTP in UDP (RFC 6951). Addresses are those of UDP sockets.
#[derive(Clone, Debug)]
pub struct InUdp {
    settings: rpcrdma_sctp::Settings,
}

impl InUdp {
    /// SCTP that behaves like this.
    ///
    /// # Errors
    ///
    /// [`rpcrdma_sctp::Error::Absent`] where the library is missing, in one line that says so.
    pub fn new(settings: rpcrdma_sctp::Settings) -> Result<InUdp, SctpError> {
        let here = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        drop(Usrsctp::connector(here, settings)?);
        Ok(InUdp { settings })
    }
}

impl IwarpFabric<InUdp> {
    /// The fabric on SCTP in UDP. Associations have as many streams as `settings` says.
    ///
    /// # Errors
    ///
    /// [`Error::Sctp`] where the library is missing, in one line that says so.
    pub fn in_udp(settings: Settings, sctp: rpcrdma_sctp::Settings) -> Result<Self, Error> {
        let stack = InUdp::new(rpcrdma_sctp::Settings {
            streams: settings.streams,
            ..sctp
        })?;
        IwarpFabric::new(stack, settings)
    }
}

impl Stack for InUdp {
    type Llp = Usrsctp;

    fn listen(&mut self, address: SocketAddr) -> Result<(Usrsctp, SocketAddr), SctpError> {
        let socket = heard(address).map_err(|source| SctpError::Os {
            call: "bind",
            source,
        })?;
        let llp = Usrsctp::over(socket, true, self.settings)?;
        let address = llp.local_address();
        Ok((llp, address))
    }

    fn depart(&mut self, to: SocketAddr) -> Result<Usrsctp, SctpError> {
        Usrsctp::connector(SocketAddr::new(anywhere(to), 0), self.settings)
    }
}

/// A socket at an address that others of this process, those of other ports, are at too.
///
/// Who may share a port is given, where the system chooses, one that others share already, if they are of the same user. So
/// the first of an address does not say that it may before it has a port of its own.
fn heard(address: SocketAddr) -> io::Result<UdpSocket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        // Everywhere is everywhere: peers with IPv4 addresses too.
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    if address.port() != 0 {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    socket.set_reuse_port(true)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_port_of_the_systems_choice_is_nobody_elses_and_can_be_shared() {
        let here = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        // So many that some would coincide all but surely: 28,232 ports are there to choose from.
        let sockets: Vec<_> = (0..600).map(|_| heard(here).expect("a socket")).collect();
        let at = |socket: &UdpSocket| socket.local_addr().expect("bound");
        let ports: HashSet<_> = sockets.iter().map(at).collect();
        assert_eq!(ports.len(), sockets.len());
        let second = heard(at(&sockets[0])).expect("a second one");
        assert_eq!(at(&second), at(&sockets[0]));
    }
}
