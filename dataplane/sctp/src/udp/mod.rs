//! Datagrams in batches, and how long they may be.

#[expect(unsafe_code, reason = "addresses in the form of the system's calls")]
mod address;
#[expect(unsafe_code, reason = "recvmmsg")]
mod inbox;
#[expect(unsafe_code, reason = "sendmmsg")]
mod outbox;
#[expect(unsafe_code, reason = "a socket option that no safe crate has")]
mod route;

pub(crate) use address::Address;
pub(crate) use inbox::{Inbox, take_merged};
pub(crate) use outbox::{Outbox, Sent, pass};
pub(crate) use route::route_mtu;

/// Octets of a type, as socket calls count them.
#[expect(
    clippy::cast_possible_truncation,
    reason = "structures of the system's interface are small"
)]
pub(crate) const fn octets_of<T>() -> libc::socklen_t {
    size_of::<T>() as libc::socklen_t
}

/// No datagram is longer.
pub(crate) const DATAGRAM: usize = 65_536;
