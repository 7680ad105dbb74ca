//! Where everything that happens to streams is written down: for the owners of queue pairs as
//! completions, for control as words.

use super::carrier::{At, Ending, Track};
use super::pair::{Pair, Phase};
use super::tally::{Tally, Wrong};
use crate::inbox::{Word, Words};
use rpcrdma_fabric::connect::ListenerId;
use rpcrdma_fabric::pool::Pool;
use rpcrdma_fabric::{Completion, Handle, Outcome, Span, WorkError, WorkId};
use rpcrdma_iwarp::{End, Event};
use rpcrdma_sctp::AssociationId;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// What works and receives are called below: they are told of in the order of posting, so what
/// tells them apart is all that is needed.
pub(super) const WORK: WorkId = WorkId(1);
pub(super) const RECEIVE: WorkId = WorkId(0);

/// Everything but associations and memory.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) pairs: Box<[Pair]>,
    /// Places of queue pairs that are free.
    pub(super) free: Vec<u32>,
    /// What is to be told, oldest first.
    pub(super) completions: VecDeque<Completion>,
    /// Streams that may have something to send.
    pub(super) errands: VecDeque<At>,
    /// Queue pairs that wait for their end.
    pub(super) ending: Vec<u32>,
    /// Queue pairs that found no room in the outbox.
    pub(super) seekers: VecDeque<u32>,
    pub(super) outbox: Pool,
    pub(super) tally: Tally,
    pub(super) words: Words,
    pub(super) requests: u64,
    /// Requests for which control has no ear: to be turned away.
    pub(super) unheard: Vec<At>,
    /// Associations to be ended.
    pub(super) doomed: Vec<(u32, AssociationId, Ending)>,
    /// Queue pairs that wait for a stream, on all associations.
    pub(super) wanting: usize,
}

/// Where a stream's events come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) at: At,
    pub(super) peer: SocketAddr,
    pub(super) listener: Option<ListenerId>,
}

impl Desk {
    pub(super) fn pair(&mut self, index: u32) -> Option<&mut Pair> {
        self.pairs.get_mut(index as usize)
    }

    /// Puts a stream on the list of those that may have something to send.
    #[inline]
    pub(super) fn queue(&mut self, track: &mut Track, at: At) {
        if !track.queued {
            track.queued = true;
            self.errands.push_back(at);
        }
    }

    /// Writes down what has happened to a stream.
    #[inline]
    pub(super) fn hear(&mut self, source: Source, track: &mut Track, event: Event<'_>) {
        match event {
            Event::Received {
                len, invalidated, ..
            } => {
                let invalidated = invalidated.map(Handle::from);
                self.received(track, Outcome::Received { len, invalidated });
            }
            Event::Done { .. } => self.done(track),
            Event::Failed { id, error } if id == WORK => self.failed(track, error),
            Event::Failed { error, .. } => self.received(track, Outcome::Failed(error)),
            Event::Requested { private_data, .. } => self.requested(source, track, private_data),
            Event::Accepted { private_data, .. } => self.accepted(track, private_data),
            Event::Rejected { private_data } => self.rejected(track, private_data),
            Event::Ended(end) => self.ended(track, end),
        }
    }

    #[inline]
    fn received(&mut self, track: &Track, outcome: Outcome) {
        let Some(pair) = track.pair.and_then(|index| self.pair(index)) else {
            return;
        };
        if let Some(id) = pair.receives.pop_front() {
            let completion = pair.completion(id, outcome);
            self.completions.push_back(completion);
        }
    }

    #[inline]
    fn done(&mut self, track: &Track) {
        let Some(index) = track.pair else { return };
        let Some(pair) = self.pairs.get_mut(index as usize) else {
            return;
        };
        let Some(book) = pair.works.pop_front() else {
            return;
        };
        if !book.silent {
            pair.starved = false;
            let completion = pair.completion(book.id, Outcome::Done);
            self.completions.push_back(completion);
        } else if std::mem::take(&mut pair.starved) {
            let completion = pair.completion(WorkId(0), Outcome::Room);
            self.completions.push_back(completion);
        }
        self.release(index, book.outbox);
    }

    /// Gives memory of the outbox back, and says so to one that waits for some.
    #[inline]
    pub(super) fn release(&mut self, index: u32, span: Span) {
        if span.len == 0 {
            return;
        }
        self.outbox.release(span);
        if let Some(pair) = self.pairs.get_mut(index as usize) {
            pair.outbox_bytes -= span.len;
        }
        while let Some(seeker) = self.seekers.pop_front() {
            let Some(pair) = self.pairs.get_mut(seeker as usize) else {
                continue;
            };
            if std::mem::take(&mut pair.starved) {
                let completion = pair.completion(WorkId(0), Outcome::Room);
                self.completions.push_back(completion);
                break;
            }
        }
    }

    #[cold]
    fn failed(&mut self, track: &Track, error: WorkError) {
        let Some(index) = track.pair else { return };
        let Some(pair) = self.pairs.get_mut(index as usize) else {
            return;
        };
        let Some(book) = pair.works.pop_front() else {
            return;
        };
        if !book.silent {
            let completion = pair.completion(book.id, Outcome::Failed(error));
            self.completions.push_back(completion);
        }
        self.release(index, book.outbox);
    }

    #[cold]
    fn requested(&mut self, source: Source, track: &mut Track, private_data: &[u8]) {
        // Who was on this stream before has no part in what comes.
        if let Some(pair) = track.pair.take().and_then(|index| self.pair(index)) {
            pair.at = None;
        }
        self.requests += 1;
        track.request = Some(self.requests);
        let word = Word::Requested {
            request: self.requests,
            at: source.at,
            listener: source.listener,
            peer: source.peer,
            private_data: private_data.into(),
        };
        let wrong = if source.listener.is_none() {
            Wrong::RequestUninvited
        } else if !self.words.try_tell(word) {
            Wrong::RequestsMany
        } else {
            return;
        };
        self.tally.blame(wrong);
        track.request = None;
        self.unheard.push(source.at);
    }

    #[cold]
    fn accepted(&mut self, track: &Track, private_data: &[u8]) {
        if let Some(pair) = track.pair.and_then(|index| self.pair(index)) {
            pair.phase = Phase::Open;
            let connection = pair.connection;
            self.words.tell(Word::Established {
                connection,
                private_data: private_data.into(),
            });
        }
    }

    /// This side has accepted the peer's request: the session stands.
    #[cold]
    pub(super) fn stands(&mut self, index: u32) {
        if let Some(pair) = self.pair(index) {
            pair.phase = Phase::Open;
            let connection = pair.connection;
            self.words.tell(Word::Established {
                connection,
                private_data: Box::default(),
            });
        }
    }

    #[cold]
    fn rejected(&mut self, track: &Track, private_data: &[u8]) {
        if let Some(pair) = track.pair.and_then(|index| self.pair(index)) {
            let words = String::from_utf8_lossy(private_data);
            let shown: String = words.chars().filter(|c| !c.is_control()).collect();
            pair.why = Some(format!("rejected by the peer: {shown}"));
        }
    }

    #[cold]
    fn ended(&mut self, track: &mut Track, end: End) {
        if let Some(request) = track.request.take() {
            // Control finds out when it takes it, where there is no room for this.
            self.words.try_tell(Word::Withdrawn { request });
        }
        let Some(index) = track.pair else { return };
        self.tally.end(end);
        let Some(pair) = self.pairs.get_mut(index as usize) else {
            return;
        };
        if pair.phase == Phase::Free || pair.phase == Phase::Over {
            return;
        }
        let why = pair.why.take().unwrap_or_else(|| told_of(end));
        if end == End::Local && pair.phase != Phase::Waiting {
            // The last message, or the Terminate behind it, may not have arrived.
            pair.phase = Phase::Parting;
            if !self.ending.contains(&index) {
                self.ending.push(index);
            }
            let connection = pair.connection;
            self.words.tell(Word::Ended { connection, why });
        } else {
            self.conclude(index, Some(why));
        }
    }

    /// The owner hears of the end. With `why` control has not heard of it yet.
    #[cold]
    pub(super) fn conclude(&mut self, index: u32, why: Option<String>) {
        let Some(pair) = self.pairs.get_mut(index as usize) else {
            return;
        };
        pair.phase = Phase::Over;
        pair.starved = false;
        let completion = pair.completion(WorkId(0), Outcome::Disconnected);
        let connection = pair.connection;
        self.completions.push_back(completion);
        if let Some(why) = why {
            self.words.tell(Word::Ended { connection, why });
        }
    }

    /// Ends a queue pair that no stream has, or none any more: its receives are all it has.
    #[cold]
    pub(super) fn give_up(&mut self, index: u32, why: String) {
        let Some(pair) = self.pairs.get_mut(index as usize) else {
            return;
        };
        pair.machine = None;
        while let Some(id) = pair.receives.pop_front() {
            let flushed = pair.completion(id, Outcome::Failed(WorkError::Flushed));
            self.completions.push_back(flushed);
        }
        self.conclude(index, Some(why));
    }
}

fn told_of(end: End) -> String {
    match end {
        End::Local => "ended here".to_owned(),
        End::Peer => "the peer ended it".to_owned(),
        End::Rejected => "rejected".to_owned(),
        End::TurnedAway => "the peer turned it away: it has no room".to_owned(),
        End::Terminated(said) => format!(
            "the peer's RDMAP ended it: layer {}, type {}, code {}",
            said.code.layer, said.code.error_type, said.code.error_code
        ),
        End::Reject(reject) => format!("the peer broke the protocol: {}", reject.name()),
        End::Lost => "the association is lost".to_owned(),
    }
}
