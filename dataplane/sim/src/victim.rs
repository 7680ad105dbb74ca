//! An engine whose peer keeps no rule, and an upper layer that believes nothing but its engine.
//!
//! What arrives may be anything; what must hold is that memory handed up, or back, cannot be
//! reached by the peer any more, and that every Call comes to exactly one end.

use crate::chance::Chance;
use crate::lend::{lay_out, release_all, rooms};
use crate::link::Link;
use crate::message::{Message, Rpc, Sizes};
use rpcrdma_engine::{
    Call, CloseReason, Connection, Decision, Event, Io, PropertyEvent, Reply, Setup, SlotId, Span,
    Values, Verdict,
};
use rpcrdma_wire::{BackwardRequests, Direction, Xid};

const SIZES: Sizes = Sizes {
    plain: 2000,
    item: 3000,
    short_percent: 30,
    small_percent: 0,
};

/// A Call, and the memory lent for it.
struct Lent {
    slot: SlotId,
    blocks: Vec<Span>,
    results: usize,
}

/// One engine under attack.
pub struct Victim {
    end: usize,
    /// Its engine.
    pub connection: Connection,
    calls: Vec<Lent>,
    answered: Vec<SlotId>,
    starved: Vec<SlotId>,
    serving: Vec<(SlotId, Xid)>,
    asked: bool,
    /// Why the connection ended, once it has.
    pub lost: Option<CloseReason>,
    /// Everything has come back.
    pub closed: bool,
}

impl Victim {
    /// A connection to come.
    #[must_use]
    pub fn new(end: usize, setup: Setup) -> Victim {
        Victim {
            end,
            connection: Connection::new(setup),
            calls: Vec::new(),
            answered: Vec::new(),
            starved: Vec::new(),
            serving: Vec::new(),
            asked: false,
            lost: None,
            closed: false,
        }
    }

    /// Calls that have not come to an end.
    #[must_use]
    pub fn calls_out(&self) -> usize {
        self.calls.len()
    }

    /// Does what an event asks for.
    pub fn handle(&mut self, link: &mut Link<'_>, event: Event) {
        let desk = &mut link.desk(self.end);
        match event {
            Event::None => {}
            Event::Call(slot) => {
                let call = self.connection.call(desk, slot).expect("a Call is here");
                let message = desk.octets(call.message);
                assert_eq!(message[..4], call.xid.0.to_be_bytes());
                self.serving.push((slot, call.xid));
            }
            Event::Reply(slot) => {
                self.check(link, slot);
                self.answered.push(slot);
            }
            Event::Failed(slot, _) | Event::Cancelled(slot) => self.over(link, slot),
            Event::NeedsRoom { slot, .. } => {
                self.check(link, slot);
                self.starved.push(slot);
            }
            Event::Property => {
                while let Some(event) = self.connection.take_property_event() {
                    self.asked |= matches!(event, PropertyEvent::Requested(_));
                }
            }
            Event::Lost(reason) => {
                assert_eq!(self.lost.replace(reason), None, "lost twice");
                for (slot, _) in std::mem::take(&mut self.serving) {
                    self.connection.abandon(desk, slot, false);
                }
                for slot in std::mem::take(&mut self.starved) {
                    self.cancel(link, slot);
                }
            }
            Event::Closed => {
                assert!(
                    link.ends[self.end].is_quiet(),
                    "closed with work outstanding"
                );
                self.closed = true;
            }
        }
    }

    /// Nothing lent for this Call can be reached by the peer, or by a device.
    fn check(&self, link: &mut Link<'_>, slot: SlotId) {
        let call = self.calls.iter().find(|call| call.slot == slot);
        let call = call.expect("an event for a Call of this end");
        let desk = &mut link.desk(self.end);
        for &block in &call.blocks {
            desk.device().check_private(block, "an end of a Call");
        }
        if let Some(reply) = self.connection.reply(slot) {
            let body = desk.octets(reply.body);
            assert!(body.len() >= 8, "a Reply of {} octets", body.len());
            let beyond = reply.written.iter().skip(call.results);
            assert!(beyond.into_iter().all(Option::is_none));
        }
    }

    fn over(&mut self, link: &mut Link<'_>, slot: SlotId) {
        let place = self.calls.iter().position(|call| call.slot == slot);
        let call = self.calls.swap_remove(place.expect("a Call of this end"));
        release_all(&mut link.desk(self.end), call.blocks.into_iter());
    }

    fn cancel(&mut self, link: &mut Link<'_>, slot: SlotId) {
        self.answered.retain(|other| *other != slot);
        self.starved.retain(|other| *other != slot);
        let event = self.connection.cancel(&mut link.desk(self.end), slot);
        self.handle(link, event);
    }

    /// Reads every Reply that is here.
    pub fn read_all(&mut self, link: &mut Link<'_>) {
        for slot in std::mem::take(&mut self.answered) {
            self.check(link, slot);
            self.connection.finish(&mut link.desk(self.end), slot);
            self.over(link, slot);
        }
    }

    /// Does something that an upper layer may do.
    pub fn act(&mut self, link: &mut Link<'_>, chance: &mut Chance) {
        match chance.below(10) {
            0 if !self.calls.is_empty() => {
                let slot = self.calls[chance.index(self.calls.len())].slot;
                self.cancel(link, slot);
            }
            1..4 => self.answer(link, chance),
            4 => self.read_all(link),
            5 => self.feed(link),
            6 => self.speak(link, chance),
            7 => self.connection.tick(&mut link.desk(self.end)),
            _ => self.submit(link, chance),
        }
    }

    fn submit(&mut self, link: &mut Link<'_>, chance: &mut Chance) {
        if !self.connection.can_submit() {
            return;
        }
        let xid = Xid(chance.word());
        let rpc = Rpc::any(chance, xid, SIZES);
        let desk = &mut link.desk(self.end);
        let Some((parts, mut blocks)) = rpc.call.place(desk) else {
            return;
        };
        let Some((results, reply)) = rooms(desk, &rpc.rooms, rpc.reply_room) else {
            return release_all(desk, blocks.into_iter());
        };
        let call = Call {
            xid,
            parts: &parts,
            results: &results,
            reply,
        };
        let submitted = self.connection.submit(desk, call);
        let count = results.len();
        blocks.extend(results.into_iter().chain(reply));
        match submitted {
            Ok(slot) => self.calls.push(Lent {
                slot,
                blocks,
                results: count,
            }),
            Err(_) => release_all(desk, blocks.into_iter()),
        }
    }

    fn answer(&mut self, link: &mut Link<'_>, chance: &mut Chance) {
        if self.serving.is_empty() {
            return;
        }
        let (slot, xid) = self.serving.swap_remove(chance.index(self.serving.len()));
        let desk = &mut link.desk(self.end);
        let items: Vec<u32> = (0..chance.below(3)).map(|_| chance.below(3000)).collect();
        let plain = chance.below(5000);
        let message = Message::new(chance, xid, Direction::Reply, plain, &items, true);
        let event = match lay_out(desk, &message, chance.one_in(2)) {
            Some((head, parts, memory)) if !chance.one_in(8) => {
                let reply = Reply {
                    head: &head,
                    parts: &parts,
                    memory,
                };
                self.connection.answer(desk, slot, reply)
            }
            laid_out => {
                let memory = laid_out.and_then(|(_, _, memory)| memory);
                release_all(desk, memory.into_iter());
                self.connection.abandon(desk, slot, chance.one_in(2))
            }
        };
        self.handle(link, event);
    }

    /// Makes a second attempt with what is there, for one Call that needs more room.
    fn feed(&mut self, link: &mut Link<'_>) {
        let Some(slot) = self.starved.pop() else {
            return;
        };
        let desk = &mut link.desk(self.end);
        let Some(room) = desk.reserve(4000) else {
            return self.cancel(link, slot);
        };
        let call = self.calls.iter_mut().find(|call| call.slot == slot);
        let call = call.expect("a Call of this end");
        call.blocks.push(room);
        call.results = 0;
        let event = self.connection.resubmit(desk, slot, &[], Some(room));
        self.handle(link, event);
    }

    fn speak(&mut self, link: &mut Link<'_>, chance: &mut Chance) {
        let desk = &mut link.desk(self.end);
        let values = Values {
            receive_bytes: chance.one_in(2).then_some(4096),
            backward: chance.one_in(2).then_some(BackwardRequests::General),
        };
        if std::mem::take(&mut self.asked) {
            let decision = Decision {
                receive_bytes: Verdict::Done,
                backward: Verdict::Rejected,
            };
            self.connection.decide(desk, decision);
        } else {
            self.connection.request_properties(desk, values);
        }
    }
}
