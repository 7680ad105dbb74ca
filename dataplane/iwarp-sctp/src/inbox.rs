//! What control tells a port, and a port tells control: one bounded ring each way, and a bell.
//!
//! None of it is about messages.
//!
//! # Neither ring is ever full where it matters
//!
//! A queue pair says [`Word::Established`] and [`Word::Ended`] once each, and [`Word::Crowded`] once
//! for each [`Notice::Ask`], and is counted by control until its endpoint is gone and these have been
//! read. Those words always have room;
//! requests of peers take what is left of it, and one for which there is none is turned away.
//! Notices that find no room wait at control's side, which has no bound to keep.

use crate::port::At;
use rpcrdma_fabric::bell::Bell;
use rpcrdma_fabric::connect::{ConnectionId, ListenerId};
use rpcrdma_fabric::outlet;
use rtrb::{Consumer, Producer, RingBuffer};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// What control tells a port.
#[derive(Debug)]
pub(crate) enum Notice<L> {
    /// Another SCTP endpoint to drive: a listener's, or one to associate from, by its number.
    Site {
        number: u32,
        listener: Option<ListenerId>,
        llp: L,
    },
    /// Ask the peer for a session, from a site.
    Ask {
        connection: ConnectionId,
        site: u32,
        to: SocketAddr,
        private_data: Box<[u8]>,
    },
    /// Say yes to the request that the connection was adopted for.
    Accept {
        connection: ConnectionId,
        private_data: Box<[u8]>,
    },
    /// Say no to a request, with the upper layer's word.
    Refuse {
        request: u64,
        at: At,
        private_data: Box<[u8]>,
    },
}

/// What a port tells control.
#[derive(Debug)]
pub(crate) enum Word {
    /// A peer asks for a session.
    Requested {
        request: u64,
        at: At,
        listener: Option<ListenerId>,
        peer: SocketAddr,
        private_data: Box<[u8]>,
    },
    /// It does not any more, and was not adopted. Left out where there is no room.
    Withdrawn { request: u64 },
    /// No stream is left for it at that site, and none may ever come back.
    Crowded {
        connection: ConnectionId,
        private_data: Box<[u8]>,
    },
    /// Both sides may send.
    Established {
        connection: ConnectionId,
        private_data: Box<[u8]>,
    },
    /// The session is over, or there will be none.
    Ended {
        connection: ConnectionId,
        why: String,
    },
}

/// The port's side: what it hears.
#[derive(Debug)]
pub(crate) struct Inbox<L> {
    notices: Consumer<Notice<L>>,
    bell: Arc<Bell>,
}

/// The port's side: what it says.
#[derive(Debug)]
pub(crate) struct Words {
    words: Producer<Word>,
    /// Slots that queue pairs may need.
    kept: usize,
    control: Arc<Bell>,
}

/// Control's side.
pub(crate) type Outlet<L> = outlet::Outlet<Notice<L>, Word>;

/// Both sides, for a port of so many queue pairs and requests that wait. `control` is control's
/// bell.
pub(crate) fn pair<L>(
    queue_pairs: u32,
    requests: usize,
    control: Arc<Bell>,
) -> io::Result<(Inbox<L>, Words, Outlet<L>)> {
    let kept = 3 * queue_pairs as usize;
    let bell = Arc::new(Bell::new()?);
    let (to_port, notices) = RingBuffer::new(64);
    let (words, from_port) = RingBuffer::new(kept + 2 * requests);
    let inbox = Inbox {
        notices,
        bell: Arc::clone(&bell),
    };
    let words = Words {
        words,
        kept,
        control,
    };
    let outlet = Outlet::new(to_port, from_port, bell);
    Ok((inbox, words, outlet))
}

impl<L> Inbox<L> {
    /// Whether there is something to read.
    #[inline]
    pub(crate) fn has_notice(&self) -> bool {
        !self.notices.is_empty()
    }

    /// The next notice.
    #[cold]
    pub(crate) fn next(&mut self) -> Option<Notice<L>> {
        self.notices.pop().ok()
    }

    /// Awake: a bell that is rung from now on is heard in the next sleep.
    #[cold]
    pub(crate) fn hush(&self) {
        self.bell.hush();
    }

    /// Readable when there is a notice.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Words {
    /// Tells control what became of a queue pair.
    #[cold]
    pub(crate) fn tell(&mut self, word: Word) {
        let told = self.words.push(word);
        debug_assert!(told.is_ok(), "there is room for every queue pair's words");
        self.control.ring();
    }

    /// Tells control of a request; false when it cannot hear of another now, or is gone.
    #[cold]
    pub(crate) fn try_tell(&mut self, word: Word) -> bool {
        if self.words.is_abandoned() || self.words.slots() <= self.kept {
            return false;
        }
        self.tell(word);
        true
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        self.control.ring();
    }
}
