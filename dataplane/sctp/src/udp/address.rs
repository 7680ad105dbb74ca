//! Socket addresses as the system's calls take them, made once a peer.

use super::octets_of;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// An address for `msghdr`: octets of a `sockaddr_in` or `sockaddr_in6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(4))]
pub(crate) struct Address([u8; Address::ROOM]);

#[expect(clippy::cast_possible_truncation, reason = "small constants")]
const INET: libc::sa_family_t = libc::AF_INET as libc::sa_family_t;
#[expect(clippy::cast_possible_truncation, reason = "small constants")]
const INET6: libc::sa_family_t = libc::AF_INET6 as libc::sa_family_t;

impl Address {
    /// Octets of the longer form.
    pub(crate) const ROOM: usize = size_of::<libc::sockaddr_in6>();

    /// None at all.
    pub(crate) const NONE: Address = Address([0; Address::ROOM]);

    /// Octets in use.
    pub(crate) fn len(&self) -> libc::socklen_t {
        if self.family() == INET {
            octets_of::<libc::sockaddr_in>()
        } else {
            octets_of::<libc::sockaddr_in6>()
        }
    }

    fn family(&self) -> libc::sa_family_t {
        libc::sa_family_t::from_ne_bytes([self.0[0], self.0[1]])
    }

    /// The address as people and configurations have it; one that is neither IPv4 nor IPv6 is
    /// unspecified.
    pub(crate) fn to_socket_addr(self) -> SocketAddr {
        if self.family() == INET {
            // SAFETY: any octets are a value of this structure, and there are enough.
            let raw = unsafe { self.0.as_ptr().cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(raw.sin_addr.s_addr));
            return SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into();
        }
        // SAFETY: as above.
        let raw = unsafe {
            self.0
                .as_ptr()
                .cast::<libc::sockaddr_in6>()
                .read_unaligned()
        };
        let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
        let port = u16::from_be(raw.sin6_port);
        SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into()
    }

    fn store<T: Copy>(raw: T) -> Address {
        let mut address = Address::NONE;
        assert!(size_of::<T>() <= Address::ROOM, "an address of IP");
        // SAFETY: the octets are ours and enough for a value of this type.
        unsafe { address.0.as_mut_ptr().cast::<T>().write_unaligned(raw) };
        address
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        match address {
            SocketAddr::V4(v4) => Address::store(libc::sockaddr_in {
                sin_family: INET,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from(*v4.ip()).to_be(),
                },
                sin_zero: [0; 8],
            }),
            SocketAddr::V6(v6) => Address::store(libc::sockaddr_in6 {
                sin6_family: INET6,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in ["192.0.2.7:9899", "[2001:db8::1]:20049", "[fe80::1%3]:1"] {
            let address: SocketAddr = text.parse().expect("an address");
            assert_eq!(Address::from(address).to_socket_addr(), address);
        }
        assert_eq!(Address::from(SocketAddr::from(([1, 2, 3, 4], 5))).len(), 16);
    }
}
