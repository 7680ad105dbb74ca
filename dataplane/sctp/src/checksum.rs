//! CRC32c of packets (RFC 9260 section 6.8 and appendix B).

/// Octets of the common header; the checksum is its last four.
pub(crate) const HEADER: usize = 12;
/// The same, beside lengths on the wire.
pub(crate) const HEADER_OCTETS: u32 = 12;
const FIELD: std::ops::Range<usize> = 8..HEADER;

/// The checksum of a packet as if its field were zero, in the order it stands in the packet; for
/// one that may not be written to.
fn compute(packet: &[u8]) -> Option<[u8; 4]> {
    let (head, rest) = (packet.get(..FIELD.start)?, packet.get(FIELD.end..)?);
    let crc = crc32c::crc32c_append(crc32c::crc32c(head), &[0; 4]);
    Some(crc32c::crc32c_append(crc, rest).to_le_bytes())
}

/// Puts the checksum into a packet; one shorter than its header stays as it is.
pub(crate) fn put(packet: &mut [u8]) {
    if let Some(field) = packet.get_mut(FIELD) {
        field.fill(0);
        let sum = crc32c::crc32c(packet).to_le_bytes();
        packet[FIELD].copy_from_slice(&sum);
    }
}

/// Whether a packet has a whole header and chunk header, and the right checksum.
pub(crate) fn is_good(packet: &[u8]) -> bool {
    packet.len() >= HEADER + 4 && compute(packet).is_some_and(|sum| packet.get(FIELD) == Some(&sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of CRC32c, octets "123456789", split around a field of zeros.
    #[test]
    fn every_octet_counts() {
        let mut packet = [0x5a_u8; 41];
        put(&mut packet);
        assert!(is_good(&packet));
        for at in 0..packet.len() {
            packet[at] ^= 0x10;
            assert!(!is_good(&packet), "octet {at}");
            packet[at] ^= 0x10;
        }
        assert!(!is_good(&packet[..15]), "no chunk header");
    }

    /// A packet of nothing but a header: computed by the polynomial, bit by bit.
    #[test]
    fn agrees_with_the_polynomial() {
        let mut packet: Vec<u8> = (0..61_u8).map(|at| at.wrapping_mul(7)).collect();
        packet[8..12].fill(0);
        let mut crc = u32::MAX;
        for octet in &packet {
            crc ^= u32::from(*octet);
            for _ in 0..8 {
                crc = (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            }
        }
        let expected = (!crc).to_le_bytes();
        put(&mut packet);
        assert_eq!(packet[8..12], expected);
    }
}
