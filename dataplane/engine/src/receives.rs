//! The receive buffers of a connection: who has each of them.
//!
//! A buffer is posted (the fabric's), or held (by a Call being served or a Reply being read),
//! or given back. [`Buffer`] is the right to a buffer that came back: not `Copy`, so it goes to
//! exactly one of those three.

use crate::ids::receive_id;
use crate::work::{Io, Refused, Span};

/// Who has the memory of a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// There is none.
    Absent,
    Posted,
    Held,
}

#[derive(Clone, Copy)]
struct Place {
    state: State,
    /// Its memory, unless absent.
    span: Span,
}

/// The right to a receive buffer that is not posted.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a receive buffer is held, posted again or given back"]
pub(crate) struct Buffer {
    index: u16,
}

/// All receive buffers of a connection.
pub(crate) struct Receives {
    places: Box<[Place]>,
    /// Posted or held.
    present: u16,
}

impl Receives {
    pub(crate) fn new(count: u16) -> Self {
        let absent = Place {
            state: State::Absent,
            span: Span::default(),
        };
        Self {
            places: vec![absent; usize::from(count)].into_boxed_slice(),
            present: 0,
        }
    }

    /// Gives place `index` its memory, held.
    pub(crate) fn put(&mut self, index: u16, span: Span) {
        if let Some(place) = self.places.get_mut(usize::from(index)) {
            *place = Place {
                state: State::Held,
                span,
            };
            self.present = self.present.saturating_add(1);
        }
    }

    /// Posts the held buffer at `index`.
    #[inline(always)]
    pub(crate) fn post<'m>(&mut self, io: &mut impl Io<'m>, index: u16) -> Result<(), Refused> {
        let place = self.places.get_mut(usize::from(index));
        let Some(place) = place.filter(|place| place.state == State::Held) else {
            return Err(Refused::Broken);
        };
        io.post_receive(place.span, receive_id(index))?;
        place.state = State::Posted;
        Ok(())
    }

    /// Posts a buffer again, or hands it back.
    #[inline]
    pub(crate) fn repost<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        buffer: Buffer,
    ) -> Result<(), Buffer> {
        self.post(io, buffer.index).map_err(|_| buffer)
    }

    /// A posted buffer came back: the right to it, and its memory.
    #[inline]
    pub(crate) fn completed(&mut self, index: u16) -> Option<(Buffer, Span)> {
        let place = self.places.get_mut(usize::from(index))?;
        if place.state != State::Posted {
            return None;
        }
        place.state = State::Held;
        Some((Buffer { index }, place.span))
    }

    /// The address of the first place: see `Connection::foresee`.
    #[inline(always)]
    pub(crate) fn foresee(&self, fetch: &mut impl FnMut(*const u8)) {
        fetch(self.places.as_ptr().cast());
    }

    /// The memory of a held buffer.
    #[inline]
    pub(crate) fn span(&self, buffer: &Buffer) -> Span {
        let place = self.places.get(usize::from(buffer.index));
        place.map_or(Span::default(), |place| place.span)
    }

    /// Gives a held buffer's memory back to the pool.
    pub(crate) fn release<'m>(&mut self, io: &mut impl Io<'m>, buffer: Buffer) {
        if let Some(place) = self.places.get_mut(usize::from(buffer.index)) {
            place.state = State::Absent;
            self.present = self.present.saturating_sub(1);
            io.release(place.span);
        }
    }

    /// Gives back all that is held and not posted, when a connection could not be adopted.
    pub(crate) fn release_all<'m>(&mut self, io: &mut impl Io<'m>) {
        for place in &mut self.places {
            if place.state == State::Held {
                place.state = State::Absent;
                self.present = self.present.saturating_sub(1);
                io.release(place.span);
            }
        }
    }

    /// No buffer has memory any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.present == 0
    }
}
