//! One queue pair, as the lcore that owns it sees it.

use crate::fifo::Fifo;
use crate::lane::Lane;
use crate::link::{Cause, Link};
use crate::ring::{Address, Heading};
use crate::window::Owner;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::{Handle, Octets, Segment, Span, Token, WorkError, WorkId};
use std::sync::Arc;

/// A queue pair on its way from the control thread to an lcore. Dropping it ends the
/// connection.
#[derive(Debug)]
pub struct Endpoint(Option<Parts>);

/// What an endpoint brings: the connection, and all the memory its queue pair will need.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) port: u32,
    pub(crate) link: Arc<Link>,
    pub(crate) side: usize,
    pub(crate) receives: Fifo<Receive>,
    pub(crate) waiting: Fifo<Waiting>,
}

impl Endpoint {
    pub(crate) fn new(parts: Parts) -> Endpoint {
        Endpoint(Some(parts))
    }

    pub(crate) fn into_parts(mut self) -> Option<Parts> {
        self.0.take()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some(parts) = &self.0
            && parts.link.sever(Cause::Ended)
        {
            parts.link.tell(1 - parts.side);
        }
    }
}

/// A posted receive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Receive {
    pub(crate) memory: Span,
    pub(crate) id: WorkId,
}

/// Work that could not be done at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) id: WorkId,
    pub(crate) work: Work,
}

/// What it is. By default a message that nobody judges: what stands in a place not in use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// A message, copied to the parking memory; attempts that found no receive.
    Send {
        parked: Span,
        invalidate: Option<Handle>,
        attempts: u32,
    },
    /// A message that went, longer than a receive that was posted: the peer will say whether
    /// the receive it met was long enough. Its number among all messages.
    Judging(u32),
    Read {
        into: Span,
        from: Segment,
    },
    Write {
        from: Span,
        to: Segment,
    },
}

impl Default for Work {
    fn default() -> Work {
        Work::Judging(0)
    }
}

/// From `Adopted` on in this order, some steps left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// No queue pair.
    Free,
    /// Receives may be posted; messages of a peer that is quicker are taken.
    Adopted,
    /// Everything works.
    Established,
    /// The peer has ended the connection; what it sent before is still delivered.
    Draining,
    /// Outstanding work is being reported as flushed.
    Flushing,
    /// `Disconnected` has been reported: waits to be destroyed.
    Over,
}

/// What an attempt to send came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    Done,
    /// Sent; done when the peer says so. The message's number.
    Judging(u32),
    /// The peer has posted no receive.
    NotReady,
    /// No room in the ring.
    NoRoom,
    Failed(WorkError),
}

/// Laid out by hand: a message that comes, and the receive posted after it, need the first of its
/// cache lines, and a message that is sent needs the second and the phase. Of a thousand queue
/// pairs none is in the processor's nearest cache when its turn comes.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct QueuePair {
    pub(crate) link: Option<Arc<Link>>,
    receives: Fifo<Receive>,
    /// Receives posted, wrapping.
    posted: u32,
    /// The shortest of the posted receives, and how many are that short.
    least: (u32, u32),
    /// Never zero; changes with each use of this number.
    pub(crate) generation: u32,
    pub(crate) token: Token,
    pub(crate) phase: Phase,
    /// Our side of the link, 0 or 1.
    side: u8,
    /// In the port's lists: these survive `Free`, because list entries do.
    pub(crate) in_waiting: bool,

    pub(crate) waiting: Fifo<Waiting>,
    /// The peer's queue pair and its generation, as records have them.
    address: Address,
    /// Messages that may be sent before the peer's credit has to be read again.
    credit: u32,
    /// The shortest receive those messages can meet, or the longest message of this fabric.
    most: u32,
    /// Messages sent, wrapping.
    sent: u32,
    /// Which of the port's lanes leads to the peer; once established.
    lane: u32,

    /// The same address, in numbers; once established.
    peer: (u32, u32),
    /// The longest message of this fabric; once established.
    longest: u32,
    /// Octets of parking memory in use.
    pub(crate) parked_bytes: u32,
    /// Work whose failure ended the connection.
    pub(crate) failed: Option<(WorkId, WorkError)>,
    /// Windows opened and not closed.
    pub(crate) exposures: u32,
    pub(crate) in_draining: bool,
    pub(crate) in_flushing: bool,
}

impl QueuePair {
    pub(crate) fn free() -> QueuePair {
        QueuePair {
            phase: Phase::Free,
            generation: 1,
            token: Token(0),
            link: None,
            side: 0,
            lane: u32::MAX,
            peer: (0, 0),
            address: Address::new(0, 0),
            credit: 0,
            most: 0,
            longest: 0,
            sent: 0,
            waiting: Fifo::new(0),
            parked_bytes: 0,
            receives: Fifo::new(0),
            posted: 0,
            least: (u32::MAX, 0),
            failed: None,
            exposures: 0,
            in_waiting: false,
            in_draining: false,
            in_flushing: false,
        }
    }

    /// Begins a new use of this number.
    pub(crate) fn adopt(&mut self, parts: Parts, token: Token) {
        let Parts {
            port: _,
            link,
            side,
            receives,
            waiting,
        } = parts;
        *self = QueuePair {
            phase: Phase::Adopted,
            generation: self.generation,
            in_waiting: self.in_waiting,
            in_draining: self.in_draining,
            in_flushing: self.in_flushing,
            token,
            link: Some(link),
            side: u8::from(side != 0),
            receives,
            waiting,
            ..QueuePair::free()
        };
    }

    /// Ends this use: nothing addressed to it will be taken for the next one's.
    pub(crate) fn release(&mut self) {
        *self = QueuePair {
            generation: self.generation.wrapping_add(1).max(1),
            in_waiting: self.in_waiting,
            in_draining: self.in_draining,
            in_flushing: self.in_flushing,
            ..QueuePair::free()
        };
    }

    /// Our side of the link, 0 or 1.
    #[inline]
    pub(crate) fn side(&self) -> usize {
        usize::from(self.side & 1)
    }

    /// Which of the port's lanes leads to the peer, if one does.
    #[inline]
    pub(crate) fn lane(&self) -> usize {
        self.lane as usize
    }

    /// The connection stands, and its messages go by `lane`.
    pub(crate) fn establish(&mut self, lane: u32, peer: (u32, u32), longest: u32) {
        self.phase = Phase::Established;
        self.longest = longest;
        self.lane = lane;
        self.peer = peer;
        self.address = Address::new(peer.0, peer.1);
    }

    /// Sends a message that nothing waits before and that will meet a receive long enough, by room
    /// that is there: false, and nothing done, where that is not so or not known. [`QueuePair::attempt`]
    /// then finds out.
    #[inline(always)]
    pub(crate) fn send_at_once(
        &mut self,
        lane: &mut Lane,
        message: &[Octets<'_>],
        arena: &Arena,
    ) -> bool {
        let ready = self.phase == Phase::Established && self.waiting.is_empty();
        if !ready || self.is_severed() || !self.has_credit() {
            return false;
        }
        if !lane.to.push_plain(self.address, message, self.most, arena) {
            return false;
        }
        self.credit -= 1;
        self.sent = self.sent.wrapping_add(1);
        lane.written = true;
        true
    }

    /// Somebody has ended the connection, or there is none.
    #[inline]
    pub(crate) fn is_severed(&self) -> bool {
        self.link.as_ref().is_none_or(|link| link.is_severed())
    }

    /// Whom this side's own windows say they belong to.
    pub(crate) fn owner(&self) -> Option<Owner> {
        Some(Owner::new(self.link.as_ref()?.id, self.side()))
    }

    /// Whom the peer's windows say they belong to.
    #[inline]
    pub(crate) fn peer_owner(&self) -> Option<Owner> {
        Some(Owner::new(self.link.as_ref()?.id, 1 - self.side()))
    }

    /// Whether receives may be posted.
    #[inline]
    pub(crate) fn takes_receives(&self) -> bool {
        matches!(self.phase, Phase::Established | Phase::Adopted)
    }

    /// Whether a record with this generation is for this queue pair, now.
    #[inline]
    pub(crate) fn takes(&self, generation: u32) -> bool {
        self.generation == generation
            && matches!(
                self.phase,
                Phase::Established | Phase::Adopted | Phase::Draining
            )
    }

    /// Sends a message if the peer has a receive and the ring has room.
    #[inline(never)]
    pub(crate) fn attempt(
        &mut self,
        lane: &mut Lane,
        message: &[Octets<'_>],
        len: u32,
        invalidate: Option<Handle>,
        arena: &Arena,
    ) -> Attempt {
        if !self.has_credit() {
            return Attempt::NotReady;
        }
        let Some(room) = lane.to.room(len) else {
            return Attempt::NoRoom;
        };
        if let Some(handle) = invalidate
            && !self.invalidate(lane, handle)
        {
            return Attempt::Failed(WorkError::RemoteAccess);
        }
        // No message is longer than the fabric's longest.
        let judge = len > self.most;
        let (queue_pair, generation) = self.peer;
        let heading = Heading {
            queue_pair,
            generation,
            invalidated: invalidate,
            judge,
        };
        lane.to.push(room, heading, message, arena);
        lane.written = true;
        self.credit -= 1;
        self.sent = self.sent.wrapping_add(1);
        if judge {
            Attempt::Judging(self.sent)
        } else {
            Attempt::Done
        }
    }

    /// Closes a window of the peer's. False when it is not open to this side.
    #[inline(never)]
    fn invalidate(&self, lane: &Lane, handle: Handle) -> bool {
        let owner = self.peer_owner();
        owner.is_some_and(|owner| lane.peer.windows.invalidate(owner, handle).is_ok())
    }

    /// Reads what the peer has posted. False when there is still no credit.
    #[inline(always)]
    fn renew_credit(&mut self) -> bool {
        let Some(link) = &self.link else { return false };
        let (posted, shortest) = link.sides[1 - self.side()].posted();
        self.credit = posted.wrapping_sub(self.sent);
        self.most = shortest.min(self.longest);
        self.credit != 0
    }

    /// Whether the peer has a receive, as far as can be known now.
    #[inline]
    pub(crate) fn has_credit(&mut self) -> bool {
        self.credit > 0 || self.renew_credit()
    }

    /// Whether the peer has said that message number `sent` fitted.
    pub(crate) fn was_judged(&self, sent: u32) -> bool {
        let judged = self
            .link
            .as_ref()
            .map(|link| link.sides[1 - self.side()].judged());
        judged.is_some_and(|judged| judged.wrapping_sub(sent) < 1 << 31)
    }

    /// Posts a receive. `None` when there is no room; true when the sender should be woken.
    #[inline]
    pub(crate) fn post_receive(&mut self, receive: Receive) -> Option<bool> {
        if !self.receives.push(receive) {
            return None;
        }
        self.posted = self.posted.wrapping_add(1);
        let (len, count) = self.least;
        if receive.memory.len < len {
            self.least = (receive.memory.len, 1);
        } else if receive.memory.len == len {
            self.least.1 = count + 1;
        }
        // A store to a line that is ours, until the sender's credit is spent and it reads again.
        let link = self.link.as_ref()?;
        Some(link.sides[self.side()].publish(self.posted, self.least.0))
    }

    /// Asks for what a message to it, and its answer, need beside the queue pair itself.
    #[inline(always)]
    pub(crate) fn fetch(&self) {
        self.receives.fetch();
        if let Some(link) = &self.link {
            link.fetch();
        }
    }

    /// Takes the oldest receive for a message that has come.
    #[inline]
    pub(crate) fn take_receive(&mut self) -> Option<Receive> {
        let receive = self.receives.pop()?;
        if receive.memory.len == self.least.0 {
            self.least.1 -= 1;
            if self.least.1 == 0 {
                self.find_least();
            }
        }
        Some(receive)
    }

    /// Looks through all receives: only when the last of the shortest is gone.
    #[cold]
    fn find_least(&mut self) {
        self.least = (u32::MAX, 0);
        for receive in self.receives.iter() {
            let len = receive.memory.len;
            if len < self.least.0 {
                self.least = (len, 1);
            } else if len == self.least.0 {
                self.least.1 += 1;
            }
        }
    }

    /// Says that the message just received was long enough for its receive. True when the
    /// sender should be woken.
    pub(crate) fn judge(&self) -> bool {
        let received = self.posted.wrapping_sub(self.receives.len());
        self.link
            .as_ref()
            .is_some_and(|link| link.sides[self.side()].judge(received))
    }

    /// Takes the oldest receive to be flushed.
    pub(crate) fn flush_receive(&mut self) -> Option<Receive> {
        self.receives.pop()
    }
}
