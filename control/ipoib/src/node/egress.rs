//! Sends datagrams to groups by the rule of link section 9:
//!
//! ```text
//! if the port is a member                  send
//! else if the group exists                 join it as a sender, then send
//! else if the all-router group exists      send to the routers, by the same rule
//! else                                     drop
//! ```
//!
//! Nothing here waits for the SA: a datagram whose group has to be asked for or joined goes to that group's small queue, and
//! is sent, turned to the routers, or dropped and counted when it is known which. What is known of a group's absence ends
//! with a report of its creation, or with its age; the group's own traffic makes it ask again, so a listener that shows up
//! takes the traffic back from the routers.

use super::{AddressVector, Key, LinkId, MULTICAST_QPN, Node, Output};
use crate::group::{Attributes, Group, Knowledge, Phase, Waiting};
use crate::packet::ENCAPSULATION_BYTES;
use crate::time::Moment;
use crate::trouble::{Drop, Refusal};
use std::net::IpAddr;

/// What became of a datagram that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It went to its group.
    Sent,
    /// It went to the routers.
    Routed,
    /// It waits for a group to be joined.
    Waiting,
    /// It was dropped.
    Dropped(Drop),
}

impl Node {
    /// Sends a frame, as [`emit_udp`](crate::packet::emit_udp) makes it: to the group of a multicast address, or to a host on
    /// the link. A host elsewhere is sent to by its router's address.
    ///
    /// # Errors
    /// No such link, or an address of the other IP. What is dropped for other reasons is no error: it is a datagram.
    pub fn send(
        &mut self,
        now: Moment,
        id: LinkId,
        address: IpAddr,
        frame: Vec<u8>,
    ) -> Result<Fate, Refusal> {
        let fate = self.try_send(now, id, address, frame);
        self.settle(now);
        fate.map_err(|refusal| self.ledger.refused(refusal))
    }

    fn try_send(
        &mut self,
        now: Moment,
        id: LinkId,
        address: IpAddr,
        frame: Vec<u8>,
    ) -> Result<Fate, Refusal> {
        if self.closing.is_some() {
            return Err(Refusal::Closing);
        }
        let link = self.link(id).ok_or(Refusal::UnknownLink)?;
        let mgid = match link.group_of(address) {
            Err(Refusal::NotMulticast) => None,
            mgid => mgid?,
        };
        let mtu = link.attributes.map_or(0, |link| link.mtu.ip_octets());
        if !link.is_usable() {
            return Ok(self.drop_one(Drop::LinkDown));
        }
        if frame.len() > usize::from(mtu) + ENCAPSULATION_BYTES {
            return Ok(self.drop_one(Drop::TooLong));
        }
        Ok(match mgid {
            Some(mgid) => self.forward(now, Key { link: id, mgid }, frame),
            None => self.send_to_host(now, id, address, frame),
        })
    }

    /// The rule, for one frame.
    pub(super) fn forward(&mut self, now: Moment, key: Key, frame: Vec<u8>) -> Fate {
        if self.entry(now, key).is_err() {
            return self.drop_one(Drop::GroupsFull);
        }
        let cache_ms = self.settings.timing.cache_ms;
        let known = self.change(now, key, |group| {
            group.sent = Some(now);
            if !group.proven {
                group.knowledge = group.knowledge.fresh(now, cache_ms);
            }
            (group.can_send(), group.knowledge, group.phase)
        });
        match known {
            Some((true, Knowledge::Exists(attributes, _), _)) => {
                self.emit_frame(key, &attributes, frame);
                Fate::Sent
            }
            Some((_, Knowledge::Missing(_), _)) => self.send_to_routers(now, key, frame),
            Some((_, _, Phase::Resting)) => self.drop_one(Drop::NotJoined),
            _ => self.wait(now, key, frame),
        }
    }

    /// Nobody on the link listens; routers may know somebody elsewhere. They are a group like any other.
    fn send_to_routers(&mut self, now: Moment, key: Key, frame: Vec<u8>) -> Fate {
        let routers = self.link(key.link).and_then(crate::link::Link::all_routers);
        match routers {
            Some(mgid) if mgid != key.mgid => match self.forward(now, Key { mgid, ..key }, frame) {
                Fate::Sent => Fate::Routed,
                other => other,
            },
            _ => self.drop_one(Drop::NoListener),
        }
    }

    fn wait(&mut self, now: Moment, key: Key, bytes: Vec<u8>) -> Fate {
        let limits = self.settings.limits;
        let others = self.waiting_octets;
        let until = now.after(self.settings.timing.wait_ms);
        let added = self.change(now, key, |group| {
            group.waiting.add(Waiting { until, bytes }, &limits, others)
        });
        if !matches!(added, Some(Ok(()))) {
            return self.drop_one(Drop::WaitingFull);
        }
        self.drive(now, key);
        Fate::Waiting
    }

    /// Decides about the frames that wait for a group, where anything is decided.
    pub(super) fn release_waiting(&mut self, now: Moment, key: Key) {
        let waits = |group: &Group| !group.waiting.is_empty();
        if !self.groups.get(&key).is_some_and(waits) {
            return;
        }
        let mut late = 0;
        self.change(now, key, |group| {
            while group.waiting.expired(now).is_some() {
                late += 1;
            }
        });
        self.ledger.dropped(Drop::WaitedTooLong, late);
        let Some(group) = self.groups.get(&key) else {
            return;
        };
        let (ready, missing) = (
            group.can_send(),
            matches!(group.knowledge, Knowledge::Missing(_)),
        );
        let failed = group.phase == Phase::Resting && group.retry > now;
        if !(ready || failed || missing && group.phase.is_still()) {
            return;
        }
        let frames = self.change(now, key, |group| group.waiting.take());
        for frame in frames.into_iter().flatten() {
            self.release(now, key, frame.bytes, failed && !ready);
        }
    }

    fn release(&mut self, now: Moment, key: Key, bytes: Vec<u8>, failed: bool) {
        let group = self.groups.get(&key);
        let sendable = group.filter(|group| group.can_send());
        match sendable.and_then(|group| group.knowledge.attributes().copied()) {
            Some(attributes) => self.emit_frame(key, &attributes, bytes),
            None if failed => {
                self.drop_one(Drop::NotJoined);
            }
            None => {
                self.send_to_routers(now, key, bytes);
            }
        }
    }

    pub(super) fn drop_one(&mut self, why: Drop) -> Fate {
        self.ledger.dropped(why, 1);
        Fate::Dropped(why)
    }

    /// A frame to all of a group: with the link's Q_Key, and the group's own way (link sections 6.3 and 7).
    fn emit_frame(&mut self, key: Key, to: &Attributes, bytes: Vec<u8>) {
        self.outputs.push_back(Output::Frame {
            link: key.link,
            to: AddressVector {
                lid: to.mlid,
                gid: key.mgid,
                qpn: MULTICAST_QPN,
                q_key: to.q_key,
                sl: to.sl,
                t_class: to.t_class,
                flow_label: to.flow_label,
                hop_limit: to.hop_limit,
                rate: to.rate.code(),
            },
            bytes,
        });
    }
}
