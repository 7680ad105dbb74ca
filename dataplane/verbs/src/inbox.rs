//! What control tells a port, and a port tells control: one bounded ring each way, and a bell.
//!
//! None of it is about messages. A port looks at its inbox when the bell's descriptor is
//! readable or once in a while; a word to control rings control's bell.
//!
//! # Neither ring is ever full
//!
//! Each queue pair says [`Word::Broken`] and [`Word::Over`] once, and is counted by control
//! until it has read the latter; a window goes away once and is counted until another is there.
//! So words need no more room than two for each queue pair and one for each window. Notices are
//! as many, and two for the end, but it is up to the port when it reads them: what does not fit waits at control's
//! side, which has no bound to keep.

use crate::endpoint::Endpoint;
use crate::expose::Window;
use crate::object::Objects;
use rpcrdma_fabric::bell::Bell;
use rpcrdma_fabric::connect::ConnectionId;
use rpcrdma_fabric::outlet;
use rtrb::{Consumer, Producer, RingBuffer};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// What control tells a port.
#[derive(Debug)]
pub(crate) enum Notice {
    /// The connection is lost: the peer has left, or the connection was never made. Its queue
    /// pair is in error, if it ever was in use.
    Lost(ConnectionId),
    /// A new window, in the place of one that went away.
    Window(Window),
    /// The device, or the port's completion queue, is gone, and so is every connection. Neither
    /// says any more what has become of work, and neither is asked: the port gives back windows
    /// and endpoints here and now, but not yet what was outstanding. A device of which only the
    /// queue is broken goes on carrying out what peers ask of it.
    Gone,
    /// All that was given back is destroyed: no peer and no work reaches memory of the port any
    /// more. Follows [`Notice::Gone`]. When the last queue pair is forgotten the port calls
    /// [`Inbox::let_go`]: some kernels do not let go of a device until everything of it is
    /// destroyed.
    Ended,
}

/// What a port tells control.
#[derive(Debug)]
pub(crate) enum Word {
    /// The queue pair is in error: say goodbye to the peer.
    Broken(ConnectionId),
    /// A window that is still bound to a queue pair that is over: destroy it, before that.
    Window(Window),
    /// Nobody posts to this queue pair any more.
    Over(Endpoint),
}

/// The port's side.
#[derive(Debug)]
pub(crate) struct Inbox {
    notices: Consumer<Notice>,
    words: Producer<Word>,
    /// Of the port, and of control.
    bell: Arc<Bell>,
    control: Arc<Bell>,
    /// Everything of the device that the port uses, kept for as long.
    objects: Option<Arc<Objects>>,
}

/// Control's side.
pub(crate) type Outlet = outlet::Outlet<Notice, Word>;

/// Both sides, for a port of so many queue pairs and windows. `control` is control's bell.
pub(crate) fn pair(
    queue_pairs: u32,
    windows: u32,
    control: Arc<Bell>,
    objects: Option<Arc<Objects>>,
) -> io::Result<(Inbox, Outlet)> {
    let room = 2 * queue_pairs as usize + windows as usize;
    let bell = Arc::new(Bell::new()?);
    let (to_port, notices) = RingBuffer::new(room + 1);
    let (words, from_port) = RingBuffer::new(room + 1);
    let inbox = Inbox {
        notices,
        words,
        bell: Arc::clone(&bell),
        control,
        objects,
    };
    let outlet = Outlet::new(to_port, from_port, bell);
    Ok((inbox, outlet))
}

impl Inbox {
    /// Whether there is something to read.
    #[inline]
    pub(crate) fn has_notice(&self) -> bool {
        !self.notices.is_empty()
    }

    /// The next notice.
    #[cold]
    pub(crate) fn next(&mut self) -> Option<Notice> {
        if self.notices.is_empty() {
            // Another may come in between, and ring again; so it is looked for once more.
            self.bell.hush();
        }
        self.notices.pop().ok()
    }

    /// Tells control.
    #[cold]
    pub(crate) fn tell(&mut self, word: Word) {
        if let Word::Window(window) = &word
            && let Some(objects) = &self.objects
            && self.words.is_abandoned()
        {
            // Control is gone, and who drops the endpoint next destroys the queue pair: some
            // kernels wait in vain for a window that is still bound to it.
            objects.remove_window(*window);
            return;
        }
        let told = self.words.push(word);
        debug_assert!(told.is_ok(), "there is room for every word");
        self.control.ring();
    }

    /// The port is done with its device, which is gone: nothing of it will be called again, the
    /// completion queue included.
    #[cold]
    pub(crate) fn let_go(&mut self) {
        self.objects = None;
        self.control.ring();
    }

    /// The port's bell, for others that put something down for it.
    pub(crate) fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    /// Readable when there is a notice.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.let_go();
    }
}
