//! Whether a message is whole.
//!
//! DDP does not ask its receiver to verify that all of a message came (RFC 5041 section 5.2). But
//! what did not come is what the buffer held before, perhaps another peer's, and a peer that
//! leaves gaps on purpose would have its own message read with those octets in it (RFC 5042
//! section 6.3.2). So here a message is delivered only when its segments tile it: each octet came
//! exactly once.
//!
//! Segments come in any order, so a list of what is there would need room for as many gaps as a
//! peer cares to leave. Instead each buffer has one sum. With `h` a function that the peer does
//! not know, and nothing at 0, a segment from octet `a` to octet `b` adds `h(b) - h(a)`. For
//! segments that tile a message of `n` octets the sum telescopes to `h(n)`. And only for those: if
//! the sum of any segments is that, every point but 0 and `n` is an end as often as it is a
//! beginning, so the segments are a path from 0 to `n` and cycles; every segment leads forward, so
//! there are no cycles, and a path of forward steps is a tiling.
//!
//! Anything else comes out right by chance only. `h` is SipHash-2-4 under a key of the endpoint's
//! own; as far as that is a pseudo-random function, the chance with `s` segments is at most `s` in
//! 2^64. (Some point counts `c` times too often, `c` no more than `s`, and `c * h` is what it must
//! be for the greatest common divisor of `c` and 2^64 of all values of `h`.) A peer that tries it
//! never sees a value of `h`, loses its session each time, and meets another key in the next.

use super::siphash;
use crate::reject::Reject;

/// The secret function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiling(siphash::Key);

impl Tiling {
    /// From a key that nobody else knows.
    pub(crate) fn new(key: siphash::Key) -> Tiling {
        Tiling(key)
    }

    /// A message of one segment is found whole without a hash, as its one beginning is 0.
    #[inline]
    fn point(self, at: u32) -> u64 {
        if at == 0 { 0 } else { siphash::of(self.0, at) }
    }

    /// What a piece from `from` to `to` adds to a sum.
    #[inline]
    pub(crate) fn piece(self, from: u32, to: u32) -> u64 {
        self.point(to).wrapping_sub(self.point(from))
    }
}

/// What has come of one untagged message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Assembly {
    /// What the segments add, but for `h` of the message's end: nothing is left when it is whole.
    sum: u64,
    /// Its length, once its last segment has come.
    total: Option<u32>,
}

impl Assembly {
    /// A segment of `len` octets at `mo`, for a buffer of `room` octets. After an error the stream
    /// ends, and the assembly is of no use.
    #[inline]
    pub(crate) fn add(
        &mut self,
        tiling: Tiling,
        mo: u32,
        len: usize,
        last: bool,
        room: u32,
    ) -> Result<(), Reject> {
        if mo > room {
            return Err(Reject::MessageOffset);
        }
        let end = u32::try_from(len)
            .ok()
            .and_then(|len| mo.checked_add(len))
            .filter(|&end| end <= room)
            .ok_or(Reject::MessageLong)?;
        // A second end, or octets beyond the first.
        if self.total.is_some_and(|total| last || end > total) {
            return Err(Reject::MessageOffset);
        }
        let closed = if last {
            self.total = Some(end);
            0
        } else {
            tiling.point(end)
        };
        let opened = tiling.point(mo);
        self.sum = self.sum.wrapping_add(closed).wrapping_sub(opened);
        Ok(())
    }

    /// The length of the message, if it is whole.
    #[inline]
    pub(crate) fn whole(&self) -> Option<u32> {
        self.total.filter(|_| self.sum == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROOM: u32 = 12;

    /// The same question, asked octet by octet.
    fn tiles(pieces: &[(u32, u32)], total: u32) -> bool {
        let count = |octet: u32| {
            let covers = |&&(from, to): &&(u32, u32)| from <= octet && octet < to;
            pieces.iter().filter(covers).count()
        };
        (0..ROOM).all(|octet| count(octet) == usize::from(octet < total))
    }

    proptest! {
        /// Few octets and many pieces, so that tilings do come up.
        #[test]
        fn a_sum_is_right_for_tilings_alone(
            key: [u64; 2],
            cuts in prop::collection::vec((0..=ROOM, 0..=ROOM), 0..6),
        ) {
            let tiling = Tiling::new(key);
            let pieces: Vec<_> = cuts.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
            let sum = pieces.iter().fold(0_u64, |sum, &(from, to)| sum.wrapping_add(tiling.piece(from, to)));
            for total in 0..=ROOM {
                prop_assert_eq!(sum == tiling.piece(0, total), tiles(&pieces, total));
            }
        }

        /// The same of what is asked in the end, with one of the pieces the last.
        #[test]
        fn what_is_whole_is_tiled(
            key: [u64; 2],
            cuts in prop::collection::vec((0..=ROOM, 0..=ROOM), 1..6),
            last: prop::sample::Index,
        ) {
            let tiling = Tiling::new(key);
            let pieces: Vec<_> = cuts.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
            let last = last.index(pieces.len());
            let mut assembly = Assembly::default();
            let fits = pieces.iter().enumerate().all(|(nth, &(from, to))| {
                assembly.add(tiling, from, (to - from) as usize, nth == last, ROOM).is_ok()
            });
            let total = pieces[last].1;
            if fits {
                prop_assert_eq!(assembly.whole(), tiles(&pieces, total).then_some(total));
            }
        }

        #[test]
        fn every_tiling_in_any_order_is_whole(
            key: [u64; 2],
            cuts in prop::collection::btree_set(1..500_u32, 0..20),
            order in Just((0..21_usize).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let tiling = Tiling::new(key);
            let mut points = vec![0];
            points.extend(&cuts);
            points.push(500);
            let mut assembly = Assembly::default();
            for at in order.into_iter().filter(|&at| at + 1 < points.len()) {
                let (from, to) = (points[at], points[at + 1]);
                prop_assert_eq!(assembly.whole(), None);
                assembly.add(tiling, from, (to - from) as usize, to == 500, 500).unwrap();
            }
            prop_assert_eq!(assembly.whole(), Some(500));
        }
    }

    #[test]
    fn section_7_1_offsets() {
        let tiling = Tiling::new([1, 2]);
        let add = |mo, len| Assembly::default().add(tiling, mo, len, false, 100);
        assert_eq!(add(101, 0), Err(Reject::MessageOffset));
        assert_eq!(add(100, 0), Ok(()));
        assert_eq!(add(100, 1), Err(Reject::MessageLong));
        assert_eq!(add(0, 101), Err(Reject::MessageLong));
        assert_eq!(add(100, usize::MAX), Err(Reject::MessageLong));
        assert_eq!(add(u32::MAX, 1), Err(Reject::MessageOffset));
    }

    #[test]
    fn a_message_ends_once_and_where_it_ends() {
        let tiling = Tiling::new([1, 2]);
        let mut assembly = Assembly::default();
        assembly.add(tiling, 50, 10, true, 100).unwrap();
        let mut again = assembly;
        let refused = again.add(tiling, 50, 10, true, 100);
        assert_eq!(refused, Err(Reject::MessageOffset));
        let refused = assembly.add(tiling, 50, 11, false, 100);
        assert_eq!(refused, Err(Reject::MessageOffset));
    }

    #[test]
    fn a_message_of_no_octets_is_whole() {
        let tiling = Tiling::new([7, 8]);
        let mut assembly = Assembly::default();
        assert_eq!(assembly.whole(), None);
        assembly.add(tiling, 0, 0, true, 0).unwrap();
        assert_eq!(assembly.whole(), Some(0));
    }
}
