//! What the peer says and asks: CONNPROP, REQPROP and UPDPROP in, RESPROP out.

use super::{Asked, Decision, PropertyEvent, Values, Verdict, known, lay_out};
use crate::api::{CloseReason, Event};
use crate::connection::{Connection, count};
use crate::work::Io;
use rpcrdma_wire::cel_v2_03::RBSIZ_LEAST;
use rpcrdma_wire::property::{PropertySet, PropertySubset};
use rpcrdma_wire::{Xid, emit};

/// What becomes of one change that the peer asked for: rejected, where nothing is said.
#[derive(Clone, Copy)]
struct Ruling<T> {
    /// Its position in the request.
    at: u32,
    /// The value from now on.
    now: Option<T>,
    /// It is another one than was asked for.
    other: bool,
}

impl<T: Copy> Ruling<T> {
    /// By what was asked, at a position, and what was decided.
    fn of(at: Option<u32>, wanted: Option<T>, verdict: Verdict<T>) -> Self {
        let (now, other) = match verdict {
            Verdict::Done => (wanted, false),
            Verdict::Other(value) => (Some(value), true),
            Verdict::Rejected => (None, false),
        };
        Self {
            at: at.unwrap_or_default(),
            // What was not asked for is not answered.
            now: now.filter(|_| at.is_some()),
            other,
        }
    }

    /// The same, rejected where the value cannot be.
    fn filter(self, possible: impl FnOnce(&T) -> bool) -> Self {
        Self {
            now: self.now.filter(possible),
            ..self
        }
    }

    /// The value that the answer has to name.
    fn named(self) -> Option<T> {
        self.now.filter(|_| self.other)
    }

    /// Its bit in the subset of what was done as asked, or, with `other`, got another value.
    fn bit(self, other: bool) -> u32 {
        match self.now {
            Some(_) if self.other == other => bit(self.at),
            _ => 0,
        }
    }
}

impl Connection {
    /// Answers the peer's REQPROP.
    pub fn decide<'m>(&mut self, io: &mut impl Io<'m>, decision: Decision) -> bool {
        let asked = std::mem::take(&mut self.properties.asked);
        let Some(xid) = asked.xid else {
            return false;
        };
        let sizes = RBSIZ_LEAST..=self.setup.receive_bytes;
        let receive_bytes = Ruling::of(
            asked.receive_bytes,
            asked.wanted.receive_bytes,
            decision.receive_bytes,
        )
        .filter(|bytes| sizes.contains(bytes));
        let backward = Ruling::of(asked.backward, asked.wanted.backward, decision.backward);
        self.take_values(Values {
            receive_bytes: receive_bytes.now,
            backward: backward.now,
        });
        let other = Values {
            receive_bytes: receive_bytes.named(),
            backward: backward.named(),
        };
        let done = receive_bytes.bit(false) | backward.bit(false);
        let all = match asked.count {
            32.. => u32::MAX,
            count => bit(count).wrapping_sub(1),
        };
        let others = receive_bytes.bit(true) | backward.bit(true);
        let rejected = all & !done & !others;
        let mut octets = [0; 160];
        let mut values = [(0, [0; 4]); 2];
        let set = lay_out(other, &mut values);
        let credits = self.requester.wanted();
        let len = emit::emit_resprop(&mut octets, xid, credits, [done], [rejected], set);
        self.send_property(io, &octets, len)
    }

    pub(super) fn announced<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        start: PropertySet<'m>,
        nochg: PropertySubset<'m>,
    ) -> Event {
        if std::mem::replace(&mut self.peer.announced, true) {
            count(&mut io.counters().properties_ignored);
            return Event::None;
        }
        self.properties.offered = None;
        let (values, at) = known(start);
        let may_change = |at: Option<u32>| at.is_some_and(|at| !nochg.contains(at));
        self.properties.peer_may_change = (may_change(at.0), may_change(at.1));
        self.apply(values);
        if !self.properties.said {
            self.announce_properties(io);
        }
        self.pump(io);
        self.tell(PropertyEvent::Announced(values))
    }

    pub(super) fn requested<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        xid: Xid,
        want: PropertySet<'m>,
    ) -> Event {
        if self.properties.asked.xid.is_some() {
            // At most one outstanding (V2-13).
            count(&mut io.counters().properties_ignored);
            return Event::None;
        }
        let (wanted, at) = known(want);
        self.properties.asked = Asked {
            xid: Some(xid),
            count: want.len(),
            receive_bytes: at.0,
            backward: at.1,
            wanted,
            before: 0,
        };
        self.tell(PropertyEvent::Requested(wanted))
    }

    pub(super) fn updated<'m>(&mut self, io: &mut impl Io<'m>, now: PropertySet<'m>) -> Event {
        if self.properties.updates_left == 0 {
            self.fail(io, CloseReason::CreditOverrun);
            return Event::None;
        }
        self.properties.updates_left = self.properties.updates_left.saturating_sub(1);
        let (mut values, _) = known(now);
        let (bytes, backward) = self.properties.peer_may_change;
        if (!bytes && values.receive_bytes.take().is_some())
            | (!backward && values.backward.take().is_some())
        {
            count(&mut io.counters().properties_ignored);
        }
        self.apply(values);
        self.tell(PropertyEvent::Updated(values))
    }
}

fn bit(position: u32) -> u32 {
    1u32.checked_shl(position).unwrap_or(0)
}
