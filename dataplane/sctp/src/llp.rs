//! What RDMAP's adaptation asks of SCTP (RFC 5043 sections 5, 8, 9 and 11).

use crate::discards::{self, Discards};
use crate::frames::Frames;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// An association of one [`Llp`]. Places are reused, ids are not: one that is over names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AssociationId {
    /// Small and dense: below the number of associations that the layer was made for.
    pub place: u32,
    /// Counts the associations that had this place.
    pub generation: u32,
}

/// Octets of user data that any association's chunk takes: a DDP-SSN and the least segment of RFC
/// 5043 section 9, which is a control message with all of its private data.
pub const LEAST_CHUNK: u32 = 518;

/// SCTP on one lcore: any number of associations on one address, single-homed.
///
/// Nothing here waits. [`Llp::turn`] does all input, output and timing; between turns, sends
/// collect. Events come in `turn` alone, for an association in this order: one [`Event::Up`] or
/// the end; anything; one [`Event::Down`]. Nothing comes of an association after its end.
pub trait Llp {
    /// Asks a peer for an association; [`Event::Up`] or [`Event::Down`] will say what became of
    /// it. The address is that of the peer's UDP socket where packets go in UDP, else that of its
    /// SCTP endpoint.
    ///
    /// # Errors
    ///
    /// [`Error::Associated`] where there is one with this address, or one is being asked for, in
    /// either direction: there cannot be two (RFC 9260 section 1.3). [`Error::Exhausted`] when
    /// all places are taken; [`Error::Os`] and [`Error::Library`].
    fn associate(&mut self, to: SocketAddr, now: Instant) -> Result<AssociationId, Error>;

    /// Sends one unordered chunk of `len` octets, which `fill` writes into memory of the layer's
    /// own, called before this returns and only if the chunk is taken as far as can be known. The
    /// protocol identifier is in host order.
    ///
    /// What was taken arrives once, or the association goes down.
    ///
    /// # Errors
    ///
    /// [`Refused`]: nothing was taken.
    fn send(
        &mut self,
        association: AssociationId,
        stream: u16,
        ppid: u32,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Refused>;

    /// Octets of one chunk's user data that go without fragmentation by SCTP or IP; never below
    /// [`LEAST_CHUNK`]: on a path narrower than that, SCTP does fragment. May change while the
    /// association is up. [`LEAST_CHUNK`] where there is no such association.
    fn max_segment(&self, association: AssociationId) -> u32;

    /// Has [`Event::Dry`] told of, once, when everything sent on an association has been
    /// acknowledged, be that so already. In a round trip of calls that is so after each packet, and
    /// nobody wants to know: telling of it costs a tenth of the round trip. A layer may tell of it
    /// unasked instead, each time it becomes so.
    fn await_dry(&mut self, association: AssociationId);

    /// One turn: reads what has come, in batches; runs timers that are due; tells what happened;
    /// sends what is to be sent, in batches. To be called again by [`Llp::deadline`], or when the
    /// [`Llp::descriptor`] is readable, and after sends.
    fn turn(&mut self, now: Instant, events: &mut impl FnMut(Event<'_>));

    /// Sends what has collected, without a turn.
    fn flush(&mut self);

    /// Sends what is out, then ends an association; [`Event::Down`] follows.
    fn shut_down(&mut self, association: AssociationId);

    /// Ends an association now; the peer is told. [`Event::Down`] follows, in the next turn.
    fn abort(&mut self, association: AssociationId);

    /// When a turn has to be, whatever comes; `None` while only the descriptor can bring work.
    fn deadline(&self) -> Option<Instant>;

    /// What has come and was not taken, as far as this layer gets to see it.
    fn discards(&self) -> Discards {
        discards::NONE
    }

    /// What the port of DPDK that packets travel by has counted; nothing where they travel otherwise.
    fn frames(&self) -> Frames {
        Frames::default()
    }

    /// Readable when packets have come: for sleeping on.
    fn descriptor(&self) -> BorrowedFd<'_>;
}

/// What happened to an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The association is there.
    Up {
        /// Which.
        association: AssociationId,
        /// The peer, as [`Llp::associate`] takes it.
        peer: SocketAddr,
        /// The peer asked for it.
        arrived: bool,
        /// Streams that the peer may send on.
        inbound: u16,
        /// Streams that this side may send on.
        outbound: u16,
        /// The adaptation code point of the peer's INIT or INIT-ACK, where there was one
        /// (RFC 5061 section 4.2.6, RFC 5043 section 11.1). Known before any message is told of.
        indication: Option<u32>,
    },
    /// A message, whole. It is the peer's: of any length and content.
    Message {
        /// On which association.
        association: AssociationId,
        /// On which stream, below [`Event::Up`]'s `inbound`.
        stream: u16,
        /// The payload protocol identifier, in host order.
        ppid: u32,
        /// The chunk said so.
        unordered: bool,
        /// Its octets, for as long as the event is being told of.
        octets: &'a [u8],
    },
    /// Everything sent has been acknowledged: see [`Llp::await_dry`].
    Dry {
        /// On which association.
        association: AssociationId,
    },
    /// What was refused as [`Refused::Full`] may be tried again.
    Writable {
        /// On which association.
        association: AssociationId,
    },
    /// The association is over, and with it the id.
    Down {
        /// Which.
        association: AssociationId,
        /// Why.
        reason: Reason,
    },
}

/// Why an association is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It never came to be: the peer does not answer, or said no.
    Refused,
    /// Either end shut it down in order: everything taken before has arrived.
    ShutDown,
    /// The peer aborted it, for this cause.
    AbortedByPeer(AbortCause),
    /// It was aborted here, by [`Llp::abort`].
    Aborted,
    /// The peer answers no more.
    Unreachable,
    /// The peer began anew: what was sent may be lost (RFC 9260 section 5.2).
    Restarted,
    /// The peer did what the layer cannot bear: more messages before the association was up than
    /// there is room for, or a message longer than any chunk.
    Breach,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Refused => "the peer does not answer, or refuses",
            Reason::ShutDown => "shut down",
            Reason::AbortedByPeer(cause) => return write!(f, "aborted by the peer: {cause}"),
            Reason::Aborted => "aborted here",
            Reason::Unreachable => "the peer answers no more",
            Reason::Restarted => "the peer began anew",
            Reason::Breach => "the peer sent what cannot be borne",
        })
    }
}

/// The first error cause of a peer's ABORT (RFC 9260 section 3.3.10), host order; 0 where it gives none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AbortCause(pub u16);

impl AbortCause {
    /// Its user aborted it.
    pub const USER: Self = Self(12);
}

impl fmt::Display for AbortCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            0 => "it does not say why",
            1 => "invalid stream identifier",
            2 => "a mandatory parameter is missing",
            3 => "stale cookie",
            4 => "out of resources",
            5 => "an address cannot be resolved",
            6 => "unrecognized chunk",
            7 => "invalid mandatory parameter",
            8 => "unrecognized parameters",
            9 => "no user data",
            10 => "a cookie came while it was shutting down",
            11 => "restart with new addresses",
            12 => "its user aborted it",
            13 => "protocol violation",
            other => return write!(f, "cause {other}"),
        })
    }
}

/// Why a chunk was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// No room now; [`Event::Writable`] will say when.
    Full,
    /// Empty, or longer than [`Llp::max_segment`].
    Length,
    /// The stream's number is not below [`Event::Up`]'s `outbound`.
    Stream,
    /// The association is not up, or is being shut down.
    Gone,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::Full => "no room in SCTP's send buffer",
            Refused::Length => "a chunk that is empty or too long for the path",
            Refused::Stream => "no such stream",
            Refused::Gone => "the association is not up",
        })
    }
}

impl std::error::Error for Refused {}

/// Why something could not be set up.
#[derive(Debug)]
pub enum Error {
    /// There is one with this address.
    Associated(AssociationId),
    /// All places for associations are taken.
    Exhausted,
    /// No SCTP of this kind on this machine: one line that says what is missing.
    Absent(String),
    /// A port of DPDK's cannot be used: one line that says which and why.
    Port(String),
    /// A call of the operating system's failed.
    Os {
        /// Which.
        call: &'static str,
        /// How.
        source: std::io::Error,
    },
    /// A call of the SCTP library's failed.
    Library {
        /// Which.
        call: &'static str,
        /// How.
        source: std::io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Associated(_) => f.write_str("there is an association with this address"),
            Error::Exhausted => f.write_str("as many associations as there is room for"),
            Error::Absent(line) | Error::Port(line) => f.write_str(line),
            Error::Os { call, source } => write!(f, "{call}: {source}"),
            Error::Library { call, source } => write!(f, "{call} of the SCTP library: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Os { source, .. } | Error::Library { source, .. } => Some(source),
            _ => None,
        }
    }
}
