//! The RPCs in flight on one connection: found by xid when a record comes, by slot when the
//! engine speaks.
//!
//! There are as many as a connection has credits, some dozens. Their keys lie side by side, so
//! a search is a walk over a few cache lines; nothing is hashed and nothing allocated.

use rpcrdma_engine::SlotId;
use rpcrdma_wire::Xid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    xid: Xid,
    slot: SlotId,
}

/// What is known of each RPC in flight.
#[derive(Debug)]
pub(crate) struct Flights<T> {
    keys: Vec<Key>,
    values: Vec<T>,
}

impl<T> Flights<T> {
    /// Room for `capacity` RPCs.
    pub(crate) fn new(capacity: u16) -> Self {
        let capacity = capacity.into();
        Self {
            keys: Vec::with_capacity(capacity),
            values: Vec::with_capacity(capacity),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn insert(&mut self, xid: Xid, slot: SlotId, value: T) {
        self.keys.push(Key { xid, slot });
        self.values.push(value);
    }

    pub(crate) fn contains_xid(&self, xid: Xid) -> bool {
        self.keys.iter().any(|key| key.xid == xid)
    }

    pub(crate) fn by_xid(&self, xid: Xid) -> Option<&T> {
        self.values
            .get(self.keys.iter().position(|key| key.xid == xid)?)
    }

    pub(crate) fn by_slot_mut(&mut self, slot: SlotId) -> Option<&mut T> {
        self.values
            .get_mut(self.keys.iter().position(|key| key.slot == slot)?)
    }

    pub(crate) fn xid_of(&self, slot: SlotId) -> Option<Xid> {
        self.keys
            .iter()
            .find(|key| key.slot == slot)
            .map(|key| key.xid)
    }

    pub(crate) fn take_xid(&mut self, xid: Xid) -> Option<(SlotId, T)> {
        let (key, value) = self.take(self.keys.iter().position(|key| key.xid == xid)?);
        Some((key.slot, value))
    }

    pub(crate) fn take_slot(&mut self, slot: SlotId) -> Option<(Xid, T)> {
        let (key, value) = self.take(self.keys.iter().position(|key| key.slot == slot)?);
        Some((key.xid, value))
    }

    /// Any of them; for the end of a connection.
    pub(crate) fn pop(&mut self) -> Option<(SlotId, T)> {
        self.keys.pop().map(|key| key.slot).zip(self.values.pop())
    }

    /// The slots, in no order: those behind `at` are undisturbed when the one at `at` is taken
    /// out, if one walks from the end.
    pub(crate) fn slot_at(&self, at: usize) -> Option<SlotId> {
        self.keys.get(at).map(|key| key.slot)
    }

    fn take(&mut self, at: usize) -> (Key, T) {
        (self.keys.swap_remove(at), self.values.swap_remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(index: u16) -> SlotId {
        SlotId {
            index,
            generation: 1,
        }
    }

    #[test]
    fn found_by_either_key_and_taken_once() {
        let mut flights = Flights::new(4);
        for index in 0..4 {
            flights.insert(Xid(100 + u32::from(index)), slot(index), index);
        }
        assert_eq!(flights.by_xid(Xid(102)), Some(&2));
        assert_eq!(flights.by_slot_mut(slot(1)), Some(&mut 1));
        assert_eq!(
            flights.by_slot_mut(SlotId {
                index: 1,
                generation: 2
            }),
            None
        );
        assert_eq!(flights.take_xid(Xid(100)), Some((slot(0), 0)));
        assert_eq!(flights.take_xid(Xid(100)), None);
        assert_eq!(flights.take_slot(slot(3)), Some((Xid(103), 3)));
        assert!(flights.contains_xid(Xid(101)) && !flights.contains_xid(Xid(103)));
        let mut rest: Vec<_> = std::iter::from_fn(|| flights.pop()).collect();
        rest.sort_by_key(|&(_, value)| value);
        assert_eq!(rest, [(slot(1), 1), (slot(2), 2)]);
        assert!(flights.is_empty());
    }
}
