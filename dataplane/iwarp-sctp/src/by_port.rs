//! SCTP of libusrsctp, in UDP, by ports of DPDK: the same packets as those of `InUdp`, on a link that
//! is this process's own.

use crate::error::Error;
use crate::fabric::IwarpFabric;
use crate::settings::Settings;
use crate::stack::Stack;
use rpcrdma_sctp::{Error as SctpError, Ports, Usrsctp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// How often ports are asked for their links: it keeps each from its lcore for a moment.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// SCTP in UDP (RFC 6951), each lcore's by its own port of DPDK. Addresses are those of the ports.
///
/// A listener at an address of one port is heard by the lcore of that port; one at the
/// unspecified address by all of them.
#[derive(Clone, Debug)]
pub struct ByPort {
    ports: Ports,
    settings: rpcrdma_sctp::Settings,
    /// When the ports were last asked for their links, and what they said.
    looked: Option<(Instant, bool)>,
}

impl ByPort {
    /// SCTP that behaves like this, on these ports.
    ///
    /// # Errors
    ///
    /// [`rpcrdma_sctp::Error::Absent`] where the library is missing, in one line that says so.
    pub fn new(ports: Ports, settings: rpcrdma_sctp::Settings) -> Result<ByPort, SctpError> {
        let stack = ByPort {
            ports,
            settings,
            looked: None,
        };
        drop(
            stack
                .connector(Ipv4Addr::UNSPECIFIED.into())
                .or_else(|_| stack.connector(Ipv6Addr::UNSPECIFIED.into()))?,
        );
        Ok(stack)
    }

    fn connector(&self, from: IpAddr) -> Result<Usrsctp, SctpError> {
        let from = SocketAddr::new(from, 0);
        Usrsctp::at_port(&self.ports, from, false, self.settings)
    }
}

impl IwarpFabric<ByPort> {
    /// The fabric on SCTP in UDP, by ports of DPDK. Associations have as many streams as
    /// `settings` says.
    ///
    /// # Errors
    ///
    /// [`Error::Sctp`] where the library is missing, in one line that says so.
    pub fn by_port(
        ports: Ports,
        settings: Settings,
        sctp: rpcrdma_sctp::Settings,
    ) -> Result<Self, Error> {
        let sctp = rpcrdma_sctp::Settings {
            streams: settings.streams,
            ..sctp
        };
        IwarpFabric::new(ByPort::new(ports, sctp)?, settings)
    }
}

impl Stack for ByPort {
    type Llp = Usrsctp;

    fn listen(&mut self, address: SocketAddr) -> Result<(Usrsctp, SocketAddr), SctpError> {
        let llp = Usrsctp::at_port(&self.ports, address, true, self.settings)?;
        let address = llp.local_address();
        Ok((llp, address))
    }

    fn depart(&mut self, to: SocketAddr) -> Result<Usrsctp, SctpError> {
        self.connector(match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        })
    }

    fn is_up(&mut self) -> bool {
        let now = Instant::now();
        match self.looked {
            Some((then, up)) if now < then + LOOK_EVERY => up,
            _ => {
                let up = self.ports.are_up();
                self.looked = Some((now, up));
                up
            }
        }
    }
}
