//! What a work request is called on its way through the device: `wr_id`.
//!
//! A completion must lead back to its queue pair without a search, and must not be believed
//! when it is late: so it is a place in the port's table, the generation of that place, and the
//! request's number in its queue. After an error a device vouches for this and the status alone.
//!
//! ```text
//!   | receive, 1 bit | generation, 15 bits | place, 16 bits | number in the queue, 32 bits |
//! ```

/// Most queue pairs of one port.
pub(crate) const MOST_PAIRS: u32 = 1 << 16;

const RECEIVE: u64 = 1 << 63;
const GENERATIONS: u16 = (1 << 15) - 1;

/// A queue pair's place in the port's table, in one of its uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) index: u16,
    generation: u16,
}

impl Place {
    /// The first use of a place.
    pub(crate) const fn first(index: u16) -> Place {
        Place {
            index,
            generation: 0,
        }
    }

    /// The same place in its next use. After 32,768 uses the generations come round again; no
    /// completion is that late.
    pub(crate) fn next(self) -> Place {
        Place {
            index: self.index,
            generation: self.generation.wrapping_add(1) & GENERATIONS,
        }
    }

    /// The name of number `number` of its send queue.
    #[inline]
    pub(crate) fn send(self, number: u32) -> Ticket {
        let place = u64::from(self.generation) << 16 | u64::from(self.index);
        Ticket(place << 32 | u64::from(number))
    }

    /// The name of number `number` of its receive queue.
    #[inline]
    pub(crate) fn receive(self, number: u32) -> Ticket {
        Ticket(self.send(number).0 | RECEIVE)
    }
}

/// The name of one work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(pub(crate) u64);

impl Ticket {
    /// Whose it is.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "each field is cut out")]
    pub(crate) fn place(self) -> Place {
        Place {
            index: (self.0 >> 32) as u16,
            generation: (self.0 >> 48) as u16 & GENERATIONS,
        }
    }

    /// It is of a receive queue.
    #[inline]
    pub(crate) fn is_receive(self) -> bool {
        self.0 & RECEIVE != 0
    }

    /// Its number in its queue.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    pub(crate) fn number(self) -> u32 {
        self.0 as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_says_what_went_into_it() {
        let mut place = Place::first(u16::MAX);
        for _ in 0..3 {
            place = place.next();
        }
        let (send, receive) = (place.send(u32::MAX), place.receive(7));
        assert_eq!((send.place(), send.number()), (place, u32::MAX));
        assert!(!send.is_receive());
        assert_eq!((receive.place(), receive.number()), (place, 7));
        assert!(receive.is_receive());
    }

    #[test]
    fn a_place_has_many_uses_before_one_comes_again() {
        let first = Place::first(9);
        let mut place = first.next();
        let mut uses = 1;
        while place != first {
            assert_eq!(place.send(1).place(), place);
            place = place.next();
            uses += 1;
        }
        assert_eq!(uses, 1 << 15);
    }
}
