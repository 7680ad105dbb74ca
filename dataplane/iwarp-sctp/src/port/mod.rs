//! A port of this fabric: what one lcore polls.
//!
//! # The way of a message
//!
//! ```text
//!   send, read, write ──► endpoint of the stream ──► errands ──ring──► pump ──► SCTP ──turn──► datagrams
//!   reap ◄── completions ◄── desk ◄── session, DDP, RDMAP ◄── SCTP ◄──turn── datagrams
//! ```
//!
//! A *site* is one SCTP endpoint: a listener's, or one that this port associates from. It has
//! associations ([`Carrier`]), those have streams, and a stream has at most one queue pair. All of
//! it belongs to the lcore: no other thread touches an association.
//!
//! **Copies.** What comes is copied once, from the datagram to where it belongs. What goes is
//! copied once, from the arena into SCTP's memory. Octets that are not in the arena are copied
//! into the outbox first, because a Send may have to wait; such a Send is [`Posted::Done`] at once.
//!
//! **Several lcores.** Each port has a site of its own for each listener, all at one address
//! (`SO_REUSEPORT`): which one a peer meets is the kernel's choice, by both addresses, and all that
//! peer's sessions are on that port. So a request can be taken on one port alone. When a port
//! comes or goes, the kernel chooses anew: peers of other ports may be among those that meet
//! another one then, lose their association by it, and make a new one.
//!
//! # The end of a session
//!
//! One that this side ends first sends what was posted ([`LINGER`] at most), then the Terminate. Its
//! work is flushed at once, but its owner hears of the end only when the peer has answered, which
//! says that all before it has arrived; or after [`LINGER`].

mod carrier;
mod chores;
mod close;
mod desk;
mod heed;
mod obey;
mod pair;
#[expect(unsafe_code, reason = "raw memory is this module's job")]
mod places;
mod post;
mod pump;
mod site;
mod sleep;
mod tally;

pub(crate) use carrier::At;

use crate::endpoint::{Endpoint, Origin};
use crate::inbox::{Inbox, Words};
use crate::settings::Settings;
use desk::Desk;
use pair::{Pair, Phase};
use places::Places;
use rand::rngs::StdRng;
use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::connect::PortWanted;
use rpcrdma_fabric::pool::Pool;
use rpcrdma_fabric::{
    Access, Capabilities, Completion, Handle, Octets, Port, PortCounts, PortRejects, Posted,
    QueuePair, Refused, Segment, Span, Token, WorkId,
};
use rpcrdma_iwarp::rdmap::GATHER;
use rpcrdma_iwarp::{Depths, Domain, Local, Outfit, Owner, Party, Scope, StagTable};
use rpcrdma_sctp::Llp;
use site::{Reach, Sites};
use sleep::Bed;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally::Tally;

/// How long a connection goes on sending, and waits for its peer, after this side has ended it.
const LINGER: Duration = Duration::from_secs(2);
/// Octets of the outbox that all queue pairs share, at most.
const OUTBOX_BYTES: u64 = 64 << 20;
/// Longest Read or Write, octets.
const TRANSFER_BYTES: u32 = 1 << 30;
/// Deepest queue of a queue pair, and most queue pairs and windows of a port.
const DEPTH_MAX: u32 = 1 << 15;
const PAIRS_MAX: u32 = 1 << 16;
const WINDOWS_MAX: u32 = StagTable::MOST;
/// All of a port's memory is one protection domain; an exposure is one stream's, which is narrower.
const DOMAIN: Domain = Domain(1);

/// What a port can be opened with at most.
pub(crate) fn at_best() -> Capabilities {
    Capabilities {
        queue_pairs: PAIRS_MAX,
        gather: gather(),
        send_depth: DEPTH_MAX,
        receive_depth: DEPTH_MAX,
        transfer_bytes: TRANSFER_BYTES,
        windows: WINDOWS_MAX,
        send_invalidate: true,
        receive_invalidate: true,
    }
}

fn gather() -> u32 {
    u32::try_from(GATHER).unwrap_or(u32::MAX)
}

/// What is looked at while working.
#[derive(Clone, Copy, Debug)]
struct Limits {
    queue_pairs: u32,
    send_depth: u32,
    receive_depth: u32,
    windows: u32,
    /// Octets of the outbox that one queue pair may have in use.
    outbox_bytes: u32,
    depths: Depths,
    enhanced: bool,
    chunk_bytes: u32,
    pending: u16,
    idle: Duration,
}

impl Limits {
    /// How long a peer is waited for that owes a stream's last word.
    fn patience(&self) -> Duration {
        self.idle.min(LINGER)
    }
}

/// A port. Belongs to one lcore; dropping it ends all its connections.
#[derive(Debug)]
pub struct IwarpPort<L: Llp> {
    sites: Sites<L>,
    desk: Desk,
    places: Places,
    stags: StagTable,
    limits: Limits,
    inbox: Inbox<L>,
    bed: Bed,
    /// Numbers of owners, given once.
    owners: u64,
    /// When idle associations are looked for next.
    next_look: Instant,
}

impl<L: Llp> IwarpPort<L> {
    /// A port with everything it will ever need.
    ///
    /// # Errors
    ///
    /// No memory, or no descriptors.
    pub(crate) fn new(
        arena: Arc<Arena>,
        wanted: &PortWanted,
        settings: &Settings,
        inbox: Inbox<L>,
        words: Words,
    ) -> io::Result<IwarpPort<L>> {
        let limits = limits(wanted, settings);
        let outbox = outbox_bytes(&limits);
        let outbox = Arena::map(outbox, Hugepages::Off)?;
        let pool = Pool::new(0, outbox.len());
        let pairs = limits.queue_pairs;
        let random: StdRng = rand::make_rng();
        Ok(IwarpPort {
            sites: Sites::new(),
            desk: Desk {
                pairs: (0..pairs)
                    .map(|_| Pair::free(limits.send_depth, limits.receive_depth))
                    .collect(),
                free: (0..pairs).rev().collect(),
                completions: VecDeque::with_capacity(1024),
                errands: VecDeque::with_capacity(pairs as usize + 64),
                ending: Vec::new(),
                seekers: VecDeque::with_capacity(pairs as usize),
                outbox: pool,
                tally: Tally::new(),
                words,
                requests: 0,
                unheard: Vec::new(),
                doomed: Vec::new(),
                wanting: 0,
            },
            places: Places::new(arena, outbox),
            stags: StagTable::new(limits.windows, random),
            limits,
            bed: Bed::new(inbox.descriptor())?,
            inbox,
            owners: 0,
            next_look: Instant::now(),
        })
    }

    fn machine(&mut self, party: Party) -> Box<rpcrdma_iwarp::Endpoint> {
        let outfit = Outfit {
            party,
            receive_depth: self.limits.receive_depth,
            send_depth: self.limits.send_depth,
            depths: self.limits.depths,
        };
        Box::new(rpcrdma_iwarp::Endpoint::new(outfit, &mut self.stags))
    }

    fn adopt_endpoint(&mut self, endpoint: Endpoint, token: Token) -> Result<QueuePair, Refused> {
        let index = self.desk.free.pop().ok_or(Refused::Busy)?;
        self.owners += 1;
        let owner = Owner(self.owners);
        let machine = self.machine(Party {
            owner,
            domain: DOMAIN,
        });
        let origin = endpoint.origin;
        if let Some(pair) = self.desk.pair(index) {
            pair.adopt(endpoint, token, owner, machine);
        }
        if let Origin::Asked { request, at } = origin {
            self.seat(index, request, at);
        }
        Ok(QueuePair(index))
    }

    /// Binds a queue pair to the stream of the request that it was adopted for.
    fn seat(&mut self, index: u32, request: u64, at: At) {
        let bound = self.bind_to_request(index, request, at);
        if !bound {
            let why = "the peer has taken its request back".to_owned();
            self.desk.give_up(index, why);
        }
    }

    fn bind_to_request(&mut self, index: u32, request: u64, at: At) -> bool {
        let Some(Reach {
            association, track, ..
        }) = self.sites.reach(at)
        else {
            return false;
        };
        if track.request != Some(request) {
            return false;
        }
        let Some(pair) = self.desk.pair(index) else {
            return false;
        };
        let Some(machine) = pair.machine.take() else {
            return false;
        };
        // What is left of who was there before.
        drop(association.unbind(at.stream));
        if let Err(machine) = association.bind(at.stream, machine) {
            pair.machine = Some(machine);
            return false;
        }
        pair.at = Some(at);
        track.request = None;
        track.pair = Some(index);
        true
    }
}

fn limits(wanted: &PortWanted, settings: &Settings) -> Limits {
    let queue_pairs = wanted.queue_pairs.clamp(1, PAIRS_MAX);
    let two = wanted.message_bytes.max(1024).saturating_mul(2);
    Limits {
        queue_pairs,
        send_depth: wanted.send_depth.clamp(1, DEPTH_MAX),
        receive_depth: wanted.receive_depth.clamp(1, DEPTH_MAX),
        windows: wanted.windows.clamp(1, WINDOWS_MAX),
        outbox_bytes: two,
        depths: Depths {
            ird: settings.read_depth,
            ord: settings.read_depth,
        },
        enhanced: settings.enhanced,
        chunk_bytes: settings.chunk_bytes.into(),
        pending: settings.pending,
        idle: settings.idle,
    }
}

/// Enough for two long messages of each queue pair, or for four of them where that is too much.
fn outbox_bytes(limits: &Limits) -> u64 {
    let each = u64::from(limits.outbox_bytes);
    let all = each * u64::from(limits.queue_pairs);
    all.min(OUTBOX_BYTES).max(4 * each).next_multiple_of(4096)
}

/// RDMAP's end of a queue pair, wherever that is: its own before it is bound, then the stream's.
#[inline]
fn machine<'a, L>(
    sites: &'a mut Sites<L>,
    pair: &'a mut Pair,
) -> Option<&'a mut rpcrdma_iwarp::Endpoint> {
    let Some(at) = pair.at else {
        return pair.machine.as_deref_mut();
    };
    sites.reach(at)?.association.endpoint(at.stream)
}

impl<L: Llp> Port for IwarpPort<L> {
    type Endpoint = Endpoint;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            queue_pairs: self.limits.queue_pairs,
            send_depth: self.limits.send_depth,
            receive_depth: self.limits.receive_depth,
            windows: self.limits.windows,
            ..at_best()
        }
    }

    fn counts(&self) -> PortCounts {
        self.sum().counts
    }

    fn rejects(&self) -> PortRejects {
        self.sum().rejects
    }

    fn adopt(&mut self, endpoint: Endpoint, token: Token) -> Result<QueuePair, Refused> {
        self.adopt_endpoint(endpoint, token)
    }

    fn disconnect(&mut self, qp: QueuePair) {
        self.end(qp.0);
    }

    fn destroy(&mut self, qp: QueuePair) {
        self.forget(qp.0);
    }

    #[inline]
    fn post_receive(&mut self, qp: QueuePair, memory: Span, id: WorkId) -> Result<(), Refused> {
        self.put_receive(qp.0, memory, id)
    }

    #[inline]
    fn send(
        &mut self,
        qp: QueuePair,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.put_send(qp.0, message, invalidate, id)
    }

    #[inline]
    fn read(
        &mut self,
        qp: QueuePair,
        into: Span,
        from: Segment,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.put_read(qp.0, into, from, id)
    }

    #[inline]
    fn write(
        &mut self,
        qp: QueuePair,
        from: Span,
        to: Segment,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.put_write(qp.0, from, to, id)
    }

    fn expose(&mut self, qp: QueuePair, memory: Span, access: Access) -> Result<Segment, Refused> {
        let pair = self.desk.pairs.get_mut(qp.0 as usize);
        let pair = pair.filter(|pair| !pair.is_over()).ok_or(Refused::Broken)?;
        if !self.places.has(memory) {
            return Err(Refused::Unsupported);
        }
        let party = Party {
            owner: pair.owner,
            domain: DOMAIN,
        };
        let opened = self.stags.open(party, Scope::Stream, memory, access);
        let segment = opened.ok_or(Refused::Busy)?;
        pair.exposures += 1;
        Ok(segment)
    }

    fn retire(&mut self, qp: QueuePair, handle: Handle, id: WorkId) -> Result<Posted, Refused> {
        let pair = self.desk.pairs.get_mut(qp.0 as usize);
        let pair = pair.filter(|pair| pair.phase != Phase::Free);
        let pair = pair.ok_or(Refused::Broken)?;
        if self.stags.close(pair.owner, handle.into()).is_ok() {
            pair.exposures -= 1;
            return Ok(Posted::Done);
        }
        if !pair.is_over() {
            // Not open, and not of a connection that took all with it: a mistake of our own.
            self.desk.tally.counts.local_protection += 1;
            return Ok(self.fail(qp.0, id));
        }
        Ok(Posted::Done)
    }

    fn retired_by_peer(&mut self, qp: QueuePair, handle: Handle) {
        if let Some(pair) = self.desk.pairs.get_mut(qp.0 as usize)
            && self.stags.reclaim(pair.owner, handle.into()).is_ok()
        {
            pair.exposures -= 1;
        }
    }

    #[inline]
    fn reap(&mut self, completions: &mut [Completion]) -> usize {
        let mut count = 0;
        while let Some(place) = completions.get_mut(count)
            && let Some(completion) = self.reap_one()
        {
            *place = completion;
            count += 1;
        }
        count
    }

    #[inline]
    fn reap_one(&mut self) -> Option<Completion> {
        if self.desk.completions.is_empty() {
            self.look();
        }
        self.desk.completions.pop_front()
    }

    #[inline]
    fn ring(&mut self) {
        if !self.desk.errands.is_empty() {
            self.pump();
        }
    }

    fn arm(&mut self) -> bool {
        self.fall_asleep()
    }

    fn waker(&self) -> BorrowedFd<'_> {
        self.bed.descriptor()
    }
}

/// What a segment may be placed in or fetched from.
fn local<'a>(places: &'a mut Places, stags: &'a mut StagTable) -> Local<'a, Places> {
    Local {
        memory: places,
        stags,
    }
}
