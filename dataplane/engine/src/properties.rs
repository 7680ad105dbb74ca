//! Transport properties (version two 5.3) as events to and from the control thread.
//!
//! The engine keeps the rules of the exchange: one CONNPROP a side, one REQPROP outstanding
//! each way, UPDPROPs within a rate, fixed properties left alone. What to agree to is the
//! control thread's to decide: it takes a [`PropertyEvent`] and gives a [`Decision`].

use crate::api::{CloseReason, Event};
use crate::connection::{Connection, count};
use crate::setup::{Setup, VERSION_TWO_BYTES};
use crate::work::Io;
use arrayvec::ArrayVec;
use rpcrdma_wire::cel_v2_03::RBSIZ_LEAST;
use rpcrdma_wire::emit;
use rpcrdma_wire::property::{BackwardRequests, Property, PropertySet, PropertySubset};
use rpcrdma_wire::{Body, ErrorBody, Header, Version, Xid};

/// Values for some of the properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// RBSIZ, octets.
    pub receive_bytes: Option<u32>,
    /// BRS.
    pub backward: Option<BackwardRequests>,
}

/// What the control thread is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyEvent {
    /// The peer's CONNPROP. Applied already.
    Announced(Values),
    /// The peer has no properties: the defaults hold.
    None,
    /// The peer's REQPROP: answer with [`Connection::decide`].
    Requested(Values),
    /// The peer's answer to our REQPROP: what is in force now of what was asked for.
    Responded(Values),
    /// The peer's UPDPROP. Applied already.
    Updated(Values),
}

/// Kinds of [`PropertyEvent`].
const KINDS: usize = 5;

/// What to say to one requested change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<T> {
    /// It is done.
    Done,
    /// It is not.
    Rejected,
    /// Changed, to this value instead.
    Other(T),
}

/// What to say to a REQPROP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// To a requested RBSIZ.
    pub receive_bytes: Verdict<u32>,
    /// To a requested BRS.
    pub backward: Verdict<BackwardRequests>,
}

/// Positions of the two known properties in a REQPROP, and how many it held.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Asked {
    xid: Option<Xid>,
    count: u32,
    receive_bytes: Option<u32>,
    backward: Option<u32>,
    wanted: Values,
    /// Of our own request: the longest message the peer takes, were it not for the request.
    before: u32,
}

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

/// The property side of one connection.
#[repr(C)]
pub(crate) struct Properties {
    /// Our REQPROP that is out. In front: each Call we make looks at its xid.
    asking: Asked,
    /// Our RBSIZ and BRS, as the peer knows them.
    announced_bytes: u32,
    backward: BackwardRequests,
    /// Our CONNPROP is out and its answer has not come (client).
    offered: Option<Xid>,
    /// We have sent our CONNPROP.
    said: bool,
    /// The peer's properties that may change.
    peer_may_change: (bool, bool),
    /// The peer's REQPROP that waits for a decision.
    asked: Asked,
    /// What the control thread has not taken, at most one of each kind.
    events: ArrayVec<PropertyEvent, KINDS>,
    /// There is one that no [`Event::Property`] spoke of.
    untold: bool,
    updates_left: u16,
    next_xid: u32,
}

impl Properties {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self {
            announced_bytes: match setup.properties {
                true => setup.announced_bytes,
                false => VERSION_TWO_BYTES.min(setup.receive_bytes),
            },
            backward: setup.backward,
            offered: None,
            said: false,
            peer_may_change: (false, false),
            asking: Asked::default(),
            asked: Asked::default(),
            events: ArrayVec::new(),
            untold: false,
            updates_left: setup.updates_per_tick,
            next_xid: 0x5052_0000,
        }
    }

    /// The RBSIZ the peer goes by.
    pub(crate) fn announced_bytes(&self) -> u32 {
        self.announced_bytes
    }

    /// Our CONNPROP is what the peer's version is being learned from.
    pub(crate) fn offer_is_out(&self) -> bool {
        self.offered.is_some()
    }

    /// Our REQPROP with this xid is out.
    #[inline]
    pub(crate) fn asks(&self, xid: Xid) -> bool {
        self.asking.xid == Some(xid)
    }

    /// The backward Calls we said to accept.
    pub(crate) fn backward(&self) -> BackwardRequests {
        self.backward
    }

    pub(crate) fn peer_has_none(&mut self) {
        self.offered = None;
        self.push(PropertyEvent::None);
        self.untold = true;
    }

    /// Something is to be told that came of no property message.
    #[inline]
    pub(crate) fn take_untold(&mut self) -> bool {
        std::mem::take(&mut self.untold)
    }

    /// A newer event of a kind takes the place of an older one: what it says is in force anyhow,
    /// and requests come one at a time.
    fn push(&mut self, event: PropertyEvent) {
        let kind = std::mem::discriminant(&event);
        let same = |other: &&mut PropertyEvent| std::mem::discriminant(&**other) == kind;
        match self.events.iter_mut().find(same) {
            Some(other) => *other = event,
            // There is room for one of each kind.
            None => self.events.extend([event].into_iter().take(1)),
        }
    }
}

impl Connection {
    /// The next thing for the control thread; after [`Event::Property`], of which another one
    /// comes where this is not the last.
    pub fn take_property_event(&mut self) -> Option<PropertyEvent> {
        let event = self.properties.events.pop_at(0);
        if !self.properties.events.is_empty() {
            self.properties.untold = true;
            self.look_again();
        }
        event
    }

    /// Time has passed: more UPDPROPs are acceptable, kept replies grow older.
    pub fn tick<'m>(&mut self, io: &mut impl Io<'m>) {
        self.properties.updates_left = self.setup.updates_per_tick;
        self.expire_kept(io);
    }

    /// Sends our CONNPROP.
    pub(crate) fn announce_properties<'m>(&mut self, io: &mut impl Io<'m>) {
        let mut octets = [0; 128];
        let xid = self.control_xid();
        let own = Values {
            receive_bytes: Some(self.properties.announced_bytes),
            backward: Some(self.properties.backward),
        };
        let mut values = [(0, [0; 4]); 2];
        let set = lay_out(own, &mut values);
        // Neither is fixed: no bit of the subset is set.
        let len = emit::emit_connprop(&mut octets, xid, self.requester.wanted(), set, []);
        if self.send_property(io, &octets, len) && self.version.is_none() {
            self.properties.offered = Some(xid);
        }
        self.properties.said = true;
    }

    /// Asks the peer to change its properties (REQPROP). False when one is out already, the
    /// peer has none, or its RBSIZ is to change while a Reply is half sent: try again.
    pub fn request_properties<'m>(&mut self, io: &mut impl Io<'m>, want: Values) -> bool {
        if self.properties.asking.xid.is_some() || !self.peer.announced || !self.speaks() {
            return false;
        }
        if want.receive_bytes.is_some() && self.responder.is_writing() {
            return false;
        }
        let mut octets = [0; 128];
        let xid = self.control_xid();
        let mut values = [(0, [0; 4]); 2];
        let set = lay_out(want, &mut values);
        let len = emit::emit_reqprop(&mut octets, xid, self.requester.wanted(), set);
        self.properties.asking = Asked {
            xid: Some(xid),
            count: u32::from(want.receive_bytes.is_some())
                .saturating_add(u32::from(want.backward.is_some())),
            receive_bytes: want.receive_bytes.map(|_| 0),
            backward: want
                .backward
                .map(|_| u32::from(want.receive_bytes.is_some())),
            wanted: want,
            before: self.peer.receive_bytes,
        };
        self.limit_sends(self.peer.receive_bytes);
        self.send_property(io, &octets, len)
    }

    /// The peer takes messages of `bytes` octets; who asks for a smaller buffer sends no larger
    /// ones from the request on (V2-21).
    fn limit_sends(&mut self, bytes: u32) {
        self.properties.asking.before = bytes;
        let wanted = self.properties.asking.wanted.receive_bytes;
        self.peer.receive_bytes = bytes.min(wanted.unwrap_or(u32::MAX));
    }

    /// Tells the peer that our properties have changed (UPDPROP). An RBSIZ is announced larger
    /// only when every smaller receive is gone: the engine posts all of one size from the start.
    /// False where there is nobody to tell, or for an RBSIZ beyond that size, or below what is
    /// announced, which only the peer can ask for (V2-21).
    pub fn update_properties<'m>(&mut self, io: &mut impl Io<'m>, now: Values) -> bool {
        let sizes = self.properties.announced_bytes..=self.setup.receive_bytes;
        let possible = now.receive_bytes.is_none_or(|bytes| sizes.contains(&bytes));
        // A peer without properties answers with an error, whose xid may be a Call's by then.
        if !self.speaks() || !self.peer.announced || !possible {
            return false;
        }
        self.take_values(now);
        let mut octets = [0; 128];
        let mut values = [(0, [0; 4]); 2];
        let set = lay_out(now, &mut values);
        let xid = self.control_xid();
        let len = emit::emit_updprop(&mut octets, xid, self.requester.wanted(), set);
        self.send_property(io, &octets, len)
    }

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

    fn take_values(&mut self, now: Values) {
        if let Some(bytes) = now.receive_bytes {
            self.properties.announced_bytes = bytes.min(self.setup.receive_bytes);
        }
        if let Some(backward) = now.backward {
            self.properties.backward = backward;
        }
    }

    fn speaks(&self) -> bool {
        self.setup.properties && self.version == Some(Version::Two)
    }

    fn send_property<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        octets: &[u8],
        len: Option<usize>,
    ) -> bool {
        let Some(message) = len.and_then(|len| octets.get(..len)) else {
            return false;
        };
        count(&mut io.counters().properties_out);
        self.send_control(io, message).is_ok()
    }

    /// An xid of ours for a control message: none of our live Calls has it (V2-18).
    fn control_xid(&mut self) -> Xid {
        loop {
            self.properties.next_xid = self.properties.next_xid.wrapping_add(1);
            let xid = Xid(self.properties.next_xid);
            if self.requester.xids.seek(xid).slot.is_none() {
                return xid;
            }
        }
    }

    /// A CONNPROP, REQPROP, RESPROP or UPDPROP.
    pub(crate) fn property_message<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        header: &Header<'m>,
    ) -> Event {
        if !self.setup.properties {
            if matches!(header.body, Body::RespProp { .. }) {
                // Its xid is ours, and we asked nothing (V2-14).
                count(&mut io.counters().strays);
                return Event::None;
            }
            let version = header.version.code();
            self.send_error(io, version, header.xid, ErrorBody::InvalOption);
            return Event::None;
        }
        count(&mut io.counters().properties_in);
        match header.body {
            Body::ConnProp { start, nochg } => self.announced(io, start, nochg),
            Body::ReqProp { want } => self.requested(io, header.xid, want),
            Body::RespProp {
                done,
                rejected,
                other,
            } => self.responded(io, header.xid, done, rejected, other),
            Body::UpdProp { now } => self.updated(io, now),
            _ => Event::None,
        }
    }

    fn announced<'m>(
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

    fn requested<'m>(&mut self, io: &mut impl Io<'m>, xid: Xid, want: PropertySet<'m>) -> Event {
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

    fn responded<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        xid: Xid,
        done: PropertySubset<'m>,
        rejected: PropertySubset<'m>,
        other: PropertySet<'m>,
    ) -> Event {
        let asking = self.properties.asking;
        let within = done.within(asking.count) && rejected.within(asking.count);
        if asking.xid != Some(xid) || !within {
            // Unknown, or beyond what was asked (V2-14): the request stays out.
            count(&mut io.counters().strays);
            return Event::None;
        }
        self.end_request();
        let (others, _) = known(other);
        // Done, and neither rejected nor given another value as well (V2-14).
        let is_done = |at: Option<u32>, doubled: bool| {
            at.is_some_and(|at| done.contains(at) && !rejected.contains(at)) && !doubled
        };
        let is_other =
            |at: Option<u32>| at.is_some_and(|at| !done.contains(at) && !rejected.contains(at));
        let mut now = Values::default();
        if is_done(asking.receive_bytes, others.receive_bytes.is_some()) {
            now.receive_bytes = asking.wanted.receive_bytes;
        } else if is_other(asking.receive_bytes) {
            now.receive_bytes = others.receive_bytes;
        }
        if is_done(asking.backward, others.backward.is_some()) {
            now.backward = asking.wanted.backward;
        } else if is_other(asking.backward) {
            now.backward = others.backward;
        }
        self.apply(now);
        self.tell(PropertyEvent::Responded(now))
    }

    fn updated<'m>(&mut self, io: &mut impl Io<'m>, now: PropertySet<'m>) -> Event {
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

    /// An ERROR for one of our control messages (V2-02, V2-18). True when it was one.
    pub(crate) fn control_error<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        xid: Xid,
        error: ErrorBody,
    ) -> bool {
        if self.properties.offered == Some(xid) {
            match error {
                ErrorBody::Version { low, high } if self.version.is_none() => {
                    self.fall_back(io, low, high);
                }
                _ => self.properties.peer_has_none(),
            }
            self.pump(io);
            return true;
        }
        if self.properties.asking.xid == Some(xid) {
            self.end_request();
            self.properties
                .push(PropertyEvent::Responded(Values::default()));
            self.properties.untold = true;
            return true;
        }
        false
    }

    /// Our REQPROP is answered: what it asked for holds only where the answer says so.
    fn end_request(&mut self) {
        let asking = std::mem::take(&mut self.properties.asking);
        self.limit_sends(asking.before);
    }

    fn apply(&mut self, values: Values) {
        if let Some(bytes) = values.receive_bytes {
            self.limit_sends(bytes);
        }
        if let Some(backward) = values.backward {
            self.peer.backward = backward;
        }
    }

    fn tell(&mut self, event: PropertyEvent) -> Event {
        self.properties.push(event);
        Event::Property
    }
}

/// The known properties of a set, and their positions; the last of two counts (V2-15).
fn known(set: PropertySet<'_>) -> (Values, (Option<u32>, Option<u32>)) {
    let (mut values, mut at) = (Values::default(), (None, None));
    for (position, property) in set.values() {
        match property {
            Property::ReceiveBufferSize(bytes) => {
                values.receive_bytes = Some(bytes);
                at.0 = Some(position);
            }
            Property::BackwardRequests(backward) => {
                values.backward = Some(backward);
                at.1 = Some(position);
            }
            Property::Unknown => {}
        }
    }
    (values, at)
}

fn bit(position: u32) -> u32 {
    1u32.checked_shl(position).unwrap_or(0)
}

/// The set with the values that are there, RBSIZ first.
fn lay_out(values: Values, room: &mut [(u32, [u8; 4]); 2]) -> impl Iterator<Item = (u32, &[u8])> {
    let wanted = [
        values.receive_bytes.map(Property::ReceiveBufferSize),
        values.backward.map(Property::BackwardRequests),
    ];
    let encoded = wanted.into_iter().flatten().filter_map(Property::encode);
    let count = room
        .iter_mut()
        .zip(encoded)
        .map(|(place, value)| *place = value)
        .count();
    room.iter()
        .take(count)
        .map(|(id, data)| (*id, data.as_slice()))
}
