//! Turning the sites, and sending what there is to be sent.

use super::carrier::{At, Carrier, Track};
use super::desk::Source;
use super::heed::Hands;
use super::site::Site;
use super::{IwarpPort, local};
use rpcrdma_iwarp::{Busy, Flow, Lower, Ppid, SegmentBytes, StreamId};
use rpcrdma_sctp::{AssociationId, Llp};
use std::time::Instant;

/// Chunks of one stream that are sent before the next stream's turn.
const BURST: u32 = 32;
/// Streams that get a turn in one go.
const ERRANDS: usize = 256;

/// One association, as RDMAP's adaptation sends on it.
struct Below<'a, L> {
    llp: &'a mut L,
    association: AssociationId,
    segment: SegmentBytes,
    sent: u32,
}

impl<L: Llp> Lower for Below<'_, L> {
    #[inline]
    fn segment_bytes(&self) -> SegmentBytes {
        self.segment
    }

    #[inline]
    fn send(
        &mut self,
        stream: StreamId,
        ppid: Ppid,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Busy> {
        // Whatever it is that cannot be had: it comes again, or the association goes down.
        self.llp
            .send(self.association, stream.0, ppid as u32, len, fill)
            .map_err(|_| Busy)?;
        self.sent += 1;
        Ok(())
    }
}

impl<L: Llp> IwarpPort<L> {
    /// There is nothing to tell: looks at everything, and answers at once what has to be answered.
    #[inline(never)]
    pub(super) fn look(&mut self) {
        self.turn();
        if !self.desk.errands.is_empty() {
            self.pump();
        }
    }

    /// Everything that comes: from control, in datagrams, with time.
    fn turn(&mut self) {
        if self.bed.is_armed() {
            self.rise();
        }
        if self.inbox.has_notice() {
            self.hear_control();
        }
        let now = Instant::now();
        self.turn_sites(now);
        if self.desk.has_chores() {
            self.do_chores(now);
        }
        if !self.desk.ending.is_empty() {
            self.look_after_ends(now);
        }
        if now >= self.next_look {
            self.look_for_idle(now);
        }
    }

    /// A turn of SCTP on each site.
    fn turn_sites(&mut self, now: Instant) {
        for (number, site) in self.sites.iter() {
            let Site {
                llp,
                listener,
                carriers,
            } = site;
            let mut hands = Hands {
                site: number,
                listener: *listener,
                carriers,
                desk: &mut self.desk,
                places: &mut self.places,
                stags: &mut self.stags,
                limits: &self.limits,
            };
            llp.turn(now, &mut |event| hands.heed(event));
        }
    }

    /// Sends what streams have to send, each in turn.
    pub(super) fn pump(&mut self) {
        let mut sent = 0;
        for _ in 0..self.desk.errands.len().min(ERRANDS) {
            let Some(at) = self.desk.errands.pop_front() else {
                break;
            };
            sent += self.run(at);
        }
        if sent > 0 {
            self.sites.iter().for_each(|(_, site)| site.llp.flush());
        }
    }

    /// One stream's turn.
    #[inline]
    fn run(&mut self, at: At) -> u32 {
        let Some(Site {
            llp,
            listener,
            carriers,
        }) = self.sites.get(at.site)
        else {
            return 0;
        };
        let Some(carrier) = carriers.get(at.association) else {
            return 0;
        };
        let Carrier {
            peer,
            association: Some(association),
            tracks,
            blocked,
            ..
        } = carrier
        else {
            return 0;
        };
        let Some(track) = tracks.get_mut(usize::from(at.stream.0)) else {
            return 0;
        };
        let source = Source {
            at,
            peer: *peer,
            listener: *listener,
        };
        let most = llp.max_segment(at.association).min(self.limits.chunk_bytes);
        let mut below = Below {
            association: at.association,
            segment: SegmentBytes::of_chunk(most as usize),
            llp,
            sent: 0,
        };
        let desk = &mut self.desk;
        let mut local = local(&mut self.places, &mut self.stags);
        let told = &mut |_, event: rpcrdma_iwarp::Event<'_>| desk.hear(source, track, event);
        let flow = association.transmit(at.stream, BURST, &mut local, &mut below, told);
        let Below { llp, sent, .. } = below;
        note_sent(track, sent);
        if association.awaits_dry(at.stream) {
            llp.await_dry(at.association);
        }
        // Who has sent something before there was no more room stands behind those who have not.
        let again = flow == Flow::More || (flow == Flow::Busy && sent > 0);
        track.queued = again;
        if again {
            self.desk.errands.push_back(at);
        } else if flow == Flow::Busy {
            blocked.push(at.stream);
        }
        sent
    }
}

#[inline]
fn note_sent(track: &mut Track, sent: u32) {
    let sent = u16::try_from(sent).unwrap_or(u16::MAX);
    track.sent = track.sent.saturating_add(sent);
}
