//! From an xid in flight to its slot: open addressing, linear probing, no tombstones.
//!
//! Xids are the peers' to choose, so the place of an xid is hashed with a multiplier, and a
//! table is at most half full: with at most 1,024 xids the longest walk a hostile peer can
//! cause is 1,024 steps.

use rpcrdma_wire::Xid;

#[derive(Clone, Copy)]
struct Place {
    xid: u32,
    /// The slot's index plus one; zero is an empty place.
    slot: u16,
}

/// The xids in flight of one side of one connection.
pub(crate) struct Xids {
    places: Box<[Place]>,
    shift: u32,
}

impl Xids {
    /// Room for `count` xids.
    pub(crate) fn new(count: u16) -> Self {
        let len = usize::from(count.max(1))
            .saturating_mul(2)
            .next_power_of_two();
        Self {
            places: vec![Place { xid: 0, slot: 0 }; len].into_boxed_slice(),
            shift: 32u32.saturating_sub(len.trailing_zeros()),
        }
    }

    #[inline]
    fn home(&self, xid: u32) -> usize {
        (xid.wrapping_mul(0x9e37_79b1) as usize >> self.shift) & self.mask()
    }

    #[inline]
    fn mask(&self) -> usize {
        self.places.len().wrapping_sub(1)
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        at.wrapping_add(1) & self.mask()
    }

    /// The slot's index of an xid.
    #[inline]
    pub(crate) fn find(&self, xid: Xid) -> Option<u16> {
        let mut at = self.home(xid.0);
        loop {
            let place = self.places.get(at)?;
            if place.slot == 0 {
                return None;
            }
            if place.xid == xid.0 {
                return Some(place.slot.wrapping_sub(1));
            }
            at = self.next(at);
        }
    }

    /// Remembers an xid that is not there yet. There is always room: see [`Xids::new`].
    #[inline]
    pub(crate) fn insert(&mut self, xid: Xid, slot: u16) {
        let mut at = self.home(xid.0);
        while let Some(place) = self.places.get_mut(at) {
            if place.slot == 0 {
                *place = Place {
                    xid: xid.0,
                    slot: slot.wrapping_add(1),
                };
                return;
            }
            at = self.next(at);
        }
    }

    /// Forgets an xid, and moves back those that had to walk past it.
    #[inline]
    pub(crate) fn remove(&mut self, xid: Xid) {
        let mut hole = self.home(xid.0);
        loop {
            match self.places.get(hole) {
                Some(place) if place.slot != 0 && place.xid != xid.0 => hole = self.next(hole),
                Some(place) if place.slot != 0 => break,
                _ => return,
            }
        }
        let mut at = self.next(hole);
        while let Some(&place) = self.places.get(at).filter(|place| place.slot != 0) {
            let walked = at.wrapping_sub(self.home(place.xid)) & self.mask();
            if walked >= (at.wrapping_sub(hole) & self.mask()) {
                self.set(hole, place);
                hole = at;
            }
            at = self.next(at);
        }
        self.set(hole, Place { xid: 0, slot: 0 });
    }

    fn set(&mut self, at: usize, value: Place) {
        if let Some(place) = self.places.get_mut(at) {
            *place = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Multiples of the table's length meet in one place often.
    fn scatter(n: u16) -> u32 {
        let n = u32::from(n);
        n.wrapping_mul(0x4000_0000) ^ (n / 4)
    }

    proptest! {
        #[test]
        fn behaves_as_a_map(steps in prop::collection::vec((0u16..40, any::<bool>()), 0..400)) {
            let mut table = Xids::new(40);
            let mut model = HashMap::new();
            for (n, insert) in steps {
                let xid = scatter(n);
                if insert && !model.contains_key(&xid) {
                    table.insert(Xid(xid), n);
                    model.insert(xid, n);
                } else {
                    table.remove(Xid(xid));
                    model.remove(&xid);
                }
                for n in 0u16..40 {
                    let xid = scatter(n);
                    prop_assert_eq!(table.find(Xid(xid)), model.get(&xid).copied());
                }
            }
        }
    }
}
