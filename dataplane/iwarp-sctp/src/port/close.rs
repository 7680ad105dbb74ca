//! How connections end: at our word, at the peer's, with the port.

use super::pair::Phase;
use super::site::Reach;
use super::{IwarpPort, LINGER};
use rpcrdma_fabric::{Outcome, Posted, WorkError, WorkId};
use rpcrdma_iwarp::Phase as Session;
use rpcrdma_sctp::Llp;
use std::time::Instant;

impl<L: Llp> IwarpPort<L> {
    /// Ends a connection in an orderly way.
    #[cold]
    pub(super) fn end(&mut self, index: u32) {
        let Some(pair) = self.desk.pair(index) else {
            return;
        };
        match pair.phase {
            Phase::Open if !pair.works.is_empty() => {
                pair.phase = Phase::Draining;
                pair.until = Some(Instant::now() + LINGER);
                self.desk.ending.push(index);
            }
            Phase::Open | Phase::Waiting => self.end_session(index),
            Phase::Free | Phase::Draining | Phase::Parting | Phase::Over => {}
        }
    }

    /// Ends the session here and now, with all that was posted.
    #[cold]
    fn end_session(&mut self, index: u32) {
        let Some(pair) = self.desk.pair(index) else {
            return;
        };
        pair.until = Some(Instant::now() + LINGER);
        let Some(at) = pair.at else {
            return self.desk.give_up(index, "ended here".to_owned());
        };
        let Some(Reach {
            association,
            track,
            source,
        }) = self.sites.reach(at)
        else {
            return self.desk.give_up(index, "ended here".to_owned());
        };
        let desk = &mut self.desk;
        association.end(at.stream, &mut |_, event| desk.hear(source, track, event));
        self.desk.queue(track, at);
    }

    /// Work of our own that could not be: the connection is over. What becomes of the work.
    #[cold]
    pub(super) fn fail(&mut self, index: u32, id: WorkId) -> Posted {
        if let Some(pair) = self.desk.pairs.get(index as usize) {
            let outcome = Outcome::Failed(WorkError::LocalProtection);
            let completion = pair.completion(id, outcome);
            self.desk.completions.push_back(completion);
            self.end_session(index);
        }
        Posted::Pending
    }

    /// The owner has no more to do with a queue pair.
    #[cold]
    pub(super) fn forget(&mut self, index: u32) {
        let Some(pair) = self.desk.pair(index) else {
            return;
        };
        if pair.phase == Phase::Free {
            return;
        }
        if !pair.is_over() {
            self.end_session(index);
        }
        self.close_exposures(index);
        let Some(pair) = self.desk.pairs.get_mut(index as usize) else {
            return;
        };
        pair.phase = Phase::Free;
        pair.machine = None;
        pair.ask = None;
        let (token, at) = (pair.token, pair.at.take());
        let endpoint = pair.endpoint.take();
        self.desk.completions.retain(|it| it.token != token);
        self.desk.ending.retain(|&other| other != index);
        self.desk.seekers.retain(|&other| other != index);
        if let Some(reach) = at.and_then(|at| self.sites.reach(at)) {
            // A session that is over gives its end back; it was told of all its work.
            drop(reach.association.unbind(reach.source.at.stream));
            reach.track.pair = None;
        }
        self.desk.free.push(index);
        // Control counts the queue pairs that are out: this one is in again.
        drop(endpoint);
    }

    /// Nothing that was exposed is reached any more: the table has the room again.
    fn close_exposures(&mut self, index: u32) {
        if let Some(pair) = self.desk.pairs.get_mut(index as usize)
            && std::mem::take(&mut pair.exposures) > 0
        {
            self.stags.close_all(pair.owner);
        }
    }

    /// Takes a step with each connection that ends, where it is time.
    #[cold]
    pub(super) fn look_after_ends(&mut self, now: Instant) {
        let mut nth = 0;
        while let Some(&index) = self.desk.ending.get(nth) {
            if self.look_after(index, now) {
                nth += 1;
            } else {
                self.desk.ending.swap_remove(nth);
            }
        }
    }

    /// False when it has ended.
    fn look_after(&mut self, index: u32, now: Instant) -> bool {
        let Some(pair) = self.desk.pair(index) else {
            return false;
        };
        let late = pair.until.is_none_or(|until| now >= until);
        if pair.phase == Phase::Draining && (pair.works.is_empty() || late) {
            self.end_session(index);
        }
        let Some(pair) = self.desk.pair(index) else {
            return false;
        };
        let at = pair.at;
        match pair.phase {
            Phase::Draining => true,
            Phase::Parting => {
                let late = pair.until.is_none_or(|until| now >= until);
                let session = at
                    .and_then(|at| self.sites.reach(at))
                    .and_then(|reach| reach.association.phase(reach.source.at.stream));
                // The peer's last word says that it has ours.
                let arrived = matches!(
                    session,
                    None | Some(Session::Idle | Session::Closed | Session::Lost)
                );
                if arrived || late {
                    self.desk.conclude(index, None);
                }
                !(arrived || late)
            }
            Phase::Free | Phase::Waiting | Phase::Open | Phase::Over => false,
        }
    }

    /// The next time at which an end is given up.
    pub(super) fn next_end(&self) -> Option<Instant> {
        let pairs = self.desk.ending.iter();
        let ends = pairs.filter_map(|&index| self.desk.pairs.get(index as usize)?.until);
        ends.min()
    }
}
