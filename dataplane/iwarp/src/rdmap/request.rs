//! The RDMA Read Request header (RFC 5040 section 4.4).

use crate::stag::Stag;
use zerocopy::byteorder::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Octets of a Read Request, as the length of a message.
pub(crate) const READ_REQUEST_LEN: u32 = 28;
/// Octets of a Read Request.
pub const READ_REQUEST_BYTES: usize = READ_REQUEST_LEN as usize;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Wire {
    sink: U32,
    sink_to: U64,
    size: U32,
    source: U32,
    source_to: U64,
}

const _: () = assert!(size_of::<Wire>() == READ_REQUEST_BYTES);

/// Asks for `size` octets from the receiver's `source`, to be put into the sender's `sink`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadRequest {
    /// The buffer at the side that asks.
    pub sink: Stag,
    /// Where in it the data goes, in octets.
    pub sink_to: u64,
    /// How much, in octets.
    pub size: u32,
    /// The buffer at the side that answers.
    pub source: Stag,
    /// Where in it the data lies, in octets.
    pub source_to: u64,
}

impl ReadRequest {
    /// Reads one. Any 28 octets are a Read Request.
    #[must_use]
    pub fn parse(octets: &[u8; READ_REQUEST_BYTES]) -> ReadRequest {
        let wire: &Wire = zerocopy::transmute_ref!(octets);
        ReadRequest {
            sink: Stag(wire.sink.get()),
            sink_to: wire.sink_to.get(),
            size: wire.size.get(),
            source: Stag(wire.source.get()),
            source_to: wire.source_to.get(),
        }
    }

    /// Its octets.
    #[must_use]
    pub fn octets(self) -> [u8; READ_REQUEST_BYTES] {
        zerocopy::transmute!(Wire {
            sink: self.sink.0.into(),
            sink_to: self.sink_to.into(),
            size: self.size.into(),
            source: self.source.0.into(),
            source_to: self.source_to.into(),
        })
    }

    /// What is left of it after `octets` of its response (section 4.8).
    #[inline]
    #[must_use]
    pub fn skip(self, octets: u32) -> ReadRequest {
        ReadRequest {
            sink_to: self.sink_to.wrapping_add(u64::from(octets)),
            size: self.size.saturating_sub(octets),
            source_to: self.source_to.wrapping_add(u64::from(octets)),
            ..self
        }
    }
}
