//! The layer below: an SCTP association, as messages on numbered streams.

use std::fmt;

/// An SCTP stream number; the DDP stream is the pair of streams with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u16);

/// The payload protocol identifier of a chunk (RFC 5043 section 5.2), in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Ppid {
    /// A DDP segment.
    Segment = 16,
    /// A session control message.
    Control = 17,
}

/// The longest DDP segment that goes into one chunk, in octets, the DDP-SSN before it not counted
/// (RFC 5043 section 9): never below [`SegmentBytes::LEAST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentBytes(u16);

impl SegmentBytes {
    /// What every adaptation takes: room for a control message with 512 octets of private data.
    pub const LEAST: SegmentBytes = SegmentBytes(516);

    /// A segment of that many octets; `None` below 516, and above what 16 bits with the DDP-SSN
    /// can say.
    #[must_use]
    pub fn new(octets: usize) -> Option<SegmentBytes> {
        let octets = u16::try_from(octets).ok()?;
        let least = SegmentBytes::LEAST.0;
        let most = u16::MAX.wrapping_sub(2);
        (least..=most)
            .contains(&octets)
            .then_some(SegmentBytes(octets))
    }

    /// What goes into a chunk of user data of that many octets, or [`SegmentBytes::LEAST`] where
    /// that is more: then SCTP has to fragment, because IP would have to.
    #[must_use]
    pub fn of_chunk(octets: usize) -> SegmentBytes {
        let most = usize::from(u16::MAX).wrapping_sub(2);
        let segment = octets.saturating_sub(2).min(most);
        SegmentBytes::new(segment).unwrap_or(SegmentBytes::LEAST)
    }

    /// In octets.
    #[inline]
    #[must_use]
    pub fn octets(self) -> usize {
        usize::from(self.0)
    }
}

/// The layer below has no room now. Nothing was taken; try the same chunk again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no room in the layer below")
    }
}

impl std::error::Error for Busy {}

/// An association that sends. What it must do beyond this trait is in the crate's essay.
pub trait Lower {
    /// The longest segment, as of now. It may change from one call to the next; what was taken
    /// stays as it is.
    fn segment_bytes(&self) -> SegmentBytes;

    /// Sends one chunk of `len` octets, unordered, written by `fill` into memory of the layer's
    /// own. Once taken it arrives, or the association is lost.
    fn send(
        &mut self,
        stream: StreamId,
        ppid: Ppid,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Busy>;
}
