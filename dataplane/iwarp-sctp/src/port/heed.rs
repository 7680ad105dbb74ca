//! What comes from below: associations that come and go, and their chunks.

use super::carrier::{At, Carrier, Carriers, Ending};
use super::desk::{Desk, Source};
use super::pair::Pair;
use super::places::Places;
use super::{Limits, local};
use rpcrdma_fabric::connect::ListenerId;
use rpcrdma_iwarp::session::WINDOW;
use rpcrdma_iwarp::{Association, Indication, Phase, Refusal, Settings, StagTable, StreamId};
use rpcrdma_sctp::{AssociationId, Event, Reason};
use std::net::SocketAddr;

/// Everything that an event of a site may touch.
pub(super) struct Hands<'a> {
    pub(super) site: u32,
    pub(super) listener: Option<ListenerId>,
    pub(super) carriers: &'a mut Carriers,
    pub(super) desk: &'a mut Desk,
    pub(super) places: &'a mut Places,
    pub(super) stags: &'a mut StagTable,
    pub(super) limits: &'a Limits,
}

/// An association that is up.
struct Rise {
    peer: SocketAddr,
    inbound: u16,
    outbound: u16,
    indication: Option<u32>,
}

impl Hands<'_> {
    /// One event.
    #[inline]
    pub(super) fn heed(&mut self, event: Event<'_>) {
        match event {
            Event::Message {
                association,
                stream,
                ppid,
                octets,
                ..
            } => self.chunk(association, StreamId(stream), ppid, octets),
            Event::Dry { association } => self.dry(association),
            Event::Writable { association } => self.writable(association),
            Event::Up {
                association,
                peer,
                inbound,
                outbound,
                indication,
                ..
            } => self.up(
                association,
                Rise {
                    peer,
                    inbound,
                    outbound,
                    indication,
                },
            ),
            Event::Down {
                association,
                reason,
            } => self.down(association, reason),
        }
    }

    fn source(&self, carrier: &Carrier) -> impl Fn(StreamId) -> Source + use<> {
        let (site, listener) = (self.site, self.listener);
        let (association, peer) = (carrier.id, carrier.peer);
        move |stream| Source {
            at: At {
                site,
                association,
                stream,
            },
            peer,
            listener,
        }
    }

    #[inline]
    fn chunk(&mut self, id: AssociationId, stream: StreamId, ppid: u32, octets: &[u8]) {
        let Some(carrier) = self.carriers.get(id) else {
            return;
        };
        let source = Source {
            at: At {
                site: self.site,
                association: id,
                stream,
            },
            peer: carrier.peer,
            listener: self.listener,
        };
        let (Some(association), Some(track)) = (
            &mut carrier.association,
            carrier.tracks.get_mut(usize::from(stream.0)),
        ) else {
            return;
        };
        let desk = &mut *self.desk;
        let mut local = local(self.places, self.stags);
        // What comes of a stream's chunk is of that stream.
        association.receive(stream, ppid, octets, &mut local, &mut |_, event| {
            desk.hear(source, track, event);
        });
        desk.queue(track, source.at);
    }

    /// All has arrived: what waited for that can be sent.
    fn dry(&mut self, id: AssociationId) {
        let Some(carrier) = self.carriers.get(id) else {
            return;
        };
        let Some(association) = &mut carrier.association else {
            return;
        };
        for (stream, track) in (0_u16..).map(StreamId).zip(&mut carrier.tracks) {
            let sent = std::mem::take(&mut track.sent);
            let waited = match association.phase(stream) {
                Some(Phase::Open) => sent >= WINDOW,
                Some(Phase::Idle) | None => false,
                Some(_) => true,
            };
            if waited {
                let at = At {
                    site: self.site,
                    association: id,
                    stream,
                };
                self.desk.queue(track, at);
            }
        }
        association.dry();
    }

    fn writable(&mut self, id: AssociationId) {
        let Some(carrier) = self.carriers.get(id) else {
            return;
        };
        // In the order in which they found none, so that each gets its turn.
        for stream in carrier.blocked.drain(..) {
            if let Some(track) = carrier.tracks.get_mut(usize::from(stream.0)) {
                let at = At {
                    site: self.site,
                    association: id,
                    stream,
                };
                self.desk.queue(track, at);
            }
        }
    }

    #[cold]
    fn up(&mut self, id: AssociationId, rise: Rise) {
        if self.carriers.get(id).is_none() {
            self.carriers.put(Carrier::new(id, rise.peer));
        }
        let settings = Settings {
            pending: self.limits.pending,
            ..Settings::default()
        };
        let Some(carrier) = self.carriers.get(id) else {
            return;
        };
        self.desk.tally.counts.associations += 1;
        let mut association = match Association::new(settings, rise.inbound, rise.outbound) {
            Ok(association) => association,
            Err(refusal) => return self.refuse(id, &refusal),
        };
        // Nothing has come yet, so nobody is told of anything.
        let known = association.indication(Indication::of(rise.indication), &mut |_, _| {});
        if let Err(refusal) = known {
            return self.refuse(id, &refusal);
        }
        carrier.rise(association);
    }

    /// An association that is of no use.
    #[cold]
    fn refuse(&mut self, id: AssociationId, refusal: &Refusal) {
        self.desk.tally.refuse(refusal);
        if let Some(carrier) = self.carriers.get(id) {
            carrier.doomed = true;
            forsake(self.desk, carrier, &refusal.to_string());
            self.desk.doomed.push((self.site, id, Ending::Abort));
        }
    }

    /// All its sessions are over.
    #[cold]
    fn down(&mut self, id: AssociationId, reason: Reason) {
        let Some(mut carrier) = self.carriers.remove(id) else {
            return;
        };
        let source = self.source(&carrier);
        let word = if carrier.association.is_none() {
            "rejected"
        } else {
            "lost"
        };
        let why = format!("{word}: {}: {reason}", carrier.peer);
        forsake(self.desk, &mut carrier, &why);
        let Some(association) = &mut carrier.association else {
            return;
        };
        for index in carrier.tracks.iter().filter_map(|track| track.pair) {
            if let Some(pair) = self.desk.pair(index) {
                pair.why = Some(why.clone());
            }
        }
        let (desk, tracks) = (&mut *self.desk, &mut carrier.tracks);
        association.lost(&mut |stream, event| {
            if let Some(track) = tracks.get_mut(usize::from(stream.0)) {
                desk.hear(source(stream), track, event);
            }
        });
        self.desk.tally.absorb(association.counts());
        for index in carrier.tracks.iter().filter_map(|track| track.pair) {
            if let Some(pair) = self.desk.pair(index) {
                unbind(pair, id);
            }
        }
    }
}

/// The stream is gone, with RDMAP's end of it.
fn unbind(pair: &mut Pair, association: AssociationId) {
    if pair.at.is_some_and(|at| at.association == association) {
        pair.at = None;
    }
}

/// Whoever waits for a session on it gets none.
fn forsake(desk: &mut Desk, carrier: &mut Carrier, why: &str) {
    for waiting in std::mem::take(&mut carrier.waiting) {
        desk.wanting -= 1;
        let pair = desk.pair(waiting.pair);
        if pair.is_some_and(|pair| pair.owner == waiting.owner && !pair.is_over()) {
            desk.give_up(waiting.pair, why.to_owned());
        }
    }
}
