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

/// Where an xid is, or would be; good until the table is changed.
#[derive(Clone, Copy)]
pub(crate) struct Sought {
    at: usize,
    /// Its slot's index, if it is there.
    pub(crate) slot: Option<u16>,
}

/// The xids in flight of one side of one connection.
pub(crate) struct Xids {
    places: Box<[Place]>,
}

impl Xids {
    /// Room for `count` xids.
    pub(crate) fn new(count: u16) -> Self {
        let len = usize::from(count.max(1))
            .saturating_mul(2)
            .next_power_of_two();
        Self {
            places: vec![Place { xid: 0, slot: 0 }; len].into_boxed_slice(),
        }
    }

    /// The upper bits of a product, as many as a place has.
    #[inline]
    fn home(&self, xid: u32) -> usize {
        let hash = u64::from(xid.wrapping_mul(0x9e37_79b1));
        (hash.wrapping_mul(self.places.len() as u64) >> 32) as usize
    }

    #[inline]
    fn mask(&self) -> usize {
        self.places.len().wrapping_sub(1)
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        at.wrapping_add(1) & self.mask()
    }

    /// The address of the first place: see `Connection::foresee`.
    #[inline(always)]
    pub(crate) fn foresee(&self, fetch: &mut impl FnMut(*const u8)) {
        fetch(self.places.as_ptr().cast());
    }

    /// Looks for an xid. A table is never full, so the walk ends.
    #[inline]
    pub(crate) fn seek(&self, xid: Xid) -> Sought {
        let mut at = self.home(xid.0);
        loop {
            match self.places.get(at) {
                Some(place) if place.slot != 0 && place.xid != xid.0 => at = self.next(at),
                Some(place) if place.slot != 0 => {
                    let slot = Some(place.slot.wrapping_sub(1));
                    return Sought { at, slot };
                }
                _ => return Sought { at, slot: None },
            }
        }
    }

    /// Remembers an xid that was sought and is not there.
    #[inline]
    pub(crate) fn put(&mut self, sought: Sought, xid: Xid, slot: u16) {
        let slot = slot.wrapping_add(1);
        self.set(sought.at, Place { xid: xid.0, slot });
    }

    /// Forgets an xid that was sought and is there, and moves back those that had to walk past
    /// it.
    #[inline(always)]
    pub(crate) fn clear(&mut self, sought: Sought) {
        let next = self.places.get(self.next(sought.at));
        let hole = match next {
            Some(place) if place.slot != 0 => self.close_gap(sought.at),
            _ => sought.at,
        };
        self.set(hole, Place { xid: 0, slot: 0 });
    }

    /// Moves back what walked past `hole`. Where the hole is afterwards.
    #[inline(never)]
    fn close_gap(&mut self, mut hole: usize) -> usize {
        let mut at = self.next(hole);
        while let Some(&place) = self.places.get(at).filter(|place| place.slot != 0) {
            let walked = at.wrapping_sub(self.home(place.xid)) & self.mask();
            if walked >= (at.wrapping_sub(hole) & self.mask()) {
                self.set(hole, place);
                hole = at;
            }
            at = self.next(at);
        }
        hole
    }

    /// Forgets an xid, if it is there.
    #[inline]
    pub(crate) fn remove(&mut self, xid: Xid) {
        let sought = self.seek(xid);
        if sought.slot.is_some() {
            self.clear(sought);
        }
    }

    #[inline]
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
                    table.put(table.seek(Xid(xid)), Xid(xid), n);
                    model.insert(xid, n);
                } else {
                    table.remove(Xid(xid));
                    model.remove(&xid);
                }
                for n in 0u16..40 {
                    let xid = scatter(n);
                    prop_assert_eq!(table.seek(Xid(xid)).slot, model.get(&xid).copied());
                }
            }
        }
    }
}
