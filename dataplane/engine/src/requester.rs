//! The Calls this side makes: slots, credits, and what happens to each Call until its Reply.
//!
//! A Call's life is [`CallPhase`](crate::phase::CallPhase). The engine never owns the memory of a
//! Call: it tells the upper layer, by one event for each Call, when the peer can no longer reach
//! it. Until then every exposure is in `exposures`, and `live` says which are still in force.
//!
//! | file | what |
//! |---|---|
//! | `requester.rs` | all Calls of a connection: slots, xids, credits |
//! | `requester/outgoing.rs` | one Call |
//! | `requester/submit.rs` | from the upper layer to the Send, through the queue where there is no credit |
//! | `requester/finish.rs` | the Reply is read, or nobody waits for it: the slot is free |

mod finish;
mod outgoing;
mod submit;

pub(crate) use outgoing::{Outgoing, Then};

use crate::api::SlotId;
use crate::connection::Connection;
use crate::phase::{CallEvent, Phase};
use crate::slots::Slots;
use crate::work::Io;
use crate::xids::Xids;
use rpcrdma_wire::Version;
use std::collections::VecDeque;

/// All Calls this side makes on one connection.
#[repr(C)]
pub(crate) struct Requester {
    pub(crate) slots: Slots<Outgoing>,
    pub(crate) xids: Xids,
    /// Calls at a time, at most: what this side asks for.
    wanted: u32,
    /// What the peer last granted, one at least.
    granted: u32,
    /// Calls sent and not answered.
    in_flight: u32,
    /// A retirement was refused for want of room.
    pub(crate) retire_again: bool,
    /// Slots in phase `Queued`, in order.
    queue: VecDeque<u16>,
}

impl Requester {
    pub(crate) fn new(count: u16) -> Self {
        Self {
            slots: Slots::new(count, Outgoing::empty),
            xids: Xids::new(count),
            queue: VecDeque::with_capacity(usize::from(count)),
            wanted: count.into(),
            granted: 1,
            in_flight: 0,
            retire_again: false,
        }
    }

    /// Before the first Reply exactly one Call may be out (8166 3.3.3, V2-17).
    pub(crate) fn reset_credits(&mut self) {
        self.granted = 1;
        self.in_flight = 0;
    }

    /// A grant from the peer: zero counts as one (section 4), and no more than there are slots.
    #[inline]
    pub(crate) fn grant(&mut self, credits: u32) {
        self.granted = credits.min(self.wanted).max(1);
    }

    /// One Call more is in flight: no more than there are slots.
    #[inline]
    fn launched(&mut self) {
        self.in_flight = self.in_flight.wrapping_add(1);
    }

    /// One Call fewer is in flight.
    #[inline]
    pub(crate) fn answered(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// What this side asks for in its Calls.
    #[inline]
    pub(crate) fn wanted(&self) -> u32 {
        self.wanted
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.used_count() == 0
    }

    pub(crate) fn only_queued(&self) -> bool {
        self.slots.used_count() == self.queue.len()
    }

    /// Something here found no room: the next completion, or released memory, may bring it.
    pub(crate) fn waits(&self) -> bool {
        self.retire_again || !self.queue.is_empty() && self.in_flight < self.granted
    }

    pub(crate) fn unqueue(&mut self, slot: SlotId) {
        self.queue.retain(|&index| index != slot.index);
    }
}

impl Connection {
    /// Credits of the forward or backward direction this side makes Calls in: in use, granted.
    #[must_use]
    pub fn requester_credits(&self) -> (u32, u32) {
        (self.requester.in_flight, self.requester.granted)
    }

    /// True when [`Connection::submit`] would take a Call now.
    #[inline]
    #[must_use]
    pub fn can_submit(&self) -> bool {
        let taking = matches!(self.phase, Phase::Offering | Phase::Open)
            || self.setup.replay && self.phase.is_over();
        taking && self.requester.slots.free_count() > 0
    }

    /// True while no Call waits for a credit: another one would be sent at once.
    #[inline]
    #[must_use]
    pub fn has_credit(&self) -> bool {
        self.requester.queue.is_empty() && self.requester.in_flight < self.requester.granted
    }

    /// Octets of Reply, the RPC message alone, that are sure to come inline to a Call with
    /// `results` Write chunks of one segment and no Reply chunk.
    #[must_use]
    pub fn reply_inline_bytes(&self, results: usize) -> u32 {
        let version = self.version.unwrap_or(Version::One);
        let header = rpcrdma_wire::emit::message_bytes(version, 0, results, results, None);
        self.receive_bytes()
            .saturating_sub(u32::try_from(header).unwrap_or(u32::MAX))
    }

    /// Moves a Call; a step that must not happen ends the connection.
    #[inline]
    pub(crate) fn step_call<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId, event: CallEvent) {
        let call = self.requester.slots.get_mut(slot);
        if call.is_none_or(|call| call.step(event).is_err()) {
            self.illegal(io);
        }
    }
}
