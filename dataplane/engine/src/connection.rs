//! One connection: its life, and what becomes of its work. Messages come in by
//! [`Connection::receive`]: start reading there, in `arrivals.rs`.

use crate::api::{CloseReason, Event};
use crate::deferred::Deferred;
use crate::ids::{Kind, unpack};
use crate::phase::{Phase, PhaseEvent};
use crate::properties::Properties;
use crate::receives::Receives;
use crate::requester::Requester;
use crate::responder::{Responder, clamp};
use crate::setup::{FIRST_BYTES, Peer, Setup, Side, VERSION_TWO_BYTES};
use crate::work::{Io, Posted, Refused, WorkError, WorkId};
use rpcrdma_wire::private_data::PrivateData;
use rpcrdma_wire::{Reject, Version};

/// One connection, both roles and both directions.
///
/// Every method that takes an [`Io`] may post work and returns what the upper layer has to
/// know of that step. When [`Connection::runnable`] is true afterwards there is more:
/// [`Connection::resume`], until it is false.
// Laid out by hand: of a thousand connections none is in the processor's nearest cache when its
// turn comes, so what each message needs lies together, and in front.
#[repr(C, align(64))]
pub struct Connection {
    pub(crate) phase: Phase,
    /// [`Connection::resume`] has something to do.
    attention: bool,
    /// To be told to the upper layer once.
    announce: Option<CloseReason>,
    /// Work that will complete, receives aside.
    pub(crate) outstanding: u32,
    pub(crate) version: Option<Version>,
    pub(crate) peer: Peer,
    pub(crate) receives: Receives,
    pub(crate) requester: Requester,
    pub(crate) deferred: Deferred,
    pub(crate) responder: Responder,
    pub(crate) properties: Properties,
    pub(crate) setup: Setup,
    /// Why the last header was refused.
    pub(crate) last_refusal: Option<Reject>,
    /// The client was still offering version two when the connection broke.
    broke_while_offering: bool,
}

impl Connection {
    /// Cache lines at the beginning that each message needs.
    pub const MESSAGE_LINES: usize = {
        // The responder ends with what is seldom used; behind it is what each Call made looks at.
        std::mem::offset_of!(Connection, properties) / 64 + 1
    };

    /// Hands `fetch` the addresses of what the next message will need beside the connection itself,
    /// for them to be asked for ahead of it: a guess, exact for connections of few Calls at a time.
    #[inline(always)]
    pub fn foresee(&self, mut fetch: impl FnMut(*const u8)) {
        self.receives.foresee(&mut fetch);
        // A side that makes no Calls, or serves none, has no slots for them.
        if self.requester.slots.foresee(&mut fetch) {
            self.requester.xids.foresee(&mut fetch);
        }
        if self.responder.slots.foresee(&mut fetch) {
            self.responder.xids.foresee(&mut fetch);
        }
    }

    /// A connection to come. Allocates all it will ever need, but for arena memory.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let setup = Setup {
            limits: clamp(setup.limits),
            ..setup
        };
        Self {
            phase: Phase::Adopted,
            version: None,
            peer: Peer::unknown(),
            receives: Receives::new(setup.receives()),
            deferred: Deferred::new(setup.receives()),
            requester: Requester::new(setup.requester_credits()),
            responder: Responder::new(setup.responder_credits(), setup.side),
            properties: Properties::new(&setup),
            outstanding: 0,
            announce: None,
            attention: false,
            last_refusal: None,
            broke_while_offering: false,
            setup,
        }
    }

    /// Takes memory for the receives and posts them: before the connection is established.
    pub fn adopt<'m>(&mut self, io: &mut impl Io<'m>) -> Result<(), Refused> {
        for index in 0..self.setup.receives() {
            let Some(span) = io.reserve(self.setup.receive_bytes) else {
                self.receives.release_all(io);
                return Err(Refused::Busy);
            };
            self.receives.put(index, span);
        }
        for index in 0..self.setup.receives() {
            if let Err(refused) = self.receives.post(io, index) {
                // Those that were posted are flushed when the connection is closed.
                self.receives.release_all(io);
                return Err(refused);
            }
        }
        Ok(())
    }

    /// The connection is established. A client offers its highest version.
    pub fn established<'m>(&mut self, io: &mut impl Io<'m>, peer: Option<PrivateData>) -> Event {
        if self.phase.is_over() {
            return Event::None;
        }
        self.peer.private = peer;
        match (self.setup.side, self.setup.version_max) {
            (Side::Server, _) => self.advance(io, PhaseEvent::Await),
            (Side::Client, Version::One) => {
                self.advance(io, PhaseEvent::Start);
                self.agree_on(Version::One);
            }
            (Side::Client, Version::Two) => {
                self.advance(io, PhaseEvent::Offer);
                if self.setup.properties {
                    self.announce_properties(io);
                }
            }
        }
        self.attention = true;
        Event::None
    }

    /// The version in force, once it is known.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// Where the connection is in its life.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Which end this is.
    #[must_use]
    pub fn side(&self) -> Side {
        self.setup.side
    }

    /// The client had not learned the server's version when the connection broke: try again
    /// with version one (V2-09).
    #[must_use]
    pub fn broke_while_offering(&self) -> bool {
        self.broke_while_offering
    }

    /// Why the last header was refused.
    #[must_use]
    pub fn last_refusal(&self) -> Option<Reject> {
        self.last_refusal
    }

    /// The longest message the peer takes now, header included, octets.
    #[must_use]
    pub fn send_bytes(&self) -> u32 {
        self.peer.receive_bytes
    }

    /// The longest message this side has told its peer to send, header included, octets.
    #[must_use]
    pub fn receive_bytes(&self) -> u32 {
        match self.version {
            // The peer assumes the default until it knows of our properties.
            Some(Version::Two) if self.peer.announced => self.properties.announced_bytes(),
            Some(Version::Two) => VERSION_TWO_BYTES.min(self.setup.receive_bytes),
            // A peer that knows private data has ours, rounded as it is there.
            Some(Version::One) if self.peer.private.is_some() => self.setup.private_bytes(),
            _ => FIRST_BYTES,
        }
    }

    /// Outstanding work completed, or a receive was flushed.
    pub fn settle<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        id: WorkId,
        result: Result<(), WorkError>,
    ) -> Event {
        let Some((kind, slot)) = unpack(id) else {
            return self.illegal(io);
        };
        if kind == Kind::Receive {
            return self.receive_failed(io, slot.index, result);
        }
        self.outstanding = self.outstanding.saturating_sub(1);
        if let Err(error) = result
            && !self.phase.is_over()
        {
            self.fail(io, close_reason(kind, error));
        }
        // Whichever end noticed first that the connection is gone: the Call is suspect.
        if matches!(kind, Kind::Read | Kind::Write) && result == Err(WorkError::RemoteAccess) {
            self.responder.suspect(slot);
        }
        self.attention |=
            self.phase.is_over() || self.responder.has_stalled() || self.requester.waits();
        let event = match kind {
            Kind::Read => self.read_done(io, slot),
            Kind::Write | Kind::Reply => self.reply_work_done(io, slot),
            Kind::Retire => self.retire_done(io, slot, result),
            Kind::Call => self.call_work_done(io, slot),
            Kind::Control | Kind::Receive => Event::None,
        };
        self.end_if_quiet(io);
        event
    }

    /// The fabric says that the connection is gone.
    pub fn disconnected<'m>(&mut self, io: &mut impl Io<'m>) -> Event {
        self.fail(io, CloseReason::Peer);
        Event::None
    }

    /// No new Calls either way; the connection ends when those in flight are answered.
    pub fn drain<'m>(&mut self, io: &mut impl Io<'m>) -> Event {
        if self.phase == Phase::Adopted {
            // Nothing is in flight where nothing could be sent.
            return self.close(io, CloseReason::Local);
        }
        self.advance(io, PhaseEvent::Drain);
        self.end_if_quiet(io);
        Event::None
    }

    /// Ends the connection now.
    pub fn close<'m>(&mut self, io: &mut impl Io<'m>, reason: CloseReason) -> Event {
        self.fail(io, reason);
        Event::None
    }

    /// True when [`Connection::resume`] has something to do.
    #[inline]
    #[must_use]
    pub fn runnable(&self) -> bool {
        self.attention
    }

    /// Has [`Connection::resume`] look again: memory or windows may be free now.
    pub fn wake(&mut self) {
        self.attention = true;
    }

    /// True when Calls wait for memory: [`Connection::wake`] it when some was released.
    #[must_use]
    pub fn waits_for_memory(&self) -> bool {
        self.responder.has_stalled() || self.requester.waits()
    }

    /// Goes on with what had to wait. Call until [`Connection::runnable`] is false.
    pub fn resume<'m>(&mut self, io: &mut impl Io<'m>) -> Event {
        if let Some(reason) = self.announce.take() {
            return Event::Lost(reason);
        }
        if self.properties.take_untold() {
            return Event::Property;
        }
        // Whatever the step finds to do later sets it again.
        self.attention = false;
        let event = if self.phase.is_over() {
            self.unwind(io)
        } else {
            self.go_on(io)
        };
        self.attention |= event != Event::None || self.announce.is_some();
        event
    }

    /// A new queue pair, adopted next, for a client whose unanswered Calls are to be replayed.
    /// Only once [`Event::Closed`] has come.
    pub fn reopen(&mut self) -> bool {
        let Ok(phase) = self.phase.next(PhaseEvent::Reopen) else {
            return false;
        };
        self.phase = phase;
        self.version = None;
        self.peer = Peer::unknown();
        self.properties = Properties::new(&self.setup);
        self.requester.reset_credits();
        self.announce = None;
        true
    }

    /// Lowers the highest version to offer, for the next [`Connection::reopen`].
    pub fn offer_at_most(&mut self, version: Version) {
        self.setup.version_max = version;
    }

    /// Accounts for work that was taken.
    #[inline]
    pub(crate) fn posted(&mut self, posted: Posted) {
        if posted == Posted::Pending {
            self.outstanding = self.outstanding.saturating_add(1);
        }
    }

    /// Moves the connection; a step that must not happen ends it.
    pub(crate) fn advance<'m>(&mut self, io: &mut impl Io<'m>, event: PhaseEvent) {
        match self.phase.next(event) {
            Ok(phase) => self.phase = phase,
            Err(_) => {
                self.illegal(io);
            }
        }
    }

    /// Our own code did what it must never do.
    #[cold]
    pub(crate) fn illegal<'m>(&mut self, io: &mut impl Io<'m>) -> Event {
        debug_assert!(
            false,
            "illegal step of a connection in phase {:?}",
            self.phase
        );
        self.fail(io, CloseReason::Local);
        Event::None
    }

    /// Breaks the connection, once; the first reason counts.
    #[cold]
    pub(crate) fn fail<'m>(&mut self, io: &mut impl Io<'m>, reason: CloseReason) {
        if self.phase.is_over() {
            return;
        }
        self.broke_while_offering = self.version.is_none()
            && self.setup.side == Side::Client
            && self.phase != Phase::Adopted;
        self.phase = Phase::Broken;
        self.announce = Some(reason);
        self.attention = true;
        match reason {
            CloseReason::Work(_) => count(&mut io.counters().work_closes),
            CloseReason::Local | CloseReason::Peer | CloseReason::Memory => {}
            _ => count(&mut io.counters().protocol_closes),
        }
        io.disconnect();
    }

    /// A draining connection ends when nothing is in flight either way, the error that may have
    /// been the last answer included.
    #[inline(always)]
    pub(crate) fn end_if_quiet<'m>(&mut self, io: &mut impl Io<'m>) {
        if self.phase == Phase::Draining {
            self.end_drained(io);
        }
    }

    #[cold]
    fn end_drained<'m>(&mut self, io: &mut impl Io<'m>) {
        if self.requester.is_empty()
            && self.responder.is_empty()
            && self.deferred.is_empty()
            && self.outstanding == 0
        {
            self.fail(io, CloseReason::Local);
        }
    }

    /// Has the next [`Connection::resume`] look again.
    #[inline]
    pub(crate) fn look_again(&mut self) {
        self.attention = true;
    }

    /// The same, where the step just taken may have been the last one before the end.
    #[inline]
    pub(crate) fn look_again_if_over(&mut self) {
        self.attention |= self.phase.is_over();
    }

    /// One step of taking a broken connection apart; each returns what the upper layer must know.
    fn unwind<'m>(&mut self, io: &mut impl Io<'m>) -> Event {
        if self.phase == Phase::Closed {
            return Event::None;
        }
        self.drop_deferred(io);
        let event = self.unwind_requester(io);
        if event != Event::None {
            return event;
        }
        self.unwind_responder(io);
        let calls_done = match self.setup.replay {
            true => self.requester.only_queued(),
            false => self.requester.is_empty(),
        };
        if calls_done
            && self.responder.is_idle()
            && self.outstanding == 0
            && self.receives.is_empty()
        {
            self.advance(io, PhaseEvent::Flush);
            return Event::Closed;
        }
        Event::None
    }

    /// One step of going on with what had to wait.
    fn go_on<'m>(&mut self, io: &mut impl Io<'m>) -> Event {
        let event = self.resume_requester(io);
        if event != Event::None {
            return event;
        }
        let event = self.resume_deferred(io);
        if event != Event::None {
            return event;
        }
        self.resume_responder(io)
    }
}

/// Work that was flushed says only that the connection is gone.
pub(crate) fn close_reason(kind: Kind, error: WorkError) -> CloseReason {
    match (kind, error) {
        (_, WorkError::Flushed) => CloseReason::Peer,
        (Kind::Retire, _) => CloseReason::Invalidation,
        (_, error) => CloseReason::Work(error),
    }
}

/// Adds one to a counter.
#[inline]
pub(crate) fn count(counter: &mut u64) {
    *counter = counter.wrapping_add(1);
}

/// Adds octets to a counter.
#[inline]
pub(crate) fn count_bytes(counter: &mut u64, bytes: u32) {
    *counter = counter.wrapping_add(u64::from(bytes));
}
