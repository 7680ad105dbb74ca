//! The first 40 octets of every receive of a UD queue pair: what the datagram came in.
//!
//! On InfiniBand, and with RoCE version 1, that is the global route header (IBA 8.3), where there
//! was one. With RoCE version 2 it is the header of IPv6, which is laid out the same, or that of
//! IPv4 in the last 20 octets with anything before it (annex A17.4.5.2). Which it is has to be found
//! out: a header of IPv4 says so itself, and its sum is right.

use rpcrdma_fabric::datagram::GidOctets;
use std::net::Ipv4Addr;

/// Octets of it.
pub(super) const HEADER_LEN: u32 = 40;
pub(super) const HEADER_BYTES: usize = HEADER_LEN as usize;
/// Where a header of IPv4 begins in it.
const IPV4_START: usize = 20;

/// Source and destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) from: GidOctets,
    pub(super) to: GidOctets,
}

/// Reads a header; `None` for one that is neither.
pub(super) fn route(header: &[u8; HEADER_BYTES]) -> Option<Route> {
    ipv4(header).or_else(|| (header[0] >> 4 == 6).then(|| ipv6(header)))
}

fn ipv6(header: &[u8; HEADER_BYTES]) -> Route {
    let gid = |start: usize| std::array::from_fn(|n| header[start + n]);
    Route {
        from: gid(8),
        to: gid(24),
    }
}

fn ipv4(header: &[u8; HEADER_BYTES]) -> Option<Route> {
    let ip = &header[IPV4_START..];
    // Version 4, and five words: no device sends options.
    if ip[0] != 0x45 || !has_right_sum(ip) {
        return None;
    }
    let gid = |start: usize| {
        let address: [u8; 4] = std::array::from_fn(|n| ip[start + n]);
        Ipv4Addr::from(address).to_ipv6_mapped().octets()
    };
    Some(Route {
        from: gid(12),
        to: gid(16),
    })
}

/// The sum of RFC 791 section 3.1 over a header, its own field included.
fn has_right_sum(header: &[u8]) -> bool {
    let words = header.chunks_exact(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    folded == 0xFFFF
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IPv4, no options, 192.0.2.1 to 239.1.2.3 in UDP: with its sum.
    const IPV4: [u8; 20] = [
        0x45, 0, 0, 0x54, 0x12, 0x34, 0x40, 0, 64, 17, 0x39, 0x73, 192, 0, 2, 1, 239, 1, 2, 3,
    ];

    fn with_ipv4(ip: [u8; 20]) -> [u8; HEADER_BYTES] {
        let mut header = [0x60; HEADER_BYTES];
        header[20..].copy_from_slice(&ip);
        header
    }

    fn summed(mut ip: [u8; 20]) -> [u8; 20] {
        ip[10..12].fill(0);
        let words = ip.chunks_exact(2);
        let sum: u32 = words
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
            .sum();
        let folded = (sum & 0xFFFF) + (sum >> 16);
        let field = !u16::try_from(folded).expect("no second carry here");
        ip[10..12].copy_from_slice(&field.to_be_bytes());
        ip
    }

    #[test]
    fn ipv4_stands_at_the_end() {
        let found = route(&with_ipv4(summed(IPV4))).expect("a header");
        let text = |gid: GidOctets| std::net::Ipv6Addr::from(gid).to_string();
        assert_eq!(text(found.from), "::ffff:192.0.2.1");
        assert_eq!(text(found.to), "::ffff:239.1.2.3");
    }

    #[test]
    fn a_wrong_sum_is_a_global_route_that_looks_like_it() {
        let mut ip = summed(IPV4);
        ip[8] ^= 1;
        let header = with_ipv4(ip);
        let found = route(&header).expect("version six at its start");
        assert_eq!(found.from[..], header[8..24]);
        assert_eq!(found.to[..], header[24..]);
    }

    #[test]
    fn what_is_neither_has_no_route() {
        assert_eq!(route(&[0; HEADER_BYTES]), None);
        assert_eq!(route(&[0xFF; HEADER_BYTES]), None);
    }
}
