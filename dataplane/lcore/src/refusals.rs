//! The last headers that were refused, kept for the operator.

use crate::seats::ConnectionNumber;
use rpcrdma_wire::Reject;

/// How many are kept.
pub const KEPT: usize = 16;
/// Octets kept of each: the fixed header and several segments.
pub const KEPT_BYTES: usize = 256;

/// One refused header.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// Whose it was.
    pub connection: ConnectionNumber,
    /// Why.
    pub reject: Reject,
    /// Octets of the whole message.
    pub message_bytes: u32,
    octets: [u8; KEPT_BYTES],
    kept: u16,
}

impl Refusal {
    fn new(connection: ConnectionNumber, reject: Reject, message: &[u8]) -> Refusal {
        let mut octets = [0; KEPT_BYTES];
        let kept = message.len().min(KEPT_BYTES);
        octets[..kept].copy_from_slice(&message[..kept]);
        Refusal {
            connection,
            reject,
            message_bytes: u32::try_from(message.len()).unwrap_or(u32::MAX),
            octets,
            // At most 256.
            kept: u16::try_from(kept).unwrap_or(0),
        }
    }

    /// Its first octets, at most [`KEPT_BYTES`].
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.octets[..usize::from(self.kept)]
    }
}

/// The last [`KEPT`] refused headers of an lcore, in fixed memory.
#[derive(Clone, Debug)]
pub struct Refusals {
    kept: [Option<Refusal>; KEPT],
    next: usize,
}

impl Refusals {
    pub(crate) fn new() -> Refusals {
        Refusals {
            kept: [None; KEPT],
            next: 0,
        }
    }

    /// Keeps one, in the place of the oldest.
    #[cold]
    pub(crate) fn keep(&mut self, connection: ConnectionNumber, reject: Reject, message: &[u8]) {
        self.kept[self.next] = Some(Refusal::new(connection, reject, message));
        self.next = (self.next + 1) % KEPT;
    }

    /// Those kept, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Refusal> {
        let (newer, older) = self.kept.split_at(self.next);
        older.iter().chain(newer).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room_and_long_ones_are_cut() {
        let mut refusals = Refusals::new();
        assert_eq!(refusals.iter().count(), 0);
        let reject = Reject::ALL[0];
        for number in 0..20_u8 {
            refusals.keep(ConnectionNumber(number.into()), reject, &[number; 300]);
        }
        let numbers: Vec<u64> = refusals.iter().map(|r| r.connection.0).collect();
        assert_eq!(numbers, (4..20).collect::<Vec<u64>>());
        let last = refusals.iter().last().expect("sixteen");
        assert_eq!(last.header(), [19; KEPT_BYTES]);
        assert_eq!(last.message_bytes, 300);
        refusals.keep(ConnectionNumber(1), reject, b"abc");
        assert_eq!(refusals.iter().last().expect("sixteen").header(), b"abc");
    }
}
