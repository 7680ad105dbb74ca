//! Where SCTP comes from.

use rpcrdma_sctp::{Error, Llp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Makes SCTP endpoints, in control's thread, for ports to drive.
pub trait Stack {
    /// One endpoint: an address, and the associations on it.
    type Llp: Llp + Send + 'static;

    /// An endpoint that peers may associate with at `address`, where others of this process may be
    /// already: each peer meets one of them, always the same. What address it is, with the port
    /// filled in where that was zero.
    ///
    /// # Errors
    ///
    /// There is no SCTP here, or the address is not to be had.
    fn listen(&mut self, address: SocketAddr) -> Result<(Self::Llp, SocketAddr), Error>;

    /// Where an endpoint for associations with `to` is at home: one departs for all peers that
    /// have that in common. Everywhere, of the family of `to`, unless a stack knows better.
    fn home(&self, to: SocketAddr) -> IpAddr {
        anywhere(to)
    }

    /// An endpoint from which to associate with peers such as `to`, at an address of its own.
    ///
    /// # Errors
    ///
    /// There is no SCTP here, or no address is to be had.
    fn depart(&mut self, to: SocketAddr) -> Result<Self::Llp, Error>;

    /// Whether the links that are its own are all up; those of the operating system are that one's to
    /// look after. Asked whenever control looks for events, so it answers at once.
    fn is_up(&mut self) -> bool {
        true
    }
}

/// No address in particular, of the family of `to`.
pub(crate) fn anywhere(to: SocketAddr) -> IpAddr {
    match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}
