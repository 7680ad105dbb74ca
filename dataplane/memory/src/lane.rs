//! A lane: the two rings between one port and another (or itself), as one of the two has them.

use crate::ring::{self, Reader, Writer};
use crate::shared::Shared;
use std::sync::Arc;

/// One port's ends of the rings to and from a peer port.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) peer: Arc<Shared>,
    pub(crate) to: Writer,
    pub(crate) from: Reader,
    /// Something was written since the peer's bell was last looked at.
    pub(crate) written: bool,
}

impl Lane {
    /// Lets the peer have the room of everything that was read.
    #[inline]
    pub(crate) fn publish(&mut self) {
        if self.from.publish() {
            self.peer.bell.ring();
        }
    }
}

/// Gives both ports their ends of new rings; a port to itself has one ring and one lane.
pub(crate) fn join(a: &Arc<Shared>, a_octets: u32, b: &Arc<Shared>, b_octets: u32) {
    let lane = |peer: &Arc<Shared>, to, from| Lane {
        peer: Arc::clone(peer),
        to,
        from,
        written: false,
    };
    let (a_to_b, from_a) = ring::channel(a_octets);
    if a.id == b.id {
        a.give_lane(lane(a, a_to_b, from_a));
        return;
    }
    let (b_to_a, from_b) = ring::channel(b_octets);
    a.give_lane(lane(b, a_to_b, from_b));
    b.give_lane(lane(a, b_to_a, from_a));
}
