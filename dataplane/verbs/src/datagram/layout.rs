//! The memory of a UD queue pair: receives, then what is on its way out.

use super::header::HEADER_LEN;
use rpcrdma_fabric::Span;

/// Slots begin at cache lines.
const LINE: u32 = 64;

/// Where each slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) receives: u32,
    pub(super) sends: u32,
    /// Longest datagram, octets.
    pub(super) payload_bytes: u32,
}

impl Layout {
    /// Octets of a receive: the header and the datagram.
    pub(super) fn receive_bytes(self) -> u32 {
        self.payload_bytes + HEADER_LEN
    }

    fn receive_step(self) -> u64 {
        u64::from(self.receive_bytes().next_multiple_of(LINE))
    }

    fn send_step(self) -> u64 {
        u64::from(self.payload_bytes.next_multiple_of(LINE))
    }

    fn sends_start(self) -> u64 {
        u64::from(self.receives) * self.receive_step()
    }

    /// Octets of all slots.
    pub(super) fn bytes(self) -> u64 {
        self.sends_start() + u64::from(self.sends) * self.send_step()
    }

    /// A receive, header first.
    pub(super) fn receive(self, slot: u32) -> Span {
        Span {
            offset: u64::from(slot) * self.receive_step(),
            len: self.receive_bytes(),
        }
    }

    /// What is sent from a slot.
    pub(super) fn send(self, slot: u32) -> Span {
        Span {
            offset: self.sends_start() + u64::from(slot) * self.send_step(),
            len: self.payload_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_apart_and_inside() {
        let layout = Layout {
            receives: 3,
            sends: 2,
            payload_bytes: 2048,
        };
        let receives = (0..3).map(|slot| layout.receive(slot));
        let spans: Vec<Span> = receives
            .chain((0..2).map(|slot| layout.send(slot)))
            .collect();
        for pair in spans.windows(2) {
            assert!(
                pair[0].offset + u64::from(pair[0].len) <= pair[1].offset,
                "{pair:?}"
            );
        }
        let last = spans[4];
        assert!(last.offset + u64::from(last.len) <= layout.bytes());
        assert_eq!(spans[0].len, 2088);
    }
}
