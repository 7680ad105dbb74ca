//! Walking chunk lists without judging them, to find what is behind them.
//!
//! Only refused messages come here: whoever has to be told what was wrong, or not to be told,
//! depends on the direction of the RPC message behind lists that may break any rule.

use crate::octets::take_word;

/// What is to be known about lists that were refused.
pub(crate) struct Skimmed<'m> {
    /// Read list entries.
    pub(crate) reads: usize,
    /// A Reply chunk is there.
    pub(crate) reply: bool,
    /// What is behind the lists.
    pub(crate) payload: &'m [u8],
}

/// Walks the three lists of version one; `None` where they cannot be walked.
pub(crate) fn skim(lists: &[u8]) -> Option<Skimmed<'_>> {
    let mut rest = lists;
    let mut reads: usize = 0;
    while let (true, after) = take_flag(rest)? {
        (_, rest) = after.split_at_checked(20)?;
        reads = reads.saturating_add(1);
    }
    (_, rest) = take_flag(rest)?;
    while let (true, after) = take_flag(rest)? {
        rest = skip_chunk(after)?;
    }
    (_, rest) = take_flag(rest)?;
    let (reply, after) = take_flag(rest)?;
    let payload = if reply { skip_chunk(after)? } else { after };
    Some(Skimmed {
        reads,
        reply,
        payload,
    })
}

fn take_flag(octets: &[u8]) -> Option<(bool, &[u8])> {
    match take_word(octets)? {
        (0, rest) => Some((false, rest)),
        (1, rest) => Some((true, rest)),
        _ => None,
    }
}

fn skip_chunk(octets: &[u8]) -> Option<&[u8]> {
    let (segments, rest) = take_word(octets)?;
    let bytes = (segments as usize).checked_mul(16)?;
    Some(rest.split_at_checked(bytes)?.1)
}
