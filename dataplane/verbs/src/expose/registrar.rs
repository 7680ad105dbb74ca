//! The thread that registers memory, and ends registrations, for lcores whose device has no
//! windows.
//!
//! One for each fabric. Ports reach it by bounded rings, a pair for each; it has every region of
//! theirs in a table, by the port's own slot numbers. A port that is dropped leaves its table
//! behind: the registrar ends all that is in it, then lets go of the device's objects.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use super::region::Regions;
use crate::port::{Raw, remote_access};
use rdma_core_sys as rdma;
use rpcrdma_fabric::bell::Bell;
use rpcrdma_fabric::{Access, Handle};
use std::any::Any;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// What a port asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Register so many octets from there in the arena.
    Register {
        slot: u32,
        offset: u64,
        len: u32,
        access: Access,
    },
    /// End the region in this slot.
    End { slot: u32 },
}

/// What it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Registered { slot: u32, handle: Handle },
    Failed { slot: u32, errno: i32 },
    Ended { slot: u32 },
}

impl Answer {
    /// Which slot it is about.
    pub(super) fn slot(self) -> u32 {
        match self {
            Answer::Registered { slot, .. }
            | Answer::Failed { slot, .. }
            | Answer::Ended { slot } => slot,
        }
    }
}

/// Where a port's regions are made.
pub(crate) struct Site {
    pub(crate) verbs: &'static rdma::Verbs,
    pub(crate) domain: Raw<rdma::ibv_pd>,
    /// Where the arena begins, and its octets.
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// Keeps the domain, its device and the arena alive; dropped last.
    #[expect(dead_code, reason = "kept, not looked at")]
    pub(crate) keeper: Arc<dyn Any + Send + Sync>,
    /// Wakes the port's lcore.
    pub(crate) bell: Arc<Bell>,
}

/// A port, as the registrar sees it.
struct Client {
    requests: rtrb::Consumer<Request>,
    answers: rtrb::Producer<Answer>,
    /// By slot.
    regions: Box<[Option<Raw<rdma::ibv_mr>>]>,
    site: Site,
}

/// What the fabric and the thread share.
#[derive(Default)]
struct Door {
    joining: Mutex<Vec<Client>>,
    closed: AtomicBool,
}

/// The fabric's handle on the thread. When it is dropped the thread goes on until the last of its
/// ports is gone.
pub(crate) struct Registrar {
    door: Arc<Door>,
    thread: Thread,
}

/// How long the thread sleeps at most: a port that goes is noticed by then.
const NAP: Duration = Duration::from_millis(100);

impl Registrar {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub(crate) fn start() -> io::Result<Registrar> {
        let door = Arc::new(Door::default());
        let its = Arc::clone(&door);
        let thread = thread::Builder::new()
            .name("registrar".to_owned())
            .spawn(move || serve(&its))?;
        Ok(Registrar {
            door,
            thread: thread.thread().clone(),
        })
    }

    /// The regions of a new port, `count` at once.
    ///
    /// # Safety
    ///
    /// The domain is alive for as long as the keeper of `site`, which also keeps the memory
    /// that its address and octets speak of.
    pub(crate) unsafe fn join(&self, site: Site, count: u32) -> Regions {
        let (ask, requests) = rtrb::RingBuffer::new(count as usize);
        let (answers, hear) = rtrb::RingBuffer::new(count as usize);
        let address = site.address;
        let client = Client {
            requests,
            answers,
            regions: vec![None; count as usize].into_boxed_slice(),
            site,
        };
        let mut joining = self
            .door
            .joining
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        joining.push(client);
        self.thread.unpark();
        Regions::new(count, address, ask, hear, self.thread.clone())
    }
}

impl Drop for Registrar {
    fn drop(&mut self) {
        self.door.closed.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// The thread.
fn serve(door: &Door) {
    let mut clients: Vec<Client> = Vec::new();
    loop {
        // Before the list is looked at: nobody joins after it was closed.
        let closed = door.closed.load(Ordering::Acquire);
        let mut joining = door.joining.lock().unwrap_or_else(PoisonError::into_inner);
        clients.append(&mut joining);
        drop(joining);
        let mut work = 0;
        for client in &mut clients {
            work += client.serve();
        }
        clients.retain(|client| !client.requests.is_abandoned());
        if closed && clients.is_empty() {
            return;
        }
        if work == 0 {
            thread::park_timeout(NAP);
        }
    }
}

impl Client {
    /// Does what is asked now. How much that was.
    fn serve(&mut self) -> usize {
        let mut served = 0;
        while let Ok(request) = self.requests.pop() {
            let answer = match request {
                Request::Register {
                    slot,
                    offset,
                    len,
                    access,
                } => self.register(slot, offset, len, access),
                Request::End { slot } => {
                    self.end(slot);
                    Answer::Ended { slot }
                }
            };
            // There is room: a slot has one request out at a time. Full only when the port is gone.
            let _ = self.answers.push(answer);
            self.site.bell.ring();
            served += 1;
        }
        served
    }

    fn register(&mut self, slot: u32, offset: u64, len: u32, access: Access) -> Answer {
        let failed = |errno| Answer::Failed { slot, errno };
        let end = offset.checked_add(len.into());
        let place = self.regions.get_mut(slot as usize);
        let (Some(_), Some(place)) = (end.filter(|&end| end <= self.site.bytes), place) else {
            return failed(libc::EINVAL);
        };
        // The device writes what the peer does, so a right to write is always the device's too.
        let local = match access {
            Access::Read => 0,
            Access::Write => rdma::IBV_ACCESS_LOCAL_WRITE,
        };
        let rights = i32::try_from(local | remote_access(access)).unwrap_or_default();
        let octets = usize::try_from(self.site.address.wrapping_add(offset)).unwrap_or_default();
        let octets = std::ptr::with_exposed_provenance_mut(octets);
        // SAFETY: the domain is alive, and the memory is the arena's: whoever made this site says so.
        let region = unsafe {
            self.site
                .verbs
                .ibv_reg_mr(self.site.domain.0, octets, len as usize, rights)
        };
        if region.is_null() {
            return failed(
                io::Error::last_os_error()
                    .raw_os_error()
                    .unwrap_or(libc::EIO),
            );
        }
        *place = Some(Raw(region));
        // SAFETY: made just now.
        let handle = Handle(unsafe { (*region).rkey });
        Answer::Registered { slot, handle }
    }

    fn end(&mut self, slot: u32) {
        let region = self.regions.get_mut(slot as usize).and_then(Option::take);
        if let Some(region) = region {
            // SAFETY: made here, and taken out of the table: it is ended once. That it fails means
            // that the device is gone, and the region with it.
            let _ = unsafe { self.site.verbs.ibv_dereg_mr(region.0) };
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let count = u32::try_from(self.regions.len()).unwrap_or(u32::MAX);
        for slot in 0..count {
            self.end(slot);
        }
    }
}
