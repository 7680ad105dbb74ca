//! Who has which part of an arena: a buddy allocator of one lcore, with short stacks before it.
//!
//! # How
//!
//! Memory is cut in blocks of 256 octets times a power of two, up to 8 MiB, each at a multiple
//! of its own size. A free block whose neighbour ("buddy") is free too is joined with it, so
//! that memory is never stranded in small pieces. The free blocks of one size are a
//! [`BitTree`], from which the lowest is taken: long-lived blocks gather at the low end.
//!
//! Up to 64 KiB a request gets one block. Above, the block is cut in eighths and the eighths
//! that are not needed go back at once: a 1 MiB payload with its headers costs 1.25 MiB, not 2.
//!
//! Before the buddy core each size up to 64 KiB has a stack of blocks that were released last:
//! the usual `reserve` and `release` are a pop and a push, and the memory is still in the
//! cache. Stacked blocks are joined again when a stack overflows or a request finds nothing.
//!
//! # What is promised
//!
//! No allocation after [`Pool::new`]; bounded steps for each call; the same calls give the same
//! spans; every span begins at a multiple of 256 octets of the arena; the ceiling is the
//! region's size and the octets in use, counted in whole blocks, never exceed it. Releasing
//! what was not reserved, or releasing it twice, is refused and counted (a panic in debug
//! builds): it never makes two owners of one octet.

use crate::Span;
use crate::bits::BitTree;

/// Smallest block, octets.
const GRAIN: u64 = 256;
/// Sizes of blocks: 256 octets to 8 MiB.
const ORDERS: usize = 16;
/// Sizes that have a stack: up to 64 KiB.
const STACKED: usize = 9;
/// Blocks a stack holds.
const STACK: usize = 32;
/// Longest span that can be reserved, octets.
pub const LONGEST: u32 = 8 << 20;

/// What a pool has given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Octets reserved now, in whole blocks.
    pub in_use_bytes: u64,
    /// The most that was ever reserved at once.
    pub peak_bytes: u64,
    /// What can be reserved at all.
    pub ceiling_bytes: u64,
    /// Requests that found nothing.
    pub refusals: u64,
    /// Releases of spans that were not reserved.
    pub foreign_releases: u64,
}

/// How many eighths of which block a length takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Class {
    order: usize,
    /// 8 for a whole block; 5 to 7 when the rest of the block goes back.
    eighths: u32,
}

impl Class {
    /// The class of a length up to [`LONGEST`].
    #[inline]
    fn of(len: u32) -> Class {
        let grains = len.saturating_sub(1) >> GRAIN.trailing_zeros();
        let order = (u32::BITS - grains.leading_zeros()) as usize;
        if order < STACKED {
            return Class { order, eighths: 8 };
        }
        let eighth = 1_u32 << (GRAIN.trailing_zeros() as usize + order - 3);
        Class {
            order,
            eighths: len.div_ceil(eighth),
        }
    }

    #[inline]
    fn bytes(self) -> u64 {
        (GRAIN << self.order) / 8 * u64::from(self.eighths)
    }

    /// A mark that no other class has, never zero.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "orders end at 15, eighths at 8"
    )]
    fn mark(self) -> u8 {
        (self.order as u32 * 16 + self.eighths) as u8
    }
}

/// The last blocks of one size that were released.
#[derive(Clone, Copy, Debug)]
struct Stack {
    len: usize,
    blocks: [u32; STACK],
}

/// An allocator over one region of an arena. Belongs to one lcore.
#[derive(Debug)]
pub struct Pool {
    /// Where the region begins in the arena; a multiple of [`GRAIN`].
    base: u64,
    stacks: [Stack; STACKED],
    /// At the first grain of each reserved span the mark of its class, elsewhere zero.
    marks: Box<[u8]>,
    /// Free blocks of each size, by number (grain number over size).
    free: [BitTree; ORDERS],
    /// Sizes that have free blocks: bit per order.
    sizes: u32,
    usage: Usage,
}

impl Pool {
    /// A pool over the `bytes` octets of an arena that begin at `base`. The ends are trimmed to
    /// multiples of 256 octets; a region beyond 2^40 octets is used up to there.
    #[must_use]
    pub fn new(base: u64, bytes: u64) -> Pool {
        let start = base.next_multiple_of(GRAIN);
        let bytes = bytes.saturating_sub(start - base).min(1 << 40);
        let grains = usize::try_from(bytes / GRAIN).unwrap_or(0);
        let mut pool = Pool {
            base: start,
            stacks: [Stack {
                len: 0,
                blocks: [0; STACK],
            }; STACKED],
            marks: vec![0; grains].into_boxed_slice(),
            free: std::array::from_fn(|order| BitTree::new(grains >> order)),
            sizes: 0,
            usage: Usage {
                ceiling_bytes: grains as u64 * GRAIN,
                ..Usage::default()
            },
        };
        pool.give(0, grains);
        pool
    }

    /// What is given out.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Octets that `len` octets cost in this allocator; `None` where they cannot be had at all.
    #[must_use]
    pub fn cost(len: u32) -> Option<u64> {
        (len <= LONGEST).then(|| Class::of(len).bytes())
    }

    /// Takes `len` octets. `None` when there are none so long, or `len` is above [`LONGEST`].
    #[inline]
    pub fn reserve(&mut self, len: u32) -> Option<Span> {
        if len > LONGEST {
            self.usage.refusals += 1;
            return None;
        }
        let class = Class::of(len);
        let grain = match self.pop(class.order) {
            Some(grain) => grain,
            None => self.carve(class)?,
        };
        self.marks[grain as usize] = class.mark();
        self.usage.in_use_bytes += class.bytes();
        self.usage.peak_bytes = self.usage.peak_bytes.max(self.usage.in_use_bytes);
        Some(Span {
            offset: self.base + u64::from(grain) * GRAIN,
            len,
        })
    }

    /// Gives back a span as [`Pool::reserve`] returned it.
    #[inline]
    pub fn release(&mut self, span: Span) {
        let Some((grain, class)) = self.reserved(span) else {
            self.usage.foreign_releases += 1;
            debug_assert!(false, "{span:?} is not reserved here");
            return;
        };
        self.marks[grain as usize] = 0;
        self.usage.in_use_bytes -= class.bytes();
        match self.stacks.get_mut(class.order) {
            Some(stack) if stack.len < STACK => {
                stack.blocks[stack.len] = grain;
                stack.len += 1;
            }
            _ => self.release_slowly(grain as usize, class),
        }
    }

    /// Where a span lies, when it is one that was reserved and not released.
    #[inline]
    fn reserved(&self, span: Span) -> Option<(u32, Class)> {
        let from_base = span.offset.wrapping_sub(self.base);
        if span.len > LONGEST || !from_base.is_multiple_of(GRAIN) {
            return None;
        }
        let grain = u32::try_from(from_base / GRAIN).ok()?;
        let class = Class::of(span.len);
        (self.marks.get(grain as usize) == Some(&class.mark())).then_some((grain, class))
    }

    #[inline]
    fn pop(&mut self, order: usize) -> Option<u32> {
        let stack = self.stacks.get_mut(order)?;
        stack.len = stack.len.checked_sub(1)?;
        Some(stack.blocks[stack.len])
    }

    /// Takes from the buddy core; once more, with every stack joined, where it has nothing.
    #[cold]
    #[inline(never)]
    fn carve(&mut self, class: Class) -> Option<u32> {
        let block = self.take(class.order).or_else(|| {
            for order in 0..STACKED {
                self.unstack(order, 0);
            }
            self.take(class.order)
        });
        let Some(grain) = block else {
            self.usage.refusals += 1;
            return None;
        };
        self.give(grain + kept(class), grain + (1 << class.order));
        u32::try_from(grain).ok()
    }

    #[cold]
    #[inline(never)]
    fn release_slowly(&mut self, grain: usize, class: Class) {
        self.unstack(class.order, STACK / 2);
        self.give(grain, grain + kept(class));
    }

    /// Brings a stack down to `keep` blocks, the oldest first.
    fn unstack(&mut self, order: usize, keep: usize) {
        let Some(stack) = self.stacks.get_mut(order) else {
            return;
        };
        let surplus = stack.len.saturating_sub(keep);
        let blocks = stack.blocks;
        stack.blocks.copy_within(surplus..stack.len, 0);
        stack.len -= surplus;
        for &grain in &blocks[..surplus] {
            self.join(grain as usize, order);
        }
    }

    /// Takes the lowest block of the smallest sufficient size, splitting it down to `order`.
    fn take(&mut self, order: usize) -> Option<usize> {
        let fitting = self.sizes & (u32::MAX << order);
        if fitting == 0 {
            return None;
        }
        let mut size = fitting.trailing_zeros() as usize;
        let number = self.free[size].first()?;
        self.remove(number, size);
        let grain = number << size;
        while size > order {
            size -= 1;
            self.insert((grain >> size) + 1, size);
        }
        Some(grain)
    }

    /// Puts the grains `from..to` into the core, as the largest blocks they make.
    fn give(&mut self, mut from: usize, to: usize) {
        while from < to {
            let aligned = (from | 1 << (ORDERS - 1)).trailing_zeros();
            let order = aligned.min((to - from).ilog2()) as usize;
            self.join(from, order);
            from += 1 << order;
        }
    }

    /// Puts one block into the core, joined with its buddy as long as that is free.
    fn join(&mut self, grain: usize, mut order: usize) {
        let mut number = grain >> order;
        while order < ORDERS - 1 && self.free[order].contains(number ^ 1) {
            self.remove(number ^ 1, order);
            number >>= 1;
            order += 1;
        }
        self.insert(number, order);
    }

    fn insert(&mut self, number: usize, order: usize) {
        self.free[order].insert(number);
        self.sizes |= 1 << order;
    }

    fn remove(&mut self, number: usize, order: usize) {
        self.free[order].remove(number);
        if self.free[order].first().is_none() {
            self.sizes &= !(1 << order);
        }
    }
}

/// Grains that a class keeps of its block.
fn kept(class: Class) -> usize {
    (class.eighths as usize) << class.order >> 3
}

#[cfg(test)]
mod tests;
