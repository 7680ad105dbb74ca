//! From a handle to the exposure behind it, without a search.
//!
//! The upper 24 bits of a remote key name an object of the device, the low octet is ours or
//! counts uses. Devices give these numbers out more or less in sequence, so a table of twice as
//! many places as there are objects, filled from the place that the number's low bits name, has
//! nearly everything where it is looked for first.

/// Numbers of objects, each with the slot it stands in.
#[derive(Debug)]
pub(crate) struct Directory {
    /// Number and slot. A power of two of them, at least half empty.
    places: Box<[Option<(u32, u32)>]>,
}

/// The part of a key that names the object.
#[inline]
fn number(key: u32) -> u32 {
    key >> 8
}

impl Directory {
    /// Room for `count` objects.
    pub(crate) fn new(count: u32) -> Directory {
        let places = (count.max(1) as usize * 2).next_power_of_two();
        Directory {
            places: vec![None; places].into_boxed_slice(),
        }
    }

    #[inline]
    fn mask(&self) -> usize {
        self.places.len() - 1
    }

    /// The place of this number, or the empty one where it would be.
    #[inline]
    fn place(&self, number: u32) -> usize {
        let mut place = number as usize & self.mask();
        // Ends: half of the places are empty.
        while let Some(Some((other, _))) = self.places.get(place) {
            if *other == number {
                break;
            }
            place = (place + 1) & self.mask();
        }
        place
    }

    /// The slot of the object that a key names.
    #[inline]
    pub(crate) fn find(&self, key: u32) -> Option<u32> {
        let place = self.place(number(key));
        self.places.get(place)?.map(|(_, slot)| slot)
    }

    /// Notes the slot of the object that a key names.
    pub(crate) fn insert(&mut self, key: u32, slot: u32) {
        let place = self.place(number(key));
        if let Some(entry) = self.places.get_mut(place) {
            *entry = Some((number(key), slot));
        }
    }

    /// Forgets the object that a key names. Those behind it that its being there had pushed on
    /// move up.
    pub(crate) fn remove(&mut self, key: u32) {
        let mut hole = self.place(number(key));
        let mut next = hole;
        loop {
            if let Some(entry) = self.places.get_mut(hole) {
                *entry = None;
            }
            loop {
                next = (next + 1) & self.mask();
                let Some(Some((other, slot))) = self.places.get(next).copied() else {
                    return;
                };
                let home = other as usize & self.mask();
                let from_home = next.wrapping_sub(home) & self.mask();
                let from_hole = next.wrapping_sub(hole) & self.mask();
                if from_home >= from_hole {
                    if let Some(entry) = self.places.get_mut(hole) {
                        *entry = Some((other, slot));
                    }
                    hole = next;
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn agrees_with_a_map() {
        let mut directory = Directory::new(16);
        let mut map = HashMap::new();
        let mut draw = 3_u32;
        let mut most = 0;
        for n in 0..20_000 {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Few numbers, many of them with the same home.
            let key = (draw >> 16 & 3) << 8 | (draw >> 20 & 7) << 13 | draw >> 28;
            if map.len() < 16 && draw & 1 << 15 == 0 {
                directory.insert(key, n);
                map.insert(key >> 8, n);
            } else {
                directory.remove(key);
                map.remove(&(key >> 8));
            }
            most = most.max(map.len());
            for number in (0..4).flat_map(|low| (0..8).map(move |high| high << 5 | low)) {
                assert_eq!(directory.find(number << 8), map.get(&number).copied());
            }
        }
        assert_eq!(most, 16);
    }
}
