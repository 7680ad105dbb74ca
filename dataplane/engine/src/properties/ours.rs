//! What this side says and asks: CONNPROP, REQPROP and UPDPROP out, RESPROP and errors in.
//!
//! A REQPROP for a smaller buffer holds for our own Sends from when it is sent (V2-21), so it may
//! take effect before the peer has agreed to it. What the peer takes were it not for the request is
//! kept until the answer, and is what holds again where that does not say "done".

use super::{Asked, PropertyEvent, Values, known, lay_out};
use crate::api::Event;
use crate::connection::{Connection, count};
use crate::work::Io;
use rpcrdma_wire::property::{PropertySet, PropertySubset};
use rpcrdma_wire::{ErrorBody, Xid, emit};

impl Connection {
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
    pub(super) fn limit_sends(&mut self, bytes: u32) {
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

    pub(super) fn responded<'m>(
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
}
