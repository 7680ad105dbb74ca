//! The kernel's SCTP: native packets, for hosts whose kernel has the module.

use crate::error::Error;
use crate::fabric::IwarpFabric;
use crate::settings::Settings;
use crate::stack::{Stack, anywhere};
use rpcrdma_sctp::{Error as SctpError, KernelSctp};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

/// SCTP of the kernel's (RFC 9260), in packets of its own. Addresses are those of SCTP endpoints.
///
/// An address is heard by one port: the kernel has no second endpoint there.
#[derive(Clone, Debug)]
pub struct Native {
    settings: rpcrdma_sctp::Settings,
}

impl Native {
    /// SCTP that behaves like this.
    ///
    /// # Errors
    ///
    /// [`rpcrdma_sctp::Error::Absent`] where the kernel has none, in one line that says so.
    pub fn new(settings: rpcrdma_sctp::Settings) -> Result<Native, SctpError> {
        let here = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        drop(KernelSctp::connector(here, None, &settings)?);
        Ok(Native { settings })
    }
}

impl IwarpFabric<Native> {
    /// The fabric on the kernel's SCTP. Associations have as many streams as `settings` says.
    ///
    /// # Errors
    ///
    /// [`Error::Sctp`] where the kernel has none, in one line that says so.
    pub fn native(settings: Settings, sctp: rpcrdma_sctp::Settings) -> Result<Self, Error> {
        let stack = Native::new(rpcrdma_sctp::Settings {
            streams: settings.streams,
            ..sctp
        })?;
        IwarpFabric::new(stack, settings)
    }
}

impl Stack for Native {
    type Llp = KernelSctp;

    fn listen(&mut self, address: SocketAddr) -> Result<(KernelSctp, SocketAddr), SctpError> {
        let llp = KernelSctp::listen(address, &self.settings)?;
        let address = llp.local_address();
        Ok((llp, address))
    }

    /// One address, for an endpoint that is bound to none tells its peers all of them, and both
    /// would have to see to several ways (RFC 5043 section 7.2).
    fn home(&self, to: SocketAddr) -> IpAddr {
        routed_from(to).unwrap_or_else(|| anywhere(to))
    }

    fn depart(&mut self, to: SocketAddr) -> Result<KernelSctp, SctpError> {
        let from = SocketAddr::new(self.home(to), 0);
        KernelSctp::connector(from, None, &self.settings)
    }
}

/// The address that packets to `to` come from, as the kernel's routes have it now. None for one
/// that means something on one link alone: to bind to it takes more than an address.
fn routed_from(to: SocketAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((anywhere(to), 0)).ok()?;
    // Sends nothing.
    socket.connect(to).ok()?;
    let home = socket.local_addr().ok()?.ip();
    let of_a_link = matches!(home, IpAddr::V6(home) if home.is_unicast_link_local());
    (!of_a_link).then_some(home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_where_packets_come_from() {
        for to in ["127.0.0.1:20049", "[::1]:20049"] {
            let to: SocketAddr = to.parse().unwrap();
            // A machine may be without IPv6.
            if UdpSocket::bind((to.ip(), 0)).is_ok() {
                assert_eq!(routed_from(to), Some(to.ip()));
            }
        }
    }

    #[test]
    fn where_there_is_no_way_home_is_anywhere() {
        // Broadcasts are refused unless asked for.
        let to: SocketAddr = "255.255.255.255:20049".parse().unwrap();
        assert_eq!(routed_from(to), None);
        assert_eq!(anywhere(to), IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    }
}
