//! Somebody else's connection: NULL, READ and WRITE in a loop, every answer looked at. What is
//! done to the appliance meanwhile must not show.

use super::PATIENCE;
use super::appliance::Appliance;
use super::octets::{
    Segment, Two, WRITE_DATA, head, payload, read, source, success, sum, words, write,
};
use super::peer::Peer;
use rpcrdma_fabric::Span;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Octets of each READ and each WRITE.
const BYTES: u32 = 64 << 10;

#[derive(Default)]
struct Progress {
    rounds: u64,
    /// Between two rounds, because it was asked to be.
    parked: bool,
    asked_to_park: bool,
    asked_to_stop: bool,
    /// It has ended, for whatever reason.
    ended: bool,
}

#[derive(Default)]
struct Shared {
    progress: Mutex<Progress>,
    changed: Condvar,
}

/// The bystander, on a thread of its own.
pub(crate) struct Bystander {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn until(&self, what: &str, ready: impl Fn(&Progress) -> bool) {
        let waits = |progress: &mut Progress| !ready(progress) && !progress.ended;
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), PATIENCE, waits);
        let (progress, late) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!late.timed_out(), "the bystander stalls: {what}");
        assert!(!progress.ended, "the bystander's calls went wrong: {what}");
    }
}

impl Bystander {
    /// Connects to a service that grants `credits`, and begins.
    pub(crate) fn start(appliance: &Appliance, address: &str, credits: u32) -> Self {
        let shared = Arc::new(Shared::default());
        let mut peer = Peer::new(appliance);
        let (address, own) = (address.to_owned(), Arc::clone(&shared));
        let thread = std::thread::spawn(move || {
            let _end = End(&own);
            peer.connect(&address);
            call_for_ever(&mut peer, credits, &own);
        });
        let bystander = Self {
            shared,
            thread: Some(thread),
        };
        bystander.goes_on();
        bystander
    }

    /// Waits for some more rounds without an error.
    pub(crate) fn goes_on(&self) {
        let now = self.shared.lock().rounds;
        self.shared.until("a round", |it| it.rounds >= now + 2);
    }

    /// Looks at something while nothing of the bystander is in flight.
    pub(crate) fn parked<T>(&self, look: impl FnOnce() -> T) -> T {
        self.shared.change(|it| it.asked_to_park = true);
        self.shared.until("parking", |it| it.parked);
        let seen = look();
        self.shared.change(|it| it.asked_to_park = false);
        seen
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.shared.change(|it| it.asked_to_stop = true);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("the bystander saw nothing wrong");
            }
        }
    }
}

struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.change(|it| it.ended = true);
    }
}

fn call_for_ever(peer: &mut Peer, credits: u32, shared: &Shared) {
    let mut xid = 0xB000_0000;
    let (span, chunk) = peer.writable(BYTES);
    let data = payload(BYTES, 7);
    let readable = peer.readable(&data);
    loop {
        let mut progress = shared.lock();
        progress.rounds += 1;
        if progress.asked_to_park {
            progress.parked = true;
            shared.changed.notify_all();
            let parked = |it: &mut Progress| it.asked_to_park && !it.asked_to_stop;
            let waited = shared.changed.wait_while(progress, parked);
            progress = waited.unwrap_or_else(PoisonError::into_inner);
            progress.parked = false;
        }
        if progress.asked_to_stop {
            break;
        }
        drop(progress);
        shared.changed.notify_all();
        peer.greet(Two, xid, credits);
        read_once(peer, xid + 1, credits, (span, chunk));
        write_once(peer, xid + 2, credits, readable, &data);
        xid += 3;
    }
    peer.leave();
}

/// READ by Write chunk.
fn read_once(peer: &mut Peer, xid: u32, credits: u32, (span, chunk): (Span, Segment)) {
    let offset = xid % 1000;
    let call = head(Two, xid).write(&[chunk]);
    peer.send(&call.with(&read(xid, offset, BYTES)));
    let reply = head(Two, xid).credits(credits).direction(1).write(&[chunk]);
    let body = [success(xid), words(&[BYTES])].concat();
    assert_eq!(peer.answer(), reply.with(&body));
    let came = peer.memory.see(span);
    assert!(came == source(offset, BYTES), "READ gives the source");
}

/// WRITE by Read chunk.
fn write_once(peer: &mut Peer, xid: u32, credits: u32, readable: Segment, data: &[u8]) {
    let call = head(Two, xid).read(WRITE_DATA, readable);
    peer.send(&call.with(&write(xid, BYTES)));
    let reply = head(Two, xid).credits(credits).direction(1);
    let body = [success(xid), words(&[BYTES, sum(data)])].concat();
    assert_eq!(peer.answer(), reply.with(&body));
}
