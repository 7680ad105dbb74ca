//! A connection as both of its sides see it.

use crate::desk::Hatch;
use crate::padded::Padded;
use crate::shared::Shared;
use rpcrdma_fabric::fetch;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The connection is being made.
const CONNECTING: u32 = 0;
/// Both sides may send.
const ESTABLISHED: u32 = 1;
/// It is over.
const SEVERED: u32 = 2;
/// It is over because a message was too long for the receive of side 0 (4: of side 1).
const TOO_LONG: u32 = 3;

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Somebody ended it, or work failed.
    Ended,
    /// A message was too long for a receive of this side.
    TooLongFor(usize),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    /// Never used twice in a fabric.
    pub(crate) id: u64,
    state: Padded<AtomicU32>,
    pub(crate) sides: [Side; 2],
}

/// One side of a connection.
#[derive(Debug, Default)]
pub(crate) struct Side {
    /// Its port and who is told of losses, once known.
    pub(crate) port: OnceLock<Arc<Shared>>,
    pub(crate) hatch: OnceLock<Arc<Hatch>>,
    /// Queue pair (low half) and its generation, never zero (high half), once adopted.
    address: AtomicU64,
    /// Where this side's incoming ring ended when its peer severed the connection.
    pub(crate) last: AtomicU64,
    credit: Padded<Credit>,
}

/// What the receiving side tells the sending side: on lines of their own.
#[derive(Debug, Default)]
struct Credit {
    /// Receives posted so far (low half), shortest of those not consumed (high half).
    posted: AtomicU64,
    /// Messages judged so far, see [`Side::judge`].
    judged: AtomicU32,
    /// The sender waits for one of the two, and sleeps.
    starved: AtomicBool,
}

impl Link {
    pub(crate) fn new(id: u64) -> Link {
        Link {
            id,
            state: Padded::default(),
            sides: Default::default(),
        }
    }

    /// Asks for what is looked at to send, and for what is written when a receive is posted.
    #[inline(always)]
    pub(crate) fn fetch(&self) {
        fetch::lines(&self.state, 1);
        for side in &self.sides {
            fetch::lines(&side.credit, 1);
        }
    }

    #[inline]
    pub(crate) fn is_established(&self) -> bool {
        self.state.load(Ordering::Acquire) == ESTABLISHED
    }

    #[inline]
    pub(crate) fn is_severed(&self) -> bool {
        self.state.load(Ordering::Acquire) >= SEVERED
    }

    /// Whether it ended because a message was too long for a receive of `side`.
    pub(crate) fn was_too_long_for(&self, side: usize) -> bool {
        self.state.load(Ordering::Acquire) == TOO_LONG + u32::from(side == 1)
    }

    /// Both sides may send from now on. False when it has ended already.
    pub(crate) fn establish(&self) -> bool {
        self.state
            .compare_exchange(CONNECTING, ESTABLISHED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Ends the connection. True for the one call that did.
    ///
    /// The caller has set `last` of the other side, where messages may be under way to it. It
    /// tells the sides afterwards, see [`Link::tell`].
    pub(crate) fn sever(&self, cause: Cause) -> bool {
        let severed = match cause {
            Cause::Ended => SEVERED,
            Cause::TooLongFor(side) => TOO_LONG + u32::from(side == 1),
        };
        let ended = self
            .state
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
                (state < SEVERED).then_some(severed)
            });
        if ended.is_err() {
            return false;
        }
        for side in &self.sides {
            if let Some(hatch) = side.hatch.get() {
                hatch.tell_loss();
            }
        }
        true
    }

    /// Tells the lcore of `side` that the connection has ended.
    pub(crate) fn tell(&self, side: usize) {
        let side = &self.sides[side & 1];
        if let (Some(port), Some((queue_pair, _))) = (side.port.get(), side.address()) {
            port.tell_severed(queue_pair);
        }
    }
}

impl Side {
    /// Queue pair and generation, once adopted.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    pub(crate) fn address(&self) -> Option<(u32, u32)> {
        let word = self.address.load(Ordering::SeqCst);
        (word != 0).then_some((word as u32, (word >> 32) as u32))
    }

    /// Says which queue pair has adopted this side. Look at the state afterwards: whoever ended
    /// the connection before may not have seen it.
    pub(crate) fn set_address(&self, queue_pair: u32, generation: u32) {
        let word = u64::from(generation) << 32 | u64::from(queue_pair);
        self.address.store(word, Ordering::SeqCst);
    }

    /// The receiver has posted this many receives, the shortest of them not consumed being
    /// `shortest`. True when the sender waits and should be woken.
    #[inline]
    pub(crate) fn publish(&self, posted: u32, shortest: u32) -> bool {
        let word = u64::from(shortest) << 32 | u64::from(posted);
        self.credit.posted.store(word, Ordering::Release);
        self.starves()
    }

    /// Receives posted so far, and the shortest not consumed.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    pub(crate) fn posted(&self) -> (u32, u32) {
        let word = self.credit.posted.load(Ordering::Acquire);
        (word as u32, (word >> 32) as u32)
    }

    /// The receiver has placed its message number `received`, which was sent to be judged. True
    /// when the sender should be woken.
    pub(crate) fn judge(&self, received: u32) -> bool {
        self.credit.judged.store(received, Ordering::Release);
        self.starves()
    }

    /// The last message that was judged and fitted.
    pub(crate) fn judged(&self) -> u32 {
        self.credit.judged.load(Ordering::Acquire)
    }

    #[inline]
    fn starves(&self) -> bool {
        crate::barrier::light();
        self.credit.starved.load(Ordering::Relaxed)
            && self.credit.starved.swap(false, Ordering::Relaxed)
    }

    /// The sender asks to be woken by the next receive or judgement; look once more afterwards.
    pub(crate) fn starve(&self) {
        self.credit.starved.store(true, Ordering::Relaxed);
    }
}
