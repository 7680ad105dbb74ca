//! The connection private data of RFC 8797: what a version-one peer says of itself while the
//! connection is being made.
//!
//! Eight octets: the magic number, the format version, flags, and the two buffer sizes, each as
//! one octet `n` meaning `(n + 1) * 1024` octets (section 4.2).

/// What the eight octets say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateData {
    /// The longest message the sender will Send, octets.
    pub send_bytes: u32,
    /// The longest message the sender can receive, octets.
    pub receive_bytes: u32,
    /// The sender copes with Send With Invalidate (section 4.1).
    pub remote_invalidate: bool,
}

const MAGIC: u32 = 0xF6AB_0E18;
const FORMAT: u8 = 1;
const REMOTE_INVALIDATE: u8 = 1;

impl PrivateData {
    /// Octets on the wire.
    pub const BYTES: usize = 8;

    /// What is true of a peer that sent none: 1024 octets each way, no remote invalidation
    /// (section 5.1).
    pub const ABSENT: PrivateData = PrivateData {
        send_bytes: 1024,
        receive_bytes: 1024,
        remote_invalidate: false,
    };

    /// The eight octets. Sizes are rounded down to a multiple of 1024 octets, and held between
    /// 1 KiB and 256 KiB, which is what the format can say.
    #[must_use]
    pub fn emit(&self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = MAGIC.to_be_bytes();
        let flags = if self.remote_invalidate {
            REMOTE_INVALIDATE
        } else {
            0
        };
        let send = encode_size(self.send_bytes);
        let receive = encode_size(self.receive_bytes);
        [a, b, c, d, FORMAT, flags, send, receive]
    }

    /// The first private data of this format in `octets`, wherever it begins: other users of
    /// the connection manager may have put theirs before it (section 5.2).
    #[must_use]
    pub fn find(octets: &[u8]) -> Option<PrivateData> {
        octets.windows(Self::BYTES).find_map(|window| match window {
            [a, b, c, d, FORMAT, flags, send, receive]
                if u32::from_be_bytes([*a, *b, *c, *d]) == MAGIC =>
            {
                Some(PrivateData {
                    send_bytes: decode_size(*send),
                    receive_bytes: decode_size(*receive),
                    remote_invalidate: flags & REMOTE_INVALIDATE != 0,
                })
            }
            _ => None,
        })
    }
}

/// `(n >> 10) - 1`, held to what one octet can say.
fn encode_size(bytes: u32) -> u8 {
    let kibibytes = (bytes >> 10).clamp(1, 256);
    u8::try_from(kibibytes.wrapping_sub(1)).unwrap_or(u8::MAX)
}

fn decode_size(octet: u8) -> u32 {
    u32::from(octet).wrapping_add(1) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: PrivateData = PrivateData {
        send_bytes: 4096,
        receive_bytes: 4096,
        remote_invalidate: true,
    };

    #[test]
    fn octets_are_those_of_section_4_2() {
        assert_eq!(LINUX.emit(), [0xF6, 0xAB, 0x0E, 0x18, 1, 1, 3, 3]);
    }

    #[test]
    fn found_at_every_offset_and_never_across_the_end() {
        for before in 0..64 {
            let mut octets = [0xF6_u8; 72];
            octets[before..before + 8].copy_from_slice(&LINUX.emit());
            assert_eq!(PrivateData::find(&octets), Some(LINUX), "at {before}");
            assert_eq!(PrivateData::find(&octets[..before + 7]), None);
        }
    }

    #[test]
    fn another_format_version_is_not_ours() {
        let mut octets = [0_u8; 16];
        octets[..8].copy_from_slice(&LINUX.emit());
        octets[4] = 2;
        octets[8..].copy_from_slice(&PrivateData::ABSENT.emit());
        assert_eq!(PrivateData::find(&octets), Some(PrivateData::ABSENT));
    }

    #[test]
    fn sizes_are_held_to_what_the_format_can_say() {
        for (bytes, said) in [(0, 1024), (1023, 1024), (5000, 4096), (1 << 18, 1 << 18)] {
            let data = PrivateData {
                send_bytes: bytes,
                ..PrivateData::ABSENT
            };
            assert_eq!(PrivateData::find(&data.emit()).unwrap().send_bytes, said);
        }
        let data = PrivateData {
            receive_bytes: u32::MAX,
            ..PrivateData::ABSENT
        };
        assert_eq!(
            PrivateData::find(&data.emit()).unwrap().receive_bytes,
            1 << 18
        );
    }
}
