//! RFC 5043, rule by rule, and RFC 6581 where it adds to it.

use crate::support::*;

mod association;
mod depths;
mod formats;
mod overtaking;
mod sequences;

/// The chunks that `side` has for its peer, taken away.
fn out(side: &mut Side) -> Vec<Chunk> {
    side.pump();
    std::mem::take(&mut side.out.chunks)
}

const TERMINATE: &[u8] = &[0, 4];
