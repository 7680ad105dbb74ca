//! An SCTP association and its streams (RFC 5043 sections 7, 8 and 11).

use super::phase::Phase;
use super::stream::{Counts, Flow, Misstep, Speech, Stream, Surroundings};
use crate::event::Event;
use crate::local::{Local, Memory};
use crate::lower::{Lower, Ppid, StreamId};
use crate::rdmap::{Blame, Endpoint};
use crate::reject::Reject;
use std::fmt;

/// The adaptation indication of DDP (RFC 5043 section 5.1), which INIT and INIT-ACK carry.
pub const ADAPTATION_DDP: u32 = 0x0000_0001;

/// What the peer's INIT or INIT-ACK said of its adaptation layer (RFC 5043 section 11.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Indication {
    /// Nothing.
    None,
    /// DDP.
    Ddp,
    /// Something else.
    Other(u32),
}

impl Indication {
    /// From the parameter's value, where there was one.
    #[must_use]
    pub fn of(value: Option<u32>) -> Indication {
        match value {
            None => Indication::None,
            Some(ADAPTATION_DDP) => Indication::Ddp,
            Some(other) => Indication::Other(other),
        }
    }
}

/// Why an association is of no use: it is to be aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The peer has no adaptation layer.
    NoAdaptation,
    /// The peer has another one.
    OtherAdaptation(u32),
    /// The numbers of inbound and outbound streams differ.
    ///
    /// RFC 5043 section 8 has every adaptation ask for as many one way as the other, and two that
    /// do get as many: the lower of what each asked for. So a difference says that the peer did
    /// not, like an application with its system's defaults (often 10 out and 65535 in). Pairing
    /// the lower number would leave it streams on which it may ask for a session and can be given
    /// no answer, not even Terminate, for nothing goes back on them. One plain word, while nobody
    /// waits for anything, is better than such a silence.
    StreamCounts {
        /// Streams that the peer may send on.
        inbound: u16,
        /// Streams that this side may send on.
        outbound: u16,
    },
}

impl Refusal {
    /// The names of all, in the order of [`Refusal::index`].
    pub const NAMES: [&'static str; 3] = ["no-adaptation", "other-adaptation", "stream-counts"];

    /// A dense index, for a table of counters.
    #[must_use]
    pub const fn index(&self) -> usize {
        match self {
            Refusal::NoAdaptation => 0,
            Refusal::OtherAdaptation(_) => 1,
            Refusal::StreamCounts { .. } => 2,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoAdaptation => f.write_str("the peer does not speak DDP over SCTP"),
            Refusal::OtherAdaptation(value) => {
                write!(f, "the peer speaks adaptation {value:#010x}, not DDP")
            }
            Refusal::StreamCounts { inbound, outbound } => {
                write!(f, "{inbound} inbound streams and {outbound} outbound ones")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// What an association allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Requests that may wait for the upper layer; one more is answered with Terminate.
    pub pending: u16,
    /// Octets of the longest chunk that is taken. What the peer sends at once depends on the path
    /// as the peer sees it, so this is no smaller than any path's MTU may be.
    pub chunk_bytes: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            pending: 16,
            chunk_bytes: 65_535,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// The peer's adaptation is not known: data can overtake the news.
    Unknown,
    Ddp,
    Gone,
}

/// One SCTP association that carries DDP.
#[derive(Debug)]
pub struct Association {
    settings: Settings,
    stand: Stand,
    streams: Box<[Stream]>,
    /// Streams that are [`Phase::Pending`].
    pending: u16,
    speech: Speech,
    counts: Counts,
}

impl Association {
    /// An association that is up, with the numbers of streams as agreed on by INIT and INIT-ACK.
    ///
    /// # Errors
    ///
    /// [`Refusal::StreamCounts`] when they differ.
    pub fn new(settings: Settings, inbound: u16, outbound: u16) -> Result<Association, Refusal> {
        if inbound != outbound {
            return Err(Refusal::StreamCounts { inbound, outbound });
        }
        Ok(Association {
            settings,
            stand: Stand::Unknown,
            streams: (0..outbound).map(StreamId).map(Stream::new).collect(),
            pending: 0,
            speech: Speech::default(),
            counts: Counts::default(),
        })
    }

    /// The peer's adaptation is known. Nothing is sent before, and requests that came before go
    /// up now.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoAdaptation`] and [`Refusal::OtherAdaptation`]: no DDP procedure is performed
    /// on this association, and whoever waited for one is told that it is lost.
    pub fn indication(
        &mut self,
        indication: Indication,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Result<(), Refusal> {
        let refusal = match indication {
            Indication::Ddp => {
                if self.stand == Stand::Unknown {
                    self.stand = Stand::Ddp;
                    for stream in &mut self.streams {
                        stream.settled(told);
                    }
                }
                return Ok(());
            }
            Indication::None => Refusal::NoAdaptation,
            Indication::Other(value) => Refusal::OtherAdaptation(value),
        };
        self.lost(told);
        Err(refusal)
    }

    /// What has happened here.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How many streams there are.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Where a stream is.
    #[must_use]
    pub fn phase(&self, id: StreamId) -> Option<Phase> {
        self.streams.get(usize::from(id.0)).map(Stream::phase)
    }

    /// A stream on which this side can begin a session.
    #[must_use]
    pub fn idle_stream(&self) -> Option<StreamId> {
        let idle = |it: &&Stream| it.phase() == Phase::Idle && !it.is_bound();
        self.streams.iter().find(idle).map(|stream| stream.id)
    }

    /// Whether a stream has to hear of it when all that was sent has arrived: to be asked after
    /// [`Association::transmit`]. Without that [`Association::dry`] need not be called.
    #[must_use]
    #[inline]
    pub fn awaits_dry(&self, id: StreamId) -> bool {
        let stream = self.streams.get(usize::from(id.0));
        stream.is_some_and(Stream::awaits_dry)
    }

    /// How many streams this side has ended a session on, with every chunk acknowledged, and the
    /// peer has not. It need not (RFC 5043 section 6.2), so this side may never have them back:
    /// see the crate's essay. Looks at all streams.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        let unanswered = |it: &&Stream| it.is_unanswered();
        self.streams.iter().filter(unanswered).count()
    }

    fn stream(&mut self, id: StreamId) -> Result<&mut Stream, Misstep> {
        self.streams
            .get_mut(usize::from(id.0))
            .ok_or(Misstep::NoStream)
    }

    /// Does something that may end a request's waiting.
    fn answer<T>(
        &mut self,
        id: StreamId,
        with: impl FnOnce(&mut Stream) -> Result<T, Misstep>,
    ) -> Result<T, Misstep> {
        let stream = self.stream(id)?;
        let before = stream.phase();
        let done = with(stream);
        let after = stream.phase();
        self.count_pending(before, after);
        done
    }

    #[inline]
    fn count_pending(&mut self, before: Phase, after: Phase) {
        match (before, after) {
            (Phase::Pending, Phase::Pending) => {}
            (Phase::Pending, _) => self.pending = self.pending.saturating_sub(1),
            (_, Phase::Pending) => self.pending = self.pending.saturating_add(1),
            _ => {}
        }
    }

    /// Binds an endpoint to a stream that is idle, or that a peer asks for a session on. The
    /// endpoint comes back when that cannot be.
    #[expect(clippy::missing_errors_doc, reason = "the error is the argument")]
    pub fn bind(&mut self, id: StreamId, endpoint: Box<Endpoint>) -> Result<(), Box<Endpoint>> {
        match self.stream(id) {
            Ok(stream) => stream.bind(endpoint),
            Err(_) => Err(endpoint),
        }
    }

    /// Gives a stream's endpoint back, after [`Event::Ended`], or before it is in a session: then
    /// with the receives that were posted, of which nobody is told.
    pub fn unbind(&mut self, id: StreamId) -> Option<Box<Endpoint>> {
        self.stream(id).ok()?.unbind()
    }

    /// The endpoint of a stream, to post work.
    #[inline]
    pub fn endpoint(&mut self, id: StreamId) -> Option<&mut Endpoint> {
        self.stream(id).ok()?.endpoint()
    }

    /// Asks the peer for a session on a stream that is idle and has an endpoint; with `enhanced`
    /// agreeing on read depths (RFC 6581), and without where the peer turns that away.
    ///
    /// # Errors
    ///
    /// [`Misstep`].
    pub fn initiate(
        &mut self,
        id: StreamId,
        private_data: &[u8],
        enhanced: bool,
    ) -> Result<(), Misstep> {
        let enhanced = enhanced && self.speech != Speech::Plain;
        self.stream(id)?.initiate(private_data, enhanced)
    }

    /// This side asks for a session on that stream, and there is nothing on any other.
    fn asks_alone(&self, id: StreamId) -> bool {
        let is_busy = |stream: &&Stream| stream.phase() != Phase::Idle;
        self.phase(id) == Some(Phase::Initiating)
            && self.streams.iter().filter(is_busy).count() == 1
    }

    /// Says yes to a request, for the endpoint that was bound to it.
    ///
    /// # Errors
    ///
    /// [`Misstep`].
    pub fn accept(&mut self, id: StreamId, private_data: &[u8]) -> Result<(), Misstep> {
        self.answer(id, |stream| stream.accept(private_data))
    }

    /// Says no to a request: for the upper layer alone to decide (RFC 5043 section 6.3).
    ///
    /// # Errors
    ///
    /// [`Misstep`].
    pub fn reject(
        &mut self,
        id: StreamId,
        private_data: &[u8],
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Result<(), Misstep> {
        self.answer(id, |stream| stream.refuse(Some(private_data), told))
    }

    /// Answers a request with Terminate, where it cannot be put before the upper layer (RFC 5043
    /// section 6.4).
    ///
    /// # Errors
    ///
    /// [`Misstep`].
    pub fn turn_away(
        &mut self,
        id: StreamId,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Result<(), Misstep> {
        self.answer(id, |stream| stream.refuse(None, told))
    }

    /// Ends a session, if there is one. Its work is told of before this returns.
    pub fn end(&mut self, id: StreamId, told: &mut impl FnMut(StreamId, Event<'_>)) {
        // Without such a stream there is nothing to end.
        let _ = self.answer(id, |stream| {
            stream.end(told);
            Ok(())
        });
    }

    /// Takes a chunk that came, in any order. What it leads to may have to be sent: see
    /// [`Association::transmit`].
    #[inline]
    pub fn receive<M: Memory>(
        &mut self,
        id: StreamId,
        ppid: u32,
        chunk: &[u8],
        local: &mut Local<'_, M>,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) {
        self.counts.chunks_in = self.counts.chunks_in.wrapping_add(1);
        let settled = self.stand == Stand::Ddp;
        let may_wait = self.pending < self.settings.pending;
        let alone = ppid == Ppid::Control as u32 && self.asks_alone(id);
        let Some(stream) = self.streams.get_mut(usize::from(id.0)) else {
            self.counts.drop_one();
            return;
        };
        let before = stream.phase();
        if self.stand == Stand::Gone {
            self.counts.drop_one();
        } else if chunk.len() > self.settings.chunk_bytes {
            let blame = Blame::from(Reject::ChunkLong);
            stream.breach(&blame, &mut self.counts, told);
        } else {
            let mut around = Surroundings {
                counts: &mut self.counts,
                may_wait,
                settled,
                alone,
                speech: &mut self.speech,
            };
            stream.receive(ppid, chunk, &mut around, local, told);
        }
        let after = stream.phase();
        self.count_pending(before, after);
    }

    /// Sends up to `budget` chunks of a stream. To be called after anything else was, until it
    /// says [`Flow::Idle`]; after [`Flow::Busy`], when the layer below has room again.
    #[inline]
    pub fn transmit<M: Memory, L: Lower>(
        &mut self,
        id: StreamId,
        budget: u32,
        local: &mut Local<'_, M>,
        lower: &mut L,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Flow {
        let Some(stream) = self.streams.get_mut(usize::from(id.0)) else {
            return Flow::Idle;
        };
        if self.stand != Stand::Ddp {
            return Flow::Idle;
        }
        stream.transmit(budget, &mut self.counts, local, lower, told)
    }

    /// Everything that was sent on the association has been acknowledged.
    ///
    /// Nothing less is of use. A receiver takes a chunk that is fewer than 32767 numbers after
    /// the oldest that it lacks, so what counts is how far that one is behind, not how many
    /// later ones have been acknowledged (RFC 5043 section 10).
    pub fn dry(&mut self) {
        for stream in &mut self.streams {
            stream.dry();
        }
    }

    /// The association is gone: every stream with a session is told, once, and no Terminate is
    /// sent (RFC 5043 section 11.3).
    pub fn lost(&mut self, told: &mut impl FnMut(StreamId, Event<'_>)) {
        self.stand = Stand::Gone;
        self.pending = 0;
        for stream in &mut self.streams {
            stream.lose(told);
        }
    }
}
