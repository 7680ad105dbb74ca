//! Addresses, in the form of sockets.

#![expect(unsafe_code, reason = "structures of a foreign interface")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// A socket address as C has it, of either family.
#[derive(Clone, Copy)]
pub(crate) struct Address(libc::sockaddr_storage);

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        let mut storage = Address::empty();
        match address {
            SocketAddr::V4(address) => storage.put(libc::sockaddr_in {
                sin_family: family(libc::AF_INET),
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(address.ip().octets()),
                },
                sin_zero: [0; 8],
            }),
            SocketAddr::V6(address) => storage.put(libc::sockaddr_in6 {
                sin6_family: family(libc::AF_INET6),
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: address.ip().octets(),
                },
                sin6_scope_id: address.scope_id(),
            }),
        }
        storage
    }
}

fn family(family: libc::c_int) -> libc::sa_family_t {
    libc::sa_family_t::try_from(family).unwrap_or_default()
}

impl Address {
    fn empty() -> Address {
        // SAFETY: made of numbers, all of which may be zero.
        Address(unsafe { std::mem::zeroed() })
    }

    /// Puts one of the two structures of an address here.
    fn put<T: Copy>(&mut self, address: T) {
        const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
        const { assert!(align_of::<T>() <= align_of::<libc::sockaddr_storage>()) };
        // SAFETY: long enough and aligned, as was just asserted.
        unsafe { (&raw mut self.0).cast::<T>().write(address) };
    }

    /// For a call that wants to be given an address.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut libc::sockaddr {
        (&raw mut self.0).cast()
    }

    /// Reads one; `None` for a family that has no IP addresses.
    pub(crate) fn read(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
        let start = &raw const *storage;
        match libc::c_int::from(storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: of this family, so this is what is in it.
                let address = unsafe { *start.cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes());
                let port = u16::from_be(address.sin_port);
                Some(SocketAddrV4::new(ip, port).into())
            }
            libc::AF_INET6 => {
                // SAFETY: of this family, so this is what is in it.
                let address = unsafe { *start.cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
                let port = u16::from_be(address.sin6_port);
                let (flow, scope) = (address.sin6_flowinfo, address.sin6_scope_id);
                Some(SocketAddrV6::new(ip, port, flow, scope).into())
            }
            _ => None,
        }
    }
}

/// The IP address that a GID of RoCE version 2 stands for: IPv4 is mapped into IPv6.
pub(crate) fn of_gid(gid: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(gid).to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_way_there_and_back() {
        for text in ["192.0.2.1:20049", "[2001:db8::1]:20049", "[fe80::1%7]:1", "0.0.0.0:0"] {
            let address: SocketAddr = text.parse().expect(text);
            assert_eq!(Address::read(&Address::from(address).0), Some(address));
        }
        assert_eq!(Address::read(&Address::empty().0), None);
    }

    #[test]
    fn what_goes_to_the_kernel_is_in_network_order() {
        let address = Address::from("192.0.2.1:20049".parse::<SocketAddr>().expect("an address"));
        let start = (&raw const address.0).cast::<[u8; 8]>();
        // SAFETY: the storage is longer.
        let octets = unsafe { *start };
        assert_eq!(octets[2..], [0x4e, 0x51, 192, 0, 2, 1]);
    }

    #[test]
    fn a_gid_is_an_address() {
        let mut gid = [0; 16];
        gid[10..].copy_from_slice(&[0xff, 0xff, 192, 0, 2, 1]);
        assert_eq!(of_gid(gid).to_string(), "192.0.2.1");
        gid[0] = 0xfe;
        assert!(of_gid(gid).is_ipv6());
    }
}
