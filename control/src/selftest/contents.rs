//! What is in the files: octets that look random, and are the same for the same seed.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The octets of one file, without an end. SplitMix64: every seed gives another stream, and no
/// stretch of one repeats, so that octets in the wrong place do not go unnoticed.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    state: u64,
}

impl Contents {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next octets. Lengths other than multiples of eight cut the stream short there.
    pub(super) fn fill(&mut self, into: &mut [u8]) {
        for chunk in into.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

/// A SHA-256 in progress.
#[derive(Default)]
pub(super) struct Sum(Sha256);

impl Sum {
    pub(super) fn add(&mut self, octets: &[u8]) {
        self.0.update(octets);
    }

    /// In hexadecimal.
    pub(super) fn finish(self) -> String {
        self.0
            .finalize()
            .iter()
            .fold(String::with_capacity(64), |mut text, octet| {
                // Writing to a String cannot fail.
                let _ = write!(text, "{octet:02x}");
                text
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_octets_in_any_pieces_of_eight() {
        let (mut whole, mut pieces) = ([0; 64], [0; 64]);
        Contents::new(7).fill(&mut whole);
        let mut contents = Contents::new(7);
        pieces.chunks_mut(16).for_each(|piece| contents.fill(piece));
        assert_eq!(whole, pieces);
        Contents::new(8).fill(&mut pieces);
        assert_ne!(whole, pieces);
    }

    #[test]
    fn sum_of_nothing_is_the_well_known_one() {
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sum::default().finish(), expected);
    }
}
