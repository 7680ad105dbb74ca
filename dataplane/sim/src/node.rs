//! One end with its engine and an upper layer that calls, serves, cancels and gives up as the
//! run's choices say, and holds everything the engine tells it against the ledger.

use crate::chance::Chance;
use crate::ledger::{Ledger, Outcome};
use crate::lend::{UNWRITTEN, check_shortage, lay_out, release_all, rooms};
use crate::link::Link;
use crate::message::{Rpc, check_same};
use rpcrdma_engine::{
    Call, CloseReason, Connection, Decision, Event, Io, PropertyEvent, Refused, Reply, Setup,
    SlotId, Span, Values, Verdict,
};
use rpcrdma_wire::{BackwardRequests, Xid};

/// A Call of this end, and the memory lent to the engine for it.
struct OwnCall {
    slot: SlotId,
    xid: Xid,
    message: Vec<Span>,
    results: Vec<Span>,
    reply: Option<Span>,
    cancelled: bool,
}

impl OwnCall {
    fn blocks(&self) -> impl Iterator<Item = Span> + '_ {
        let rooms = self.results.iter().chain(&self.reply);
        self.message.iter().chain(rooms).copied()
    }
}

/// What became of an RPC that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// The engine has it.
    Taken,
    /// There is no room for it now.
    NotNow,
    /// It is one that the peer does not take.
    Never,
}

/// One end of a run.
pub struct Node {
    /// Which end.
    pub end: usize,
    /// Its engine.
    pub connection: Connection,
    /// How it was set up.
    pub setup: Setup,
    calls: Vec<OwnCall>,
    answered: Vec<SlotId>,
    starved: Vec<SlotId>,
    serving: Vec<(SlotId, Xid)>,
    asked: bool,
    /// Why the connection ended, once it has.
    pub lost: Option<CloseReason>,
    /// Everything has come back.
    pub closed: bool,
}

impl Node {
    /// An end with a connection that is not adopted yet.
    #[must_use]
    pub fn new(end: usize, setup: Setup) -> Node {
        Node {
            end,
            connection: Connection::new(setup),
            setup,
            calls: Vec::new(),
            answered: Vec::new(),
            starved: Vec::new(),
            serving: Vec::new(),
            asked: false,
            lost: None,
            closed: false,
        }
    }

    /// Calls that have not ended.
    #[must_use]
    pub fn calls_out(&self) -> usize {
        self.calls.len()
    }

    /// Calls that wait for the service, and Replies that wait to be read.
    #[must_use]
    pub fn has_duties(&self) -> bool {
        !self.serving.is_empty() || !self.answered.is_empty() || !self.starved.is_empty()
    }

    /// Calls wait for the service.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        !self.serving.is_empty()
    }

    /// Replies wait to be read.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        !self.answered.is_empty()
    }

    /// Calls need more room.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        !self.starved.is_empty()
    }

    /// Before a new connection: a client keeps its engine, with the Calls to be sent again.
    pub fn renew(&mut self, replay: bool) {
        assert!(self.closed, "end {} has not closed", self.end);
        self.lost = None;
        self.closed = false;
        self.asked = false;
        if replay {
            assert!(self.connection.reopen());
        } else {
            let suspects = self.connection.suspects().to_vec();
            self.connection = Connection::new(self.setup);
            self.connection.set_suspects(&suspects);
        }
    }

    /// Makes one RPC.
    pub fn submit(
        &mut self,
        link: &mut Link<'_>,
        ledger: &mut Ledger,
        xid: Xid,
        rpc: Rpc,
    ) -> Submitted {
        let desk = &mut link.desk(self.end);
        let Some((parts, message)) = rpc.call.place(desk) else {
            return Submitted::NotNow;
        };
        let Some((results, reply)) = rooms(desk, &rpc.rooms, rpc.reply_room) else {
            message.into_iter().for_each(|span| desk.release(span));
            return Submitted::NotNow;
        };
        if !ledger.open(self.end, xid, rpc) {
            release_all(desk, message.into_iter().chain(results).chain(reply));
            return Submitted::NotNow;
        }
        let call = Call {
            xid,
            parts: &parts,
            results: &results,
            reply,
        };
        match self.connection.submit(desk, call) {
            Ok(slot) => {
                let cancelled = false;
                self.calls.push(OwnCall {
                    slot,
                    xid,
                    message,
                    results,
                    reply,
                    cancelled,
                });
                Submitted::Taken
            }
            Err(refused) => {
                ledger.withdraw(self.end, xid);
                release_all(desk, message.into_iter().chain(results).chain(reply));
                match refused {
                    Refused::Unsupported => Submitted::Never,
                    Refused::Busy | Refused::Broken => Submitted::NotNow,
                }
            }
        }
    }

    /// Does what an event asks for.
    pub fn handle(&mut self, link: &mut Link<'_>, ledger: &mut Ledger, event: Event) {
        match event {
            Event::None => {}
            Event::Call(slot) => {
                assert_eq!(self.lost, None, "a Call after the end");
                let desk = &mut link.desk(self.end);
                let call = self.connection.call(desk, slot).expect("a Call is here");
                let message = desk.octets(call.message);
                ledger.serve(1 - self.end, call.xid, message);
                self.serving.push((slot, call.xid));
            }
            Event::Reply(slot) => {
                self.check_reply(link, ledger, slot);
                self.answered.push(slot);
            }
            Event::Failed(slot, error) => self.over(link, ledger, slot, Outcome::Failed(error)),
            Event::Cancelled(slot) => {
                let call = self.call_in(slot);
                assert!(call.cancelled, "{:?} was not cancelled", call.xid);
                self.over(link, ledger, slot, Outcome::Cancelled);
            }
            Event::NeedsRoom {
                slot,
                segment,
                length,
            } => {
                let call = self.call_in(slot);
                ledger.starve(self.end, call.xid);
                let rpc = ledger.rpc(self.end, call.xid);
                let rooms: Vec<u32> = call.results.iter().map(|span| span.len).collect();
                check_shortage(
                    rpc,
                    &rooms,
                    call.reply,
                    self.setup.segment_bytes,
                    segment,
                    length,
                );
                self.starved.push(slot);
            }
            Event::Property => self.hear(),
            Event::Lost(reason) => self.lose(link, ledger, reason),
            Event::Closed => {
                assert!(self.lost.is_some(), "closed, and never lost");
                assert!(
                    link.ends[self.end].is_quiet(),
                    "closed with work outstanding"
                );
                self.closed = true;
            }
        }
    }

    fn hear(&mut self) {
        while let Some(event) = self.connection.take_property_event() {
            self.asked |= matches!(event, PropertyEvent::Requested(_));
        }
    }

    fn lose(&mut self, link: &mut Link<'_>, ledger: &mut Ledger, reason: CloseReason) {
        assert_eq!(self.lost, None, "lost twice");
        self.lost = Some(reason);
        for (slot, _) in std::mem::take(&mut self.serving) {
            let event = self
                .connection
                .abandon(&mut link.desk(self.end), slot, false);
            assert_eq!(event, Event::None);
        }
        for slot in std::mem::take(&mut self.starved) {
            self.cancel(link, ledger, slot);
        }
    }

    fn call_in(&self, slot: SlotId) -> &OwnCall {
        let call = self.calls.iter().find(|call| call.slot == slot);
        call.expect("an event for a Call of this end")
    }

    /// A Reply is what the service sent, where it was to go, and nothing else was written.
    fn check_reply(&self, link: &mut Link<'_>, ledger: &Ledger, slot: SlotId) {
        let call = self.call_in(slot);
        let desk = &mut link.desk(self.end);
        for block in call.blocks() {
            desk.device().check_private(block, "Reply");
        }
        let rooms: Vec<u32> = call.results.iter().map(|span| span.len).collect();
        let (body, placed) = ledger.rpc(self.end, call.xid).reply.without(&rooms);
        let reply = self.connection.reply(slot).expect("a Reply is here");
        check_same(desk.octets(reply.body), &body, "the body of a Reply");
        for (place, &room) in call.results.iter().enumerate() {
            let sent = placed.get(place).cloned().flatten().unwrap_or_default();
            let written = (room.len > 0).then_some(u32::try_from(sent.len()).expect("short"));
            assert_eq!(
                reply.written[place], written,
                "result {place} of {:?}",
                call.xid
            );
            let octets = desk.octets(room);
            check_same(&octets[..sent.len()], &sent, "a result");
            assert!(octets[sent.len()..].iter().all(|octet| *octet == UNWRITTEN));
        }
    }

    /// A Call is over, and its memory this end's again.
    fn over(&mut self, link: &mut Link<'_>, ledger: &mut Ledger, slot: SlotId, outcome: Outcome) {
        let place = self.calls.iter().position(|call| call.slot == slot);
        let call = self.calls.swap_remove(place.expect("a Call of this end"));
        ledger.end(self.end, call.xid, outcome, self.connection.version());
        // Releasing looks whether any of it can still be reached.
        release_all(&mut link.desk(self.end), call.blocks());
    }

    /// Reads one of the Replies that are here.
    pub fn finish_one(&mut self, link: &mut Link<'_>, ledger: &mut Ledger, chance: &mut Chance) {
        if self.answered.is_empty() {
            return;
        }
        let slot = self.answered.swap_remove(chance.index(self.answered.len()));
        // It is still what it was.
        self.check_reply(link, ledger, slot);
        let event = self.connection.finish(&mut link.desk(self.end), slot);
        assert_eq!(event, Event::None);
        self.over(link, ledger, slot, Outcome::Answered);
    }

    /// Cancels any Call.
    pub fn cancel_one(&mut self, link: &mut Link<'_>, ledger: &mut Ledger, chance: &mut Chance) {
        if !self.calls.is_empty() {
            let slot = self.calls[chance.index(self.calls.len())].slot;
            self.cancel(link, ledger, slot);
        }
    }

    /// Cancels every Call.
    pub fn cancel_all(&mut self, link: &mut Link<'_>, ledger: &mut Ledger) {
        let slots: Vec<SlotId> = self.calls.iter().map(|call| call.slot).collect();
        for slot in slots {
            self.cancel(link, ledger, slot);
        }
    }

    fn cancel(&mut self, link: &mut Link<'_>, ledger: &mut Ledger, slot: SlotId) {
        for call in self.calls.iter_mut().filter(|call| call.slot == slot) {
            call.cancelled = true;
        }
        self.answered.retain(|other| *other != slot);
        self.starved.retain(|other| *other != slot);
        let event = self.connection.cancel(&mut link.desk(self.end), slot);
        self.handle(link, ledger, event);
    }

    /// Answers one of the Calls that wait, or gives it up.
    pub fn answer_one(
        &mut self,
        link: &mut Link<'_>,
        ledger: &mut Ledger,
        chance: &mut Chance,
        abandon_percent: u32,
    ) {
        if self.serving.is_empty() {
            return;
        }
        let place = chance.index(self.serving.len());
        let (slot, xid) = self.serving[place];
        let desk = &mut link.desk(self.end);
        let event = if chance.percent(abandon_percent) {
            ledger.abandon(1 - self.end, xid);
            self.connection.abandon(desk, slot, true)
        } else {
            let rpc = ledger.rpc(1 - self.end, xid);
            let Some((head, parts, memory)) = lay_out(desk, &rpc.reply, chance.one_in(2)) else {
                return;
            };
            let reply = Reply {
                head: &head,
                parts: &parts,
                memory,
            };
            self.connection.answer(desk, slot, reply)
        };
        self.serving.swap_remove(place);
        self.handle(link, ledger, event);
    }

    /// Finds more room for one of the Calls that need it, or cancels it.
    pub fn feed_one(&mut self, link: &mut Link<'_>, ledger: &mut Ledger, chance: &mut Chance) {
        let Some(slot) = self.starved.pop() else {
            return;
        };
        let place = self.calls.iter().position(|call| call.slot == slot);
        let call = &mut self.calls[place.expect("a Call of this end")];
        let rpc = ledger.rpc(self.end, call.xid);
        let mut wanted: Vec<u32> = call.results.iter().map(|span| span.len).collect();
        for (room, item) in wanted.iter_mut().zip(rpc.reply.items()) {
            *room = (*room).max(u32::try_from(item.len()).expect("short"));
        }
        let body = u32::try_from(rpc.reply.whole().len()).expect("short");
        let desk = &mut link.desk(self.end);
        let new = if chance.one_in(6) {
            None
        } else {
            rooms(desk, &wanted, Some(body))
        };
        let Some((results, reply)) = new else {
            return self.cancel(link, ledger, slot);
        };
        release_all(desk, call.results.drain(..).chain(call.reply.take()));
        (call.results, call.reply) = (results, reply);
        let event = self
            .connection
            .resubmit(desk, slot, &call.results, call.reply);
        self.handle(link, ledger, event);
    }

    /// Says or asks something about properties.
    pub fn speak(&mut self, link: &mut Link<'_>, chance: &mut Chance) {
        let desk = &mut link.desk(self.end);
        let levels = [
            BackwardRequests::None,
            BackwardRequests::Inline,
            BackwardRequests::General,
        ];
        let values = Values {
            receive_bytes: chance.one_in(2).then(|| chance.between(4, 16) * 1024),
            backward: chance.one_in(2).then(|| chance.pick(&levels)),
        };
        if std::mem::take(&mut self.asked) {
            let verdict = chance.below(3);
            let decision = match verdict {
                0 => Decision {
                    receive_bytes: Verdict::Rejected,
                    backward: Verdict::Rejected,
                },
                1 => Decision {
                    receive_bytes: Verdict::Done,
                    backward: Verdict::Done,
                },
                _ => Decision {
                    receive_bytes: Verdict::Other(4096),
                    backward: Verdict::Other(chance.pick(&levels)),
                },
            };
            self.connection.decide(desk, decision);
        } else if chance.one_in(2) {
            self.connection.request_properties(desk, values);
        } else {
            self.connection.update_properties(desk, values);
        }
    }
}
