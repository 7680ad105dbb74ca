//! A device that is not there: what a provider does, done in this process, behind the same tables
//! of calls.
//!
//! It is for tests of a port's own logic, on machines without RDMA, and for counting the
//! instructions of our own code without those of a device. It carries out work when it is posted:
//! Sends meet receives in order, or wait for one; Reads and Writes are copies; windows are bound,
//! invalidated and checked. It fails as a device does, by completions, and what it flushes it
//! flushes at once. It can be told to refuse work.
//!
//! One thread uses all of it. Its objects are never freed, so that whoever still has the name of one
//! may use it.

mod carry;
mod fabric;
mod tables;

pub use fabric::{Refusal, StandInFabric};

pub(crate) use tables::calls;

use crate::port::{Queue, Rail, Raw};
use rdma_core_sys as rdma;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// How a peer may reach memory.
#[derive(Clone, Copy, Debug)]
struct Bound {
    /// The queue pair that may be used for it.
    pair: u32,
    address: u64,
    length: u64,
    access: u32,
}

/// A send request, taken from its list.
#[derive(Clone, Debug)]
struct Taken {
    request: Request,
    /// What it sends, of a Send.
    octets: Vec<u8>,
}

/// The numbers of a request that its carrying out needs.
#[derive(Clone, Copy, Debug)]
struct Request {
    ticket: u64,
    opcode: u32,
    signalled: bool,
    key: u32,
    remote: u64,
    /// Its first element.
    local: u64,
    length: u32,
    /// Of a binding.
    access: u32,
}

/// A posted receive.
#[derive(Clone, Copy, Debug)]
struct Receive {
    ticket: u64,
    address: u64,
    room: u32,
}

/// One queue pair.
#[derive(Debug, Default)]
struct Pair {
    queue: usize,
    peer: Option<u32>,
    failed: bool,
    receives: VecDeque<Receive>,
    /// Sends that met no receive, and what was posted behind them.
    waiting: VecDeque<Taken>,
    /// Requests posted, in this order: opcode and whether a completion was asked for.
    log: Vec<(u32, bool)>,
    /// Calls that post, as many as lists.
    lists: u32,
    /// Refuses all but so many of the next list, with this errno.
    refusal: Option<(usize, i32)>,
}

#[derive(Default)]
struct Books {
    queues: Vec<VecDeque<rdma::ibv_wc>>,
    pairs: Vec<Pair>,
    bound: HashMap<u32, Bound>,
    windows: u32,
    /// Send With Invalidate says so as software RDMA does: see [`crate::port`].
    quirk: bool,
}

/// The device.
pub(crate) struct StandIn {
    context: Raw<rdma::ibv_context>,
    books: Rc<RefCell<Books>>,
}

/// An object that is never freed.
fn keep<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

impl StandIn {
    pub(crate) fn new() -> StandIn {
        StandIn {
            context: Raw(keep(rdma::ibv_context {
                ops: tables::operations(),
                ..rdma::ibv_context::default()
            })),
            books: Rc::default(),
        }
    }

    /// A completion queue.
    pub(crate) fn queue(&mut self) -> Queue {
        let number = self.books.borrow().queues.len();
        self.books.borrow_mut().queues.push(VecDeque::new());
        let object = keep(tables::QueueObject {
            queue: rdma::ibv_cq {
                context: self.context.0,
                ..rdma::ibv_cq::default()
            },
            number,
            books: Rc::clone(&self.books),
        });
        Queue::Plain(object.cast())
    }

    /// A queue pair whose completions go to the queue of this number.
    pub(crate) fn pair(&mut self, queue: usize) -> (u32, Rail) {
        let number = u32::try_from(self.books.borrow().pairs.len()).unwrap_or(u32::MAX);
        self.books.borrow_mut().pairs.push(Pair {
            queue,
            ..Pair::default()
        });
        let object = keep(tables::PairObject {
            pair: rdma::ibv_qp {
                context: self.context.0,
                qp_num: number,
                ..rdma::ibv_qp::default()
            },
            books: Rc::clone(&self.books),
        });
        (number, Rail::Plain(object.cast()))
    }

    /// Joins two queue pairs.
    pub(crate) fn connect(&mut self, one: u32, other: u32) {
        let mut books = self.books.borrow_mut();
        for (pair, peer) in [(one, other), (other, one)] {
            if let Some(pair) = books.pairs.get_mut(pair as usize) {
                pair.peer = Some(peer);
            }
        }
    }

    /// A memory window, and its key.
    pub(crate) fn window(&mut self) -> crate::expose::Window {
        let mut books = self.books.borrow_mut();
        books.windows += 1;
        let rkey = books.windows << 8;
        let object = keep(rdma::ibv_mw {
            rkey,
            ..rdma::ibv_mw::default()
        });
        crate::expose::Window {
            object: Raw(object),
            rkey,
        }
    }

    /// From now on it says that a handle was invalidated as software RDMA does.
    pub(crate) fn speak_as_rxe(&self) {
        self.books.borrow_mut().quirk = true;
    }

    fn with<T>(&self, pair: u32, look: impl FnOnce(&mut Pair) -> T) -> T {
        let mut books = self.books.borrow_mut();
        look(&mut books.pairs[pair as usize])
    }

    /// What was posted to a queue pair since the last time: opcode, and whether signalled.
    pub(crate) fn posted(&self, pair: u32) -> Vec<(u32, bool)> {
        self.with(pair, |pair| std::mem::take(&mut pair.log))
    }

    /// Lists posted to a queue pair so far, those of receives too.
    pub(crate) fn lists(&self, pair: u32) -> u32 {
        self.with(pair, |pair| pair.lists)
    }

    /// Takes only `first` requests of the next list, then says `errno`.
    pub(crate) fn refuse(&self, pair: u32, first: usize, errno: i32) {
        self.with(pair, |pair| pair.refusal = Some((first, errno)));
    }

    /// Receives posted to a queue pair and not used.
    pub(crate) fn receives(&self, pair: u32) -> usize {
        self.with(pair, |pair| pair.receives.len())
    }

    /// Windows and regions that can be reached now.
    pub(crate) fn bound(&self) -> usize {
        self.books.borrow().bound.len()
    }

    /// The queue pair is in error.
    pub(crate) fn has_failed(&self, pair: u32) -> bool {
        self.with(pair, |pair| pair.failed)
    }

    /// The device is pulled: nothing comes of what was posted.
    pub(crate) fn pull(&self) {
        let mut books = self.books.borrow_mut();
        for queue in &mut books.queues {
            queue.clear();
        }
        for pair in &mut books.pairs {
            pair.receives.clear();
            pair.waiting.clear();
            pair.failed = true;
        }
    }
}
