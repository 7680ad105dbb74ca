//! Registered memory: one mapping, named by [`Span`]s.
//!
//! # Who may touch what
//!
//! An arena is written from three sides: its owner (the lcore), the fabric on behalf of its
//! peers (arriving messages, RDMA Writes), and the system (`readv` from a socket). None of them
//! knows of the others, and none of them takes a lock. So the arena itself never forms a
//! reference to its octets, except where the caller promises that nobody writes them: that is
//! the contract of the unsafe functions here, and it is kept by ownership of *spans*. A span
//! comes from the [`Pool`](crate::pool::Pool) and belongs to whoever reserved it until it is
//! released; while it is posted as a receive or exposed for writing, the fabric may write it
//! and nobody looks; afterwards it is its owner's again. Handing a span over is done by a
//! completion, which orders the octets before it.
//!
//! Two peers that ask the fabric to write the same octets at the same time get some mixture of
//! both, as from a real adapter: the copying is done by raw copies whose torn results nobody
//! reads as anything but octets.
//!
//! A span that is not inside the arena is never followed: it reads as empty, and writes to it
//! do nothing and say so.

use crate::Span;
use crate::mapping::Mapping;
use crate::short;
use std::io::{self, IoSlice, IoSliceMut};
use std::ptr::NonNull;

pub use crate::mapping::{Hugepages, Pages};
pub use crate::tract::{Keeper, Tract};

/// One region of memory that a port registers as a whole.
#[derive(Debug)]
pub struct Arena {
    mapping: Mapping,
    tract: Extent,
}

// SAFETY: of its two parts the mapping is `Send`, and the other is an address alone.
unsafe impl Send for Arena {}
// SAFETY: as above: the mapping is `Sync`.
unsafe impl Sync for Arena {}

/// A run of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first octet.
    pub start: NonNull<u8>,
    /// Its octets.
    pub bytes: u64,
}

impl Arena {
    /// Maps `bytes` octets (rounded up to whole pages), zeroed, not yet resident.
    ///
    /// # Errors
    ///
    /// What the system says: no memory, or no huge pages with [`Hugepages::Require`].
    pub fn map(bytes: u64, hugepages: Hugepages) -> io::Result<Arena> {
        let mapping = Mapping::new(bytes, hugepages)?;
        let tract = Extent {
            start: mapping.start(),
            bytes: mapping.len() as u64,
        };
        Ok(Arena { mapping, tract })
    }

    /// Over a part of a tract.
    pub(crate) fn within(tract: Extent, mapping: Mapping) -> Arena {
        Arena { mapping, tract }
    }

    /// The run of memory that it is carved from, itself where it was mapped on its own. Arenas of
    /// one tract have the same here: a device needs to register it but once for all of them.
    ///
    /// It is an address and nothing more: who follows it must keep to the text above.
    #[must_use]
    pub fn tract(&self) -> Extent {
        self.tract
    }

    /// Its size in octets.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.mapping.len() as u64
    }

    /// Never true: an arena has at least one page.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mapping.len() == 0
    }

    /// Where it begins. As with [`Arena::tract`], an address and nothing more.
    #[inline]
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.mapping.start()
    }

    /// What kind of pages it got.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.mapping.pages()
    }

    /// Makes every page resident now, so that no first touch faults later.
    ///
    /// # Errors
    ///
    /// What the system says; the arena is as usable as before.
    pub fn prefault(&self) -> io::Result<()> {
        self.mapping.prefault()
    }

    /// Whether the whole span lies inside this arena.
    #[inline]
    #[must_use]
    pub fn contains(&self, span: Span) -> bool {
        // `len` of a mapping is below 2^47, so the subtraction after the first test is safe.
        span.offset <= self.len() && u64::from(span.len) <= self.len() - span.offset
    }

    /// Where a span begins.
    ///
    /// # Safety
    ///
    /// The span is inside: [`Arena::contains`].
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "below the length of a mapping"
    )]
    unsafe fn first(&self, span: Span) -> *mut u8 {
        // SAFETY: the offset is within the mapping, or one past its end for an empty span.
        let start = unsafe { self.mapping.start().add(span.offset as usize) };
        start.as_ptr()
    }

    /// Somebody named a span that is not inside: a mistake of our own.
    #[cold]
    fn outside(&self, span: Span) {
        debug_assert!(false, "{span:?} outside an arena of {}", self.len());
    }

    /// The octets of a span; empty (and a panic in debug builds) when it is not inside.
    ///
    /// # Safety
    ///
    /// Nobody writes any of these octets while the slice lives: the caller owns the span, it is
    /// not posted as a receive, and no exposure lets a peer write it.
    #[inline]
    #[must_use]
    pub unsafe fn octets(&self, span: Span) -> &[u8] {
        if !self.contains(span) {
            self.outside(span);
            return &[];
        }
        // SAFETY: it is inside.
        let start = unsafe { self.first(span) };
        // SAFETY: inside the mapping, which lives as long as `self`; every octet of a mapping is
        // initialised; the caller keeps writers away.
        unsafe { std::slice::from_raw_parts(start, span.len as usize) }
    }

    /// The octets of a span, to be changed; empty (and a panic in debug builds) when it is not
    /// inside.
    ///
    /// # Safety
    ///
    /// Nobody else reads or writes any of these octets while the slice lives.
    #[inline]
    #[must_use]
    #[expect(
        clippy::mut_from_ref,
        reason = "spans, not the arena, are owned: see the module text"
    )]
    pub unsafe fn octets_mut(&self, span: Span) -> &mut [u8] {
        if !self.contains(span) {
            self.outside(span);
            return &mut [];
        }
        // SAFETY: it is inside.
        let start = unsafe { self.first(span) };
        // SAFETY: inside the mapping, which lives as long as `self`; every octet of a mapping is
        // initialised; the caller keeps everybody else away.
        unsafe { std::slice::from_raw_parts_mut(start, span.len as usize) }
    }

    /// Copies `from` to the start of `span`. False, and nothing done, when the span is not
    /// inside or shorter than `from`.
    ///
    /// # Safety
    ///
    /// No slice over these octets lives, and nobody else writes them meanwhile.
    #[inline]
    pub unsafe fn fill(&self, span: Span, from: &[u8]) -> bool {
        if from.len() > span.len as usize || !self.contains(span) {
            return false;
        }
        // SAFETY: it is inside.
        let start = unsafe { self.first(span) };
        // SAFETY: `from` is readable, the destination is inside the mapping; they do not
        // overlap, because no slice over the destination lives.
        unsafe { short::copy(from.as_ptr(), start, from.len()) };
        true
    }

    /// Copies all of `span` to the start of the memory at `to`. False, and nothing done, when
    /// the span is not inside.
    ///
    /// # Safety
    ///
    /// `to` is good for writing `span.len` octets, and is not in this span. The octets may be
    /// written meanwhile by a peer: then some mixture arrives.
    #[inline]
    pub unsafe fn copy_out(&self, span: Span, to: *mut u8) -> bool {
        if !self.contains(span) {
            return false;
        }
        // SAFETY: it is inside.
        let start = unsafe { self.first(span) };
        // SAFETY: the source is inside the mapping, the destination is the caller's promise.
        unsafe { short::copy(start, to, span.len as usize) };
        true
    }

    /// Copies `len` octets at `from` to the start of `span`. False, and nothing done, when the
    /// span is not inside or shorter than that.
    ///
    /// # Safety
    ///
    /// `from` is good for reading `len` octets, and is not in this span. No slice over the
    /// span's octets lives.
    #[inline]
    pub unsafe fn copy_in(&self, span: Span, from: *const u8, len: u32) -> bool {
        if span.len < len || !self.contains(span) {
            return false;
        }
        // SAFETY: it is inside.
        let start = unsafe { self.first(span) };
        // SAFETY: the source is the caller's promise, the destination is inside the mapping.
        unsafe { short::copy(from, start, len as usize) };
        true
    }

    /// Copies all of `from` in `source` to the start of `to` in this arena: what an RDMA
    /// transfer is in one process. The two may be the same arena and may overlap. False, and
    /// nothing done, when either span is not inside, or `to` is the shorter one.
    ///
    /// # Safety
    ///
    /// No slice over the destination's octets lives.
    #[inline]
    pub unsafe fn transfer(&self, to: Span, source: &Arena, from: Span) -> bool {
        if to.len < from.len || !self.contains(to) || !source.contains(from) {
            return false;
        }
        // SAFETY: it is inside.
        let target = unsafe { self.first(to) };
        // SAFETY: as above.
        let octets = unsafe { source.first(from) };
        // SAFETY: both are inside their mappings; `copy_from` allows overlap.
        unsafe { target.copy_from(octets, from.len as usize) };
        true
    }

    /// A span as one element of a vectored write.
    ///
    /// # Safety
    ///
    /// As [`Arena::octets`].
    #[inline]
    #[must_use]
    pub unsafe fn io_slice(&self, span: Span) -> IoSlice<'_> {
        // SAFETY: the same contract.
        IoSlice::new(unsafe { self.octets(span) })
    }

    /// A span as one element of a vectored read.
    ///
    /// # Safety
    ///
    /// As [`Arena::octets_mut`].
    #[inline]
    #[must_use]
    pub unsafe fn io_slice_mut(&self, span: Span) -> IoSliceMut<'_> {
        // SAFETY: the same contract.
        IoSliceMut::new(unsafe { self.octets_mut(span) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena() -> Arena {
        Arena::map(8192, Hugepages::Off).expect("two pages")
    }

    fn span(offset: u64, len: u32) -> Span {
        Span { offset, len }
    }

    #[test]
    fn spans_outside_are_never_followed() {
        let arena = arena();
        let end = arena.len();
        assert!(arena.contains(span(end, 0)));
        assert!(arena.contains(span(end - 1, 1)));
        for wrong in [
            span(end, 1),
            span(end - 1, 2),
            span(u64::MAX, 1),
            span(u64::MAX, u32::MAX),
        ] {
            assert!(!arena.contains(wrong), "{wrong:?}");
            // SAFETY: nobody else has this arena.
            assert!(!unsafe { arena.fill(wrong, b"x") });
            // SAFETY: as above, and the source has one octet.
            assert!(!unsafe { arena.copy_in(wrong, b"x".as_ptr(), 1) });
            // SAFETY: as above.
            assert!(!unsafe { arena.transfer(wrong, &arena, span(0, 1)) });
        }
    }

    #[test]
    fn what_is_filled_is_read_back() {
        let arena = arena();
        // SAFETY: nobody else has this arena.
        assert!(unsafe { arena.fill(span(4096, 5), b"hello") });
        // SAFETY: as above.
        let longer = unsafe { arena.fill(span(4096, 4), b"hello") };
        assert!(!longer);
        // SAFETY: as above.
        assert_eq!(unsafe { arena.octets(span(4096, 6)) }, b"hello\0");
    }

    #[test]
    fn transfers_may_overlap() {
        let arena = arena();
        // SAFETY: nobody else has this arena.
        assert!(unsafe { arena.fill(span(0, 8), b"abcdefgh") });
        // SAFETY: as above.
        assert!(unsafe { arena.transfer(span(2, 6), &arena, span(0, 6)) });
        // SAFETY: as above.
        assert_eq!(unsafe { arena.octets(span(0, 8)) }, b"ababcdef");
    }

    // The interpreter that checks pointers has no sockets.
    #[cfg(not(miri))]
    #[test]
    fn vectored_io_goes_straight_into_spans() {
        use std::io::{Read, Write};
        let arena = arena();
        let (mut here, mut there) = std::os::unix::net::UnixStream::pair().expect("a pair");
        here.write_all(b"headpayload").expect("room for eleven");
        // SAFETY: nobody else has this arena, and the two spans are apart.
        let head = unsafe { arena.io_slice_mut(span(0, 4)) };
        // SAFETY: as above.
        let body = unsafe { arena.io_slice_mut(span(4096, 7)) };
        assert_eq!(there.read_vectored(&mut [head, body]).expect("octets"), 11);
        // SAFETY: both slices are gone.
        let body = unsafe { arena.io_slice(span(4096, 7)) };
        assert_eq!(&*body, b"payload");
    }
}
