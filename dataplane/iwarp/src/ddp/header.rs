//! The two headers (RFC 5041 section 4). Big-endian on the wire, host order here.

use crate::reject::Reject;
use crate::stag::Stag;
use zerocopy::byteorder::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Octets of a tagged header.
pub const TAGGED_BYTES: usize = 14;
/// Octets of an untagged header.
pub const UNTAGGED_BYTES: usize = 18;

const TAGGED: u8 = 0x80;
const LAST: u8 = 0x40;
const VERSION_MASK: u8 = 0x03;
const VERSION: u8 = 1;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct TaggedWire {
    control: u8,
    ulp: u8,
    stag: U32,
    to: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct UntaggedWire {
    control: u8,
    ulp: u8,
    ulp_word: U32,
    queue: U32,
    msn: U32,
    mo: U32,
}

const _: () = assert!(size_of::<TaggedWire>() == TAGGED_BYTES);
const _: () = assert!(size_of::<UntaggedWire>() == UNTAGGED_BYTES);

/// A segment for a buffer that its sender names (section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tagged {
    /// The last segment of its message.
    pub last: bool,
    /// Reserved for the upper layer: RDMAP's control octet.
    pub ulp: u8,
    /// The buffer.
    pub stag: Stag,
    /// Where in it the payload goes, in octets.
    pub to: u64,
}

/// A segment for a buffer of a queue (section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untagged {
    /// The last segment of its message, the one with the highest offset.
    pub last: bool,
    /// Reserved for the upper layer: RDMAP's control octet.
    pub ulp: u8,
    /// Reserved for the upper layer: the STag to be invalidated, or zero.
    pub ulp_word: u32,
    /// The queue.
    pub queue: u32,
    /// The message of that queue; the first is number 1.
    pub msn: u32,
    /// Where in the message the payload goes, in octets.
    pub mo: u32,
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// For a tagged buffer.
    Tagged(Tagged),
    /// For an untagged buffer.
    Untagged(Untagged),
}

/// Reads a segment: its header and its payload. Reserved bits are not looked at (section 4.1).
///
/// # Errors
///
/// [`Reject::SegmentShort`]; [`Reject::TaggedVersion`] and [`Reject::UntaggedVersion`] for another
/// version, by the T bit.
#[inline]
pub fn parse(segment: &[u8]) -> Result<(Header, &[u8]), Reject> {
    let control = *segment.first().ok_or(Reject::SegmentShort)?;
    let current = control & VERSION_MASK == VERSION;
    let last = control & LAST != 0;
    if control & TAGGED != 0 {
        if !current {
            return Err(Reject::TaggedVersion);
        }
        let (wire, payload) =
            TaggedWire::ref_from_prefix(segment).map_err(|_| Reject::SegmentShort)?;
        let header = Tagged {
            last,
            ulp: wire.ulp,
            stag: Stag(wire.stag.get()),
            to: wire.to.get(),
        };
        return Ok((Header::Tagged(header), payload));
    }
    if !current {
        return Err(Reject::UntaggedVersion);
    }
    let (wire, payload) =
        UntaggedWire::ref_from_prefix(segment).map_err(|_| Reject::SegmentShort)?;
    let header = Untagged {
        last,
        ulp: wire.ulp,
        ulp_word: wire.ulp_word.get(),
        queue: wire.queue.get(),
        msn: wire.msn.get(),
        mo: wire.mo.get(),
    };
    Ok((Header::Untagged(header), payload))
}

#[inline]
fn control(tagged: u8, last: bool) -> u8 {
    tagged | VERSION | if last { LAST } else { 0 }
}

impl Tagged {
    /// Writes the header to the front of `segment`, and gives the rest. `None` when there are
    /// fewer than [`TAGGED_BYTES`] octets.
    #[inline]
    pub fn emit(self, segment: &mut [u8]) -> Option<&mut [u8]> {
        let wire = TaggedWire {
            control: control(TAGGED, self.last),
            ulp: self.ulp,
            stag: self.stag.0.into(),
            to: self.to.into(),
        };
        let (head, payload) = segment.split_at_mut_checked(TAGGED_BYTES)?;
        head.copy_from_slice(wire.as_bytes());
        Some(payload)
    }
}

impl Untagged {
    /// Writes the header to the front of `segment`, and gives the rest. `None` when there are
    /// fewer than [`UNTAGGED_BYTES`] octets.
    #[inline]
    pub fn emit(self, segment: &mut [u8]) -> Option<&mut [u8]> {
        let wire = UntaggedWire {
            control: control(0, self.last),
            ulp: self.ulp,
            ulp_word: self.ulp_word.into(),
            queue: self.queue.into(),
            msn: self.msn.into(),
            mo: self.mo.into(),
        };
        let (head, payload) = segment.split_at_mut_checked(UNTAGGED_BYTES)?;
        head.copy_from_slice(wire.as_bytes());
        Some(payload)
    }
}
