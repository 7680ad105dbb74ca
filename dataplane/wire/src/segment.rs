//! Segments as they lie in a header: arrays of big-endian entries, viewed in place.

use crate::types::Handle;
use zerocopy::{BigEndian, FromBytes, Immutable, IntoBytes, KnownLayout, U32, U64, Unaligned};

/// One `rpcrdma_segment`, as a value in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The key of the peer's memory.
    pub handle: Handle,
    /// Octets.
    pub length: u32,
    /// Where in that memory, in the peer's own terms.
    pub offset: u64,
}

impl Segment {
    /// True when the memory it names would go past the end of a 64-bit address space (V1-06).
    #[inline]
    #[must_use]
    pub const fn wraps(&self) -> bool {
        self.offset.checked_add(self.length as u64).is_none()
    }
}

/// The 16 octets of a segment in a header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawSegment {
    handle: U32<BigEndian>,
    length: U32<BigEndian>,
    offset: U64<BigEndian>,
}

/// The 24 octets of a Read list entry: the XDR "one more" flag, the position, the segment.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ReadSegment {
    more: U32<BigEndian>,
    position: U32<BigEndian>,
    target: RawSegment,
}

impl RawSegment {
    /// Its handle.
    #[inline]
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(self.handle.get())
    }

    /// The segment as a value.
    #[inline]
    #[must_use]
    pub fn value(&self) -> Segment {
        Segment {
            handle: self.handle(),
            length: self.length.get(),
            offset: self.offset.get(),
        }
    }
}

impl ReadSegment {
    /// The XDR flag before the entry: 1 in a list that was checked.
    #[inline]
    pub(crate) fn more(&self) -> u32 {
        self.more.get()
    }

    /// Offset of this segment's data in the un-reduced XDR stream, in octets.
    #[inline]
    #[must_use]
    pub fn position(&self) -> u32 {
        self.position.get()
    }

    /// Its handle.
    #[inline]
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.target.handle()
    }

    /// Octets of this segment.
    #[inline]
    #[must_use]
    pub fn length(&self) -> u32 {
        self.target.length.get()
    }

    /// The memory to read, as a value.
    #[inline]
    #[must_use]
    pub fn target(&self) -> Segment {
        self.target.value()
    }
}

/// A Read list of one entry, as it lies in a header.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct OneRead {
    pub(crate) read: ReadSegment,
    pub(crate) end: U32<BigEndian>,
}

/// A chunk of one segment, as it lies in a header: an entry of the Write list, or the Reply chunk.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct OneChunk {
    pub(crate) present: U32<BigEndian>,
    pub(crate) count: U32<BigEndian>,
    pub(crate) segment: RawSegment,
}
