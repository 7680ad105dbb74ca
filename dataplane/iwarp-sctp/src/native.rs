//! The kernel's SCTP: native packets, for hosts whose kernel has the module.

use crate::error::Error;
use crate::fabric::IwarpFabric;
use crate::settings::Settings;
use crate::stack::Stack;
use rpcrdma_sctp::{Error as SctpError, KernelSctp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

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

    fn depart(&mut self, to: SocketAddr) -> Result<KernelSctp, SctpError> {
        let from: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        KernelSctp::connector(SocketAddr::new(from, 0), None, &self.settings)
    }
}
