//! Transport properties (version two 5.3) as events to and from the control thread.
//!
//! The engine keeps the rules of the exchange: one CONNPROP a side, one REQPROP outstanding
//! each way, UPDPROPs within a rate, fixed properties left alone. What to agree to is the
//! control thread's to decide: it takes a [`PropertyEvent`] and gives a [`Decision`].
//!
//! What this side says and asks is in `properties/ours.rs`, what the peer does in
//! `properties/theirs.rs`; here is what both need.

mod ours;
mod theirs;

use crate::api::Event;
use crate::connection::{Connection, count};
use crate::setup::{Setup, VERSION_TWO_BYTES};
use crate::work::Io;
use arrayvec::ArrayVec;
use rpcrdma_wire::property::{BackwardRequests, Property, PropertySet};
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
