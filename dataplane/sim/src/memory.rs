//! One end's arena and the pool over it, made to catch whoever uses memory that is not his.
//!
//! Every block lies between two canaries, looked at when it is released. Memory that nobody
//! owns is full of [`POISON`], so that what is read too late is recognised in the octets that
//! arrive. Blocks are handed out walking through the arena, so that freed memory rests a while.

use rpcrdma_engine::Span;
use std::collections::BTreeMap;

/// What fills memory that nobody owns.
pub const POISON: u8 = 0xdb;
const CANARY: u8 = 0xca;
const CANARY_BYTES: u64 = 16;

/// An arena, and who has which part of it.
pub struct Memory {
    octets: Vec<u8>,
    /// Length of each block in use, by its offset.
    blocks: BTreeMap<u64, u32>,
    cursor: u64,
    in_use: u64,
}

impl Memory {
    /// An arena of `bytes` octets, all free.
    #[must_use]
    pub fn new(bytes: usize) -> Memory {
        Memory {
            octets: vec![POISON; bytes],
            blocks: BTreeMap::new(),
            cursor: 0,
            in_use: 0,
        }
    }

    /// Takes `len` octets; `None` when there is no such gap.
    pub fn reserve(&mut self, len: u32) -> Option<Span> {
        let need = u64::from(len) + 2 * CANARY_BYTES;
        let at = self.gap(self.cursor, need).or_else(|| self.gap(0, need))?;
        let offset = at + CANARY_BYTES;
        self.cursor = at + need;
        self.blocks.insert(offset, len);
        self.in_use += u64::from(len);
        self.paint(at, CANARY_BYTES, CANARY);
        self.paint(offset + u64::from(len), CANARY_BYTES, CANARY);
        Some(Span { offset, len })
    }

    /// Gives a block back, exactly as it was taken.
    pub fn release(&mut self, span: Span) {
        let len = self.blocks.remove(&span.offset);
        assert_eq!(len, Some(span.len), "released {span:?}, which is no block");
        self.check_canaries(span);
        let before = span.offset - CANARY_BYTES;
        self.paint(before, u64::from(span.len) + 2 * CANARY_BYTES, POISON);
        self.in_use -= u64::from(span.len);
    }

    /// Fills a block with poison: its owner has promised not to look before something is put in.
    pub fn spoil(&mut self, span: Span) {
        self.paint(span.offset, u64::from(span.len), POISON);
    }

    /// The octets of a span, which lies in one block in use.
    #[must_use]
    pub fn octets(&self, span: Span) -> &[u8] {
        self.check_owned(span);
        &self.octets[range(span)]
    }

    /// The same, to be written.
    pub fn octets_mut(&mut self, span: Span) -> &mut [u8] {
        self.check_owned(span);
        &mut self.octets[range(span)]
    }

    /// Blocks in use.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Octets of the blocks in use.
    #[must_use]
    pub fn bytes_in_use(&self) -> u64 {
        self.in_use
    }

    fn check_owned(&self, span: Span) {
        if span.len == 0 {
            return;
        }
        let block = self.blocks.range(..=span.offset).next_back();
        let inside = block
            .is_some_and(|(at, len)| span.offset + u64::from(span.len) <= at + u64::from(*len));
        assert!(inside, "{span:?} is not in a block in use");
    }

    fn check_canaries(&self, span: Span) {
        let end = span.offset + u64::from(span.len);
        for at in [span.offset - CANARY_BYTES, end] {
            let canary = &self.octets[at as usize..(at + CANARY_BYTES) as usize];
            assert!(
                canary.iter().all(|octet| *octet == CANARY),
                "written beyond {span:?}"
            );
        }
    }

    fn paint(&mut self, at: u64, len: u64, with: u8) {
        self.octets[at as usize..(at + len) as usize].fill(with);
    }

    /// Where `need` octets are free, from `from` on.
    fn gap(&self, from: u64, need: u64) -> Option<u64> {
        let before = self.blocks.range(..from).next_back();
        let end = |(at, len): (&u64, &u32)| at + u64::from(*len) + CANARY_BYTES;
        let mut at = before.map_or(from, |block| end(block).max(from));
        for block in self.blocks.range(from..) {
            if at + need <= block.0 - CANARY_BYTES {
                return Some(at);
            }
            at = at.max(end(block));
        }
        (at + need <= self.octets.len() as u64).then_some(at)
    }
}

fn range(span: Span) -> std::ops::Range<usize> {
    let start = span.offset as usize;
    start..start + span.len as usize
}

/// True when the two have an octet in common.
#[must_use]
pub fn overlap(a: Span, b: Span) -> bool {
    let end = |span: Span| span.offset + u64::from(span.len);
    a.len > 0 && b.len > 0 && a.offset < end(b) && b.offset < end(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_and_the_arena_is_whole_again() {
        let mut memory = Memory::new(1000);
        let mut blocks = Vec::new();
        while let Some(block) = memory.reserve(100) {
            memory.octets_mut(block).fill(1);
            blocks.push(block);
        }
        assert_eq!(blocks.len(), 7);
        memory.release(blocks.remove(3));
        blocks.push(memory.reserve(100).expect("the gap"));
        blocks.drain(..).for_each(|block| memory.release(block));
        assert_eq!((memory.blocks(), memory.bytes_in_use()), (0, 0));
        assert!(memory.octets.iter().all(|octet| *octet == POISON));
    }

    #[test]
    #[should_panic(expected = "not in a block in use")]
    fn memory_that_was_released_is_not_to_be_looked_at() {
        let mut memory = Memory::new(1000);
        let block = memory.reserve(10).expect("room");
        memory.release(block);
        let _ = memory.octets(block);
    }

    #[test]
    #[should_panic(expected = "written beyond")]
    fn a_write_beyond_a_block_is_found() {
        let mut memory = Memory::new(1000);
        let block = memory.reserve(10).expect("room");
        memory.octets[block.offset as usize + 10] = 0;
        memory.release(block);
    }
}
