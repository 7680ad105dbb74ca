//! The checksum of the Internet (RFC 1071).

use std::net::IpAddr;

/// The complement of a one's complement sum; zero over octets that have it among them and are whole.
pub(super) fn sum_of(octets: &[u8]) -> u16 {
    finish(add(0, octets))
}

/// The checksum of an upper layer's message: with the pseudo header of RFC 768, or of RFC 8200 section 8.1.
pub(super) fn sum_of_message(ends: (IpAddr, IpAddr), protocol: u8, message: &[u8]) -> u16 {
    let (from, to) = ends;
    let ends = add_address(add_address(0, from), to);
    let length = message.len() as u64;
    let head = ends.wrapping_add(u64::from(protocol)).wrapping_add(length);
    finish(add(head, message))
}

/// Adds words of 16 bits; an octet alone at the end is the upper half of one. A packet's words cannot overflow 64 bits.
fn add(sum: u64, octets: &[u8]) -> u64 {
    let (pairs, rest) = octets.as_chunks::<2>();
    let words = pairs
        .iter()
        .map(|pair| u64::from(u16::from_be_bytes(*pair)));
    let last = rest.iter().map(|octet| u64::from(*octet) << 8);
    words.chain(last).fold(sum, u64::wrapping_add)
}

fn add_address(sum: u64, address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(v4) => add(sum, &v4.octets()),
        IpAddr::V6(v6) => add(sum, &v6.octets()),
    }
}

/// Folds what was carried back in.
fn finish(mut sum: u64) -> u16 {
    while let carried @ 1.. = sum >> 16 {
        sum = (sum & 0xFFFF).wrapping_add(carried);
    }
    !u16::try_from(sum).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_section_3() {
        let octets = [0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7];
        assert_eq!(sum_of(&octets), !0xDDF2);
    }

    #[test]
    fn an_octet_alone_is_an_upper_half() {
        assert_eq!(sum_of(&[0x12]), !0x1200);
    }
}
