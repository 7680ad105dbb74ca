//! The checksum of the Internet (RFC 1071).
//!
//! Words are summed in the processor's own order, which RFC 1071 section 2 (B) allows, four octets
//! at a time and without looking at carries: the compiler makes vector instructions of it.

use std::net::IpAddr;

/// A sum in the making. Only the last part added may have an odd number of octets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum(u64);

impl Sum {
    /// With more octets. 2^32 of them would be too many: a packet has 2^16.
    pub(crate) fn with(mut self, octets: &[u8]) -> Sum {
        let (words, rest) = octets.as_chunks::<4>();
        let words = words
            .iter()
            .map(|word| u64::from(u32::from_ne_bytes(*word)));
        self.0 = self.0.wrapping_add(words.sum());
        let (pairs, odd) = rest.as_chunks::<2>();
        for pair in pairs {
            self.0 = self.0.wrapping_add(u16::from_ne_bytes(*pair).into());
        }
        if let [octet] = odd {
            self.0 = self.0.wrapping_add(u16::from_ne_bytes([*octet, 0]).into());
        }
        self
    }

    /// With the pseudo header of an upper layer: addresses, protocol and length (RFC 768, RFC
    /// 8200 section 8.1).
    pub(crate) fn with_pseudo_header(self, ends: (IpAddr, IpAddr), protocol: u8, len: u16) -> Sum {
        let sum = match ends {
            (IpAddr::V4(from), IpAddr::V4(to)) => self.with(&from.octets()).with(&to.octets()),
            (from, to) => {
                let octets = |ip| match ip {
                    IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                    IpAddr::V6(v6) => v6.octets(),
                };
                self.with(&octets(from)).with(&octets(to))
            }
        };
        sum.with(&[0, protocol]).with(&len.to_be_bytes())
    }

    /// The checksum, as it stands in a packet read as big-endian; zero over octets that have it
    /// among them and are whole.
    pub(crate) fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        let [low, high, ..] = sum.to_le_bytes();
        !u16::from_le_bytes([low, high]).to_be()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As RFC 1071 section 4.1 has it.
    fn by_the_book(octets: &[u8]) -> u16 {
        let mut sum = 0_u32;
        for pair in octets.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            sum += u32::from(u16::from_be_bytes([pair[0], low]));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !u16::try_from(sum).expect("folded")
    }

    /// The example of RFC 1071 section 3.
    #[test]
    fn the_example_of_the_standard() {
        let octets = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().with(&octets).finish(), !0xddf2);
    }

    proptest! {
        #[test]
        fn agrees_with_the_book(octets in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..100) {
            let at = (at & !1).min(octets.len() & !1);
            let (first, rest) = octets.split_at(at);
            let sum = Sum::default().with(first).with(rest).finish();
            prop_assert_eq!(sum, by_the_book(&octets));
        }
    }
}
