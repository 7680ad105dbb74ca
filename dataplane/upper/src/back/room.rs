//! How much room the Reply to a Call gets: decided from its arguments, then reserved.

use super::BackSettings;
use crate::binding::Expected;
use crate::xdr::padding;
use arrayvec::ArrayVec;
use rpcrdma_engine::{Io, MAX_RESULTS, Span};

/// The memory that goes with a Call, in octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// For each eligible result, in order; empty: all come inline.
    pub(super) results: ArrayVec<u32, MAX_RESULTS>,
    /// For a Reply too long to come inline; `None`: it cannot be.
    pub(super) reply: Option<u32>,
}

impl Room {
    /// Room for the longest Reply that can come. `inline` says how long a Reply may be that
    /// comes inline beside so many Write chunks. What comes inline whole costs no exposure, so
    /// where everything does, no chunk is offered.
    pub(super) fn of(
        expected: &Expected,
        inline: impl Fn(usize) -> u32,
        settings: &BackSettings,
    ) -> Self {
        let most = settings.reply_bytes;
        let body = expected
            .body
            .unwrap_or(settings.unbound_reply_bytes)
            .min(most);
        let results: u64 = expected.results.iter().map(|&len| padded(len)).sum();
        if u64::from(body).saturating_add(results) <= inline(0).into() {
            return Self {
                results: ArrayVec::new(),
                reply: None,
            };
        }
        let results: ArrayVec<u32, MAX_RESULTS> = expected
            .results
            .iter()
            .map(|&len| len.min(settings.result_bytes))
            .collect();
        let reply = (body > inline(results.len())).then_some(body);
        Self { results, reply }
    }

    /// More room, after the peer said (REPLY_RESOURCE) that segment `segment` would have to be
    /// `length` octets long; zero where it could not tell (V2-11). `None`: there is no more.
    ///
    /// Each result and the Reply is one segment; a result of no octets is none.
    pub(super) fn enlarged(
        &self,
        segment: u32,
        length: u32,
        settings: &BackSettings,
    ) -> Option<Self> {
        let mut room = self.clone();
        let mut number = 0;
        for len in room.results.iter_mut().filter(|len| **len > 0) {
            number += 1;
            let wanted = if segment == 0 {
                len.saturating_mul(2)
            } else {
                length
            };
            if segment == 0 || segment == number {
                *len = wanted.max(*len).min(settings.result_bytes);
            }
        }
        if segment == 0 || segment > number {
            let present = room.reply.unwrap_or(0);
            let guess = present.saturating_mul(2).max(settings.unbound_reply_bytes);
            let wanted = if segment == 0 { guess } else { length };
            room.reply = Some(wanted.max(present).min(settings.reply_bytes));
        }
        (room != *self).then_some(room)
    }
}

/// With its XDR padding.
fn padded(len: u32) -> u64 {
    u64::from(len) + u64::from(padding(len))
}

/// The arena memory of one Call. Given back by [`Memory::release`] and in no other way.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// The Call itself.
    pub(super) call: Option<Span>,
    /// One for each eligible result, with room for its padding; an empty one is no memory.
    pub(super) results: ArrayVec<Span, MAX_RESULTS>,
    /// For a long Reply.
    pub(super) reply: Option<Span>,
}

impl Memory {
    /// Takes all of it, or nothing.
    pub(super) fn reserve<'m>(io: &mut impl Io<'m>, call: u32, room: &Room) -> Option<Self> {
        let mut memory = Self {
            call: Some(io.reserve(call)?),
            ..Self::default()
        };
        if memory.reserve_room(io, room).is_none() {
            memory.release(io);
            return None;
        }
        Some(memory)
    }

    /// Takes what the Reply needs; on failure some of it may be here already.
    fn reserve_room<'m>(&mut self, io: &mut impl Io<'m>, room: &Room) -> Option<()> {
        for &len in &room.results {
            let whole = u32::try_from(padded(len)).unwrap_or(u32::MAX);
            let span = if whole > 0 {
                io.reserve(whole)?
            } else {
                Span::default()
            };
            self.results.push(span);
        }
        if let Some(len) = room.reply {
            self.reply = Some(io.reserve(len)?);
        }
        Some(())
    }

    /// Other room for the Reply in place of what there is; or nothing changes.
    pub(super) fn exchange<'m>(&mut self, io: &mut impl Io<'m>, room: &Room) -> Option<()> {
        let mut other = Self::default();
        if other.reserve_room(io, room).is_none() {
            other.release(io);
            return None;
        }
        other.call = self.call.take();
        std::mem::replace(self, other).release(io);
        Some(())
    }

    /// The results as the engine is to offer them.
    pub(super) fn offered(&self, room: &Room) -> ArrayVec<Span, MAX_RESULTS> {
        self.results
            .iter()
            .zip(&room.results)
            .map(|(span, &len)| span.first(len))
            .collect()
    }

    /// Gives all of it back.
    pub(super) fn release<'m>(self, io: &mut impl Io<'m>) {
        let Self {
            call,
            results,
            reply,
        } = self;
        let results = results.into_iter().filter(|span| span.len > 0);
        for span in call.into_iter().chain(results).chain(reply) {
            io.release(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    const SETTINGS: BackSettings = BackSettings {
        slots: 4,
        call_bytes: 1 << 20,
        result_bytes: 1 << 20,
        reply_bytes: 1 << 17,
        unbound_reply_bytes: 1 << 16,
    };

    fn expected(results: &[u32], body: Option<u32>) -> Expected {
        Expected {
            results: results.iter().copied().collect(),
            body,
        }
    }

    fn room(results: &[u32], reply: Option<u32>) -> Room {
        Room {
            results: results.iter().copied().collect(),
            reply,
        }
    }

    fn of(results: &[u32], body: Option<u32>) -> Room {
        Room::of(
            &expected(results, body),
            |chunks| if chunks == 0 { 1000 } else { 976 },
            &SETTINGS,
        )
    }

    #[test]
    fn what_fits_inline_is_offered_nothing() {
        assert_eq!(of(&[], Some(1000)), room(&[], None));
        assert_eq!(
            of(&[397], Some(600)),
            room(&[], None),
            "400 with its padding"
        );
    }

    #[test]
    fn what_does_not_is_offered_chunks() {
        assert_eq!(of(&[], Some(1001)), room(&[], Some(1001)));
        assert_eq!(of(&[401], Some(600)), room(&[401], None));
        assert_eq!(
            of(&[5000], Some(977)),
            room(&[5000], Some(977)),
            "24 octets of header more"
        );
        assert_eq!(of(&[], None), room(&[], Some(1 << 16)));
    }

    #[test]
    fn no_count_of_a_client_takes_more_than_the_settings_allow() {
        assert_eq!(of(&[u32::MAX], Some(600)), room(&[1 << 20], None));
        assert_eq!(of(&[], Some(u32::MAX)), room(&[], Some(1 << 17)));
    }

    #[test]
    fn memory_is_taken_whole_or_not_at_all() {
        let wanted = room(&[100, 0, 8], Some(50));
        for ceiling in 0..(10 + 100 + 8 + 50) {
            let mut io = Fake::new();
            io.ceiling = Some(ceiling);
            assert!(Memory::reserve(&mut io, 10, &wanted).is_none());
            assert_eq!(io.in_use(), 0);
        }
        let mut io = Fake::new();
        let memory = Memory::reserve(&mut io, 10, &wanted).unwrap();
        let lengths: Vec<u32> = memory
            .offered(&wanted)
            .iter()
            .map(|span| span.len)
            .collect();
        assert_eq!(lengths, [100, 0, 8]);
        assert_eq!(io.in_use(), 168);
        memory.release(&mut io);
        assert_eq!(io.in_use(), 0);
    }

    #[test]
    fn exchanged_memory_keeps_the_call() {
        let mut io = Fake::new();
        let mut memory = Memory::reserve(&mut io, 10, &room(&[100], None)).unwrap();
        let call = memory.call;
        memory.exchange(&mut io, &room(&[400], Some(20))).unwrap();
        assert_eq!((memory.call, io.in_use()), (call, 430));
        io.ceiling = Some(500);
        assert!(memory.exchange(&mut io, &room(&[500], None)).is_none());
        assert_eq!((memory.results[0].len, io.in_use()), (400, 430));
    }

    #[test]
    fn the_segment_named_gets_what_it_needs() {
        let small = room(&[100, 0, 200], Some(300));
        let enlarged = |segment, length| small.enlarged(segment, length, &SETTINGS);
        assert_eq!(enlarged(1, 150), Some(room(&[150, 0, 200], Some(300))));
        assert_eq!(enlarged(2, 250), Some(room(&[100, 0, 250], Some(300))));
        assert_eq!(
            enlarged(3, 1 << 17),
            Some(room(&[100, 0, 200], Some(1 << 17)))
        );
        assert_eq!(enlarged(0, 0), Some(room(&[200, 0, 400], Some(1 << 16))));
        assert_eq!(enlarged(1, 50), None, "less than it had");
        let largest = room(&[1 << 20], Some(1 << 17));
        assert_eq!(largest.enlarged(0, 0, &SETTINGS), None);
    }
}
