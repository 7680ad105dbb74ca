//! An SCTP association with its streams, and who is on them.

use rpcrdma_iwarp::{Association, Owner, StreamId};
use rpcrdma_sctp::AssociationId;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

/// A stream of an association, anywhere on a port. An association's place is used again, its
/// generation is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    /// Which of the port's SCTP endpoints.
    pub(crate) site: u32,
    pub(crate) association: AssociationId,
    pub(crate) stream: StreamId,
}

/// What the port has to know of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Track {
    /// The queue pair that is bound to it.
    pub(super) pair: Option<u32>,
    /// The peer's request that waits for an answer.
    pub(super) request: Option<u64>,
    /// It is in the list of those that may have something to send.
    pub(super) queued: bool,
    /// Chunks sent since all was known to have arrived.
    pub(super) sent: u16,
}

/// One association.
#[derive(Debug)]
pub(super) struct Carrier {
    pub(super) id: AssociationId,
    pub(super) peer: SocketAddr,
    /// `None` until it is up.
    pub(super) association: Option<Association>,
    pub(super) tracks: Box<[Track]>,
    /// Queue pairs that want a session on it.
    pub(super) waiting: VecDeque<Waiting>,
    /// Streams that found no room below.
    pub(super) blocked: Vec<StreamId>,
    /// Since when there is no session.
    pub(super) idle_since: Option<Instant>,
    /// It is about to end, at this side's word.
    pub(super) doomed: bool,
}

/// A queue pair, as long as it is the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) pair: u32,
    pub(super) owner: Owner,
    pub(super) since: Instant,
}

/// How an association is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    ShutDown,
    Abort,
}

impl Carrier {
    /// One that is not up yet, or is about to be.
    pub(super) fn new(id: AssociationId, peer: SocketAddr) -> Carrier {
        Carrier {
            id,
            peer,
            association: None,
            tracks: Box::default(),
            waiting: VecDeque::new(),
            blocked: Vec::new(),
            idle_since: None,
            doomed: false,
        }
    }

    /// The association is up, with so many streams.
    pub(super) fn rise(&mut self, association: Association) {
        let streams = association.streams();
        self.association = Some(association);
        self.tracks = vec![Track::default(); streams].into_boxed_slice();
        self.blocked = Vec::with_capacity(streams);
    }

    /// This side can begin no session on it, and there are streams that the peer has not given back
    /// and never may ([`Association::unanswered`]).
    pub(super) fn is_spent(&self) -> bool {
        let association = self.association.as_ref();
        association.is_some_and(|it| it.idle_stream().is_none() && it.unanswered() > 0)
    }

    /// Whether any stream has a queue pair or a request, or is to have one.
    pub(super) fn is_used(&self) -> bool {
        let used = |track: &Track| track.pair.is_some() || track.request.is_some();
        !self.waiting.is_empty() || self.tracks.iter().any(used)
    }
}

/// The associations of one site, by their places.
#[derive(Debug, Default)]
pub(super) struct Carriers(Vec<Option<Box<Carrier>>>);

impl Carriers {
    #[inline]
    pub(super) fn get(&mut self, id: AssociationId) -> Option<&mut Carrier> {
        let carrier = self.0.get_mut(id.place as usize)?.as_deref_mut()?;
        (carrier.id == id).then_some(carrier)
    }

    pub(super) fn put(&mut self, carrier: Carrier) -> &mut Carrier {
        let place = carrier.id.place as usize;
        if self.0.len() <= place {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place].insert(Box::new(carrier))
    }

    pub(super) fn remove(&mut self, id: AssociationId) -> Option<Box<Carrier>> {
        self.get(id)?;
        self.0.get_mut(id.place as usize)?.take()
    }

    pub(super) fn iter(&mut self) -> impl Iterator<Item = &mut Carrier> {
        self.0.iter_mut().flatten().map(|carrier| &mut **carrier)
    }

    /// Those that are up.
    pub(super) fn associations(&self) -> impl Iterator<Item = &Association> {
        let carriers = self.0.iter().flatten();
        carriers.filter_map(|carrier| carrier.association.as_ref())
    }

    /// The one with a peer, if there is one.
    pub(super) fn to(&mut self, peer: SocketAddr) -> Option<&mut Carrier> {
        self.iter()
            .find(|carrier| carrier.peer == peer && !carrier.doomed)
    }
}
