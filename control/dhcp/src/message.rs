//! The messages as octets: RFC 2131 section 2 and table 5, with the fields as RFC 4390 section 2.1 wants them.

mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use reply::{Given, Reject, Reply, Says, parse};
pub use request::{Kind, emit};
pub use smoltcp::wire::{DHCP_CLIENT_PORT as CLIENT_PORT, DHCP_SERVER_PORT as SERVER_PORT};

/// The hardware type of InfiniBand (RFC 4390 section 2.1).
pub const INFINIBAND: u16 = 32;
/// The least length of a message, in octets: what BOOTP's were (RFC 1542 section 2.1).
pub const LEAST_BYTES: usize = 300;
/// The longest message taken, in octets: an IPoIB link carries no longer datagram.
pub const MOST_BYTES: usize = 4092;

const MAGIC: u32 = 0x6382_5363;
const FIXED_BYTES: usize = 240;

/// Option numbers (RFC 2132).
mod option {
    pub(super) const MASK: u8 = 1;
    pub(super) const REQUESTED: u8 = 50;
    pub(super) const LEASE_TIME: u8 = 51;
    pub(super) const TYPE: u8 = 53;
    pub(super) const SERVER: u8 = 54;
    pub(super) const PARAMETERS: u8 = 55;
    pub(super) const LONGEST: u8 = 57;
    pub(super) const T1: u8 = 58;
    pub(super) const T2: u8 = 59;
    pub(super) const CLIENT: u8 = 61;
    pub(super) const END: u8 = 255;
}

/// Who the client is (RFC 4361 section 6.1): type 255, an identifier of the interface, and a DUID of its port's GUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientIdentifier([u8; 17]);

impl ClientIdentifier {
    /// Of a port's GUID and the partition of the link: each link is an interface of its own. The DUID is one of a link-layer
    /// address (DUID-LL) with the hardware type of InfiniBand.
    #[must_use]
    pub fn new(guid: u64, p_key: u16) -> Self {
        let mut octets = [0; 17];
        octets[0] = 255;
        octets[1..5].copy_from_slice(&u32::from(p_key).to_be_bytes());
        octets[5..7].copy_from_slice(&3_u16.to_be_bytes());
        octets[7..9].copy_from_slice(&INFINIBAND.to_be_bytes());
        octets[9..].copy_from_slice(&guid.to_be_bytes());
        Self(octets)
    }

    /// As it stands in option 61.
    #[must_use]
    pub const fn octets(&self) -> &[u8; 17] {
        &self.0
    }
}
