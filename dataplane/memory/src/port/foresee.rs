//! Looking ahead at the messages in the ring that will be reaped next.
//!
//! What a message needs is the end of a chain: its record names the queue pair, and the queue pair
//! has the addresses of its receives and of its link. A look that follows the chain at once waits
//! for memory at each step, which is what it is to spare the message. So each look takes one step
//! for each of several messages: the queue pair of the farthest is asked for, and of one nearer by
//! what its queue pair, asked for by an earlier look, has the address of.

use super::MemoryPort;
use rpcrdma_fabric::{FORESIGHT, Token, fetch};

/// Cache lines of a queue pair that messages to and from it need.
const PAIR_LINES: usize = 2;

impl MemoryPort {
    /// The owners of the next messages of the lane whose turn it is.
    #[inline(always)]
    pub(super) fn look_ahead(&self) -> [Option<Token>; FORESIGHT] {
        let mut tokens = [None; FORESIGHT];
        // After the last lane comes the first one's turn.
        let lane = self.lanes.get(self.turn).or(self.lanes.first());
        let Some(lane) = lane else {
            return tokens;
        };
        let mut position = lane.from.position();
        for nth in 0..=FORESIGHT {
            let Some((number, next)) = lane.from.glance(position) else {
                break;
            };
            let Some(pair) = self.queue_pairs.get(number as usize) else {
                break;
            };
            match tokens.get_mut(nth) {
                Some(token) => *token = Some(pair.token),
                None => fetch::lines(pair, PAIR_LINES),
            }
            if nth + 1 == FORESIGHT {
                pair.fetch();
            }
            position = next;
        }
        tokens
    }
}
