//! Parsing a transport header in place.
//!
//! [`parse`] looks at every octet of a header once, in order, and either refuses the message by
//! name or hands out views of it: a Read list is an array of 24-octet entries in memory, so it
//! is viewed as one; a Write chunk is an array of 16-octet segments. Nothing is copied, and
//! after the check nothing in a view can fail.
//!
//! What is judged here is what one message shows by itself: its shape, the receiver's limits,
//! and where its Read chunks go ([`geometry`]). What needs the connection's state (credits,
//! xids in flight, the version in force) is the engine's.
//!
//! Order of judgement, which decides the name when a message has several faults: length,
//! version, procedure, lists from front to back, direction, payload, then geometry.

mod chunks;
mod control;
mod geometry;
pub(crate) mod skim;

pub use chunks::{ChunkLists, WriteChunks, WriteList};
pub use control::{ErrorBody, Optional};

use crate::limits::Limits;
use crate::octets::take_word;
use crate::property::{PropertySet, PropertySubset};
use crate::reject::{Reject, Role};
use crate::types::{Direction, Handle, Procedure, Version, Xid};
use crate::{cel_v2_03, rfc8166, rpc};
use chunks::Lists;
use geometry::Body as InlineBody;
use zerocopy::{BigEndian, FromBytes, U32};

/// The four words that begin every message of every version (RFC 8166 section 4.2), in host
/// order and not judged at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedHeader {
    /// `rdma_xid`.
    pub xid: Xid,
    /// `rdma_vers`.
    pub vers: u32,
    /// `rdma_credit`.
    pub credits: u32,
    /// `rdma_proc`.
    pub proc: u32,
}

impl FixedHeader {
    /// Octets on the wire.
    pub const BYTES: usize = 16;

    /// The fixed words of a message that has them, good or not.
    #[inline]
    #[must_use]
    pub fn peek(message: &[u8]) -> Option<FixedHeader> {
        FixedHeader::take(message).map(|(fixed, _)| fixed)
    }

    #[inline]
    fn take(message: &[u8]) -> Option<(FixedHeader, &[u8])> {
        let ([xid, vers, credits, proc], rest) =
            <[U32<BigEndian>; 4]>::ref_from_prefix(message).ok()?;
        let fixed = FixedHeader {
            xid: Xid(xid.get()),
            vers: vers.get(),
            credits: credits.get(),
            proc: proc.get(),
        };
        Some((fixed, rest))
    }
}

/// A message that was checked.
#[derive(Clone, Copy, Debug)]
pub struct Header<'m> {
    /// Whose transaction.
    pub xid: Xid,
    /// The version whose layout this is. [`Version::One`] for an ERR_VERS that carries a
    /// version nobody here speaks: that error has the same layout in all of them.
    pub version: Version,
    /// `rdma_vers` as it stands; differs from `version` in that one case alone (V2-09).
    pub vers: u32,
    /// Credits asked for or granted, as sent: zero and absurd values included. Means nothing in
    /// a property message (V2-13).
    pub credits: u32,
    /// The rest, by procedure.
    pub body: Body<'m>,
    /// Octets of the transport header, so the offset of the payload.
    pub header_bytes: usize,
    /// The RPC message, or what of it is inline; empty except in an MSG.
    pub payload: &'m [u8],
}

/// What a header says, by procedure.
#[derive(Clone, Copy, Debug)]
pub enum Body<'m> {
    /// RDMA_MSG: an RPC message follows, less what was reduced.
    Msg(ChunkLists<'m>),
    /// RDMA_NOMSG: the RPC message is in the position-zero Read chunk or the Reply chunk.
    NoMsg(ChunkLists<'m>),
    /// RDMA_ERROR: the transaction is over.
    Error(ErrorBody),
    /// RDMA2_CONNPROP: the sender's properties.
    ConnProp {
        /// `rdma_start`: every property the sender knows.
        start: PropertySet<'m>,
        /// `rdma_nochg`: those of them that stay as they are (V2-06).
        nochg: PropertySubset<'m>,
    },
    /// RDMA2_REQPROP: a request to change properties.
    ReqProp {
        /// `rdma_want`: the values asked for.
        want: PropertySet<'m>,
    },
    /// RDMA2_RESPROP: what became of the request with the same xid. The subsets refer to that
    /// request's set: hold them against it with [`PropertySubset::within`].
    RespProp {
        /// `rdma_done`.
        done: PropertySubset<'m>,
        /// `rdma_rejected`.
        rejected: PropertySubset<'m>,
        /// `rdma_other`: properties that got another value than the one asked for.
        other: PropertySet<'m>,
    },
    /// RDMA2_UPDPROP: the sender's properties have changed.
    UpdProp {
        /// `rdma_now`.
        now: PropertySet<'m>,
    },
}

impl Body<'_> {
    /// The procedure.
    #[inline]
    #[must_use]
    pub const fn procedure(&self) -> Procedure {
        match self {
            Body::Msg(_) => Procedure::Msg,
            Body::NoMsg(_) => Procedure::NoMsg,
            Body::Error(_) => Procedure::Error,
            Body::ConnProp { .. } => Procedure::ConnProp,
            Body::ReqProp { .. } => Procedure::ReqProp,
            Body::RespProp { .. } => Procedure::RespProp,
            Body::UpdProp { .. } => Procedure::UpdProp,
        }
    }
}

/// Checks one received message against `limits`.
///
/// # Errors
///
/// Why the message is refused; [`crate::answer`] tells what goes back. An OPTIONAL message is
/// always refused, no option being known (V2-01); [`Optional::peek`] shows what it was.
#[inline(always)]
pub fn parse<'m>(message: &'m [u8], limits: &Limits) -> Result<Header<'m>, Reject> {
    let Some((fixed, rest)) = FixedHeader::take(message) else {
        return Err(Reject::Short);
    };
    let carries_rpc = fixed.proc <= rfc8166::NOMSG;
    let version = match fixed.vers {
        rfc8166::VERSION if carries_rpc && message.len() >= rfc8166::SHORTEST_BYTES => Version::One,
        cel_v2_03::VERSION if carries_rpc && message.len() >= cel_v2_03::SHORTEST_BYTES => {
            Version::Two
        }
        _ => return parse_other(fixed, message, rest, limits),
    };
    parse_rpc(fixed, version, message, rest, limits)
}

/// [`parse`], for a receiver that knows what it is for this message.
///
/// # Errors
///
/// As [`parse`], and for a responder also an ERROR (V1-04) and a version-one NOMSG that has only
/// the shape of a Reply (V1-03).
#[inline]
pub fn parse_as<'m>(message: &'m [u8], limits: &Limits, role: Role) -> Result<Header<'m>, Reject> {
    let header = parse(message, limits)?;
    if role == Role::Responder {
        match (&header.body, header.version) {
            (Body::Error(_), _) => return Err(Reject::ErrorToResponder),
            (Body::NoMsg(lists), Version::One) if lists.reads.is_empty() => {
                return Err(Reject::NoPositionZero);
            }
            _ => {}
        }
    }
    Ok(header)
}

/// Judges the RPC message of a NOMSG, once its first octets have arrived, as [`parse`] judges
/// the payload of an MSG: its xid and its type against the header's (V1-03, V2-10).
///
/// # Errors
///
/// [`Reject::NoPayload`] for less than eight octets, [`Reject::XidMismatch`], and
/// [`Reject::MessageType`] or [`Reject::DirectionMismatch`] by version.
#[inline]
pub fn check_long(
    xid: Xid,
    version: Version,
    direction: Direction,
    message: &[u8],
) -> Result<(), Reject> {
    let (own, kind) = rpc::peek_type(message).ok_or(Reject::NoPayload)?;
    if kind != Some(direction) {
        return Err(match version {
            Version::One => Reject::MessageType,
            Version::Two => Reject::DirectionMismatch,
        });
    }
    if own != xid {
        return Err(Reject::XidMismatch);
    }
    Ok(())
}

/// What stands before the chunk lists in version two, and nowhere in version one.
#[derive(Clone, Copy)]
struct Preamble {
    direction: Option<Direction>,
    /// `rdma_inv_handle` as it stands: zero names none.
    inv_handle: u32,
}

impl Preamble {
    #[inline(always)]
    fn take(version: Version, octets: &[u8]) -> Result<(Preamble, &[u8]), Reject> {
        if version == Version::One {
            let absent = Preamble {
                direction: None,
                inv_handle: 0,
            };
            return Ok((absent, octets));
        }
        let (direction, rest) = take_word(octets).ok_or(Reject::Truncated)?;
        let (inv_handle, rest) = take_word(rest).ok_or(Reject::Truncated)?;
        let direction = Some(Direction::of(direction).ok_or(Reject::DirectionValue)?);
        let preamble = Preamble {
            direction,
            inv_handle,
        };
        Ok((preamble, rest))
    }
}

/// An MSG or a NOMSG of either version: `rest` is what follows its fixed words.
#[inline(always)]
fn parse_rpc<'m>(
    fixed: FixedHeader,
    version: Version,
    message: &'m [u8],
    rest: &'m [u8],
    limits: &Limits,
) -> Result<Header<'m>, Reject> {
    let (preamble, rest) = Preamble::take(version, rest)?;
    match Lists::glance(rest, limits) {
        Some((lists, rest)) => conclude(fixed, version, preamble, lists, message, rest, limits),
        None => parse_walked(fixed, version, message, limits),
    }
}

/// [`parse_rpc`] for lists that take more than a glance.
#[inline(never)]
fn parse_walked<'m>(
    fixed: FixedHeader,
    version: Version,
    message: &'m [u8],
    limits: &Limits,
) -> Result<Header<'m>, Reject> {
    let rest = message.get(FixedHeader::BYTES..).ok_or(Reject::Short)?;
    let (preamble, rest) = Preamble::take(version, rest)?;
    let (lists, rest) = Lists::take(rest, limits)?;
    conclude(fixed, version, preamble, lists, message, rest, limits)
}

/// Judges an MSG or NOMSG as a whole: `rest` is what follows its lists.
#[inline(always)]
fn conclude<'m>(
    fixed: FixedHeader,
    version: Version,
    preamble: Preamble,
    lists: Lists<'m>,
    message: &'m [u8],
    rest: &'m [u8],
    limits: &Limits,
) -> Result<Header<'m>, Reject> {
    let inline = fixed.proc == rfc8166::MSG;
    let direction = if inline {
        judge_msg(fixed.xid, preamble.direction, &lists, rest, limits)?
    } else {
        judge_nomsg(preamble.direction, &lists, limits)?
    };
    let inv_handle = match preamble.inv_handle {
        0 => None,
        // Ignored in a Reply (V2-08).
        _ if direction == Direction::Reply => None,
        handle if lists.hold(Handle(handle)) => Some(Handle(handle)),
        _ => return Err(Reject::UnmatchedInvHandle),
    };
    let lists = ChunkLists {
        direction,
        inv_handle,
        reads: lists.reads,
        writes: lists.writes,
        reply: lists.reply,
    };
    let (body, payload): (_, &[u8]) = if inline {
        (Body::Msg(lists), rest)
    } else {
        (Body::NoMsg(lists), &[])
    };
    Ok(Header {
        xid: fixed.xid,
        version,
        vers: fixed.vers,
        credits: fixed.credits,
        body,
        header_bytes: message.len().wrapping_sub(rest.len()),
        payload,
    })
}

/// Judges an MSG: what follows its header must be an RPC message with the header's xid, of the
/// declared direction if there is one, and the Read chunks must fit it.
#[inline(always)]
fn judge_msg(
    xid: Xid,
    declared: Option<Direction>,
    lists: &Lists<'_>,
    payload: &[u8],
    limits: &Limits,
) -> Result<Direction, Reject> {
    let (own, direction) = rpc::peek_type(payload).ok_or(Reject::NoPayload)?;
    if declared.is_some() && declared != direction {
        return Err(Reject::DirectionMismatch);
    }
    let direction = direction.ok_or(Reject::MessageType)?;
    if own != xid {
        return Err(Reject::XidMismatch);
    }
    if !lists.reads.is_empty() {
        if direction == Direction::Reply {
            return Err(Reject::ReadsInReply);
        }
        geometry::check(lists.reads, InlineBody::Payload(payload.len()), limits)?;
    }
    Ok(direction)
}

/// Judges a NOMSG: a Call is in a position-zero Read chunk, a Reply in the Reply chunk. Version
/// one does not declare which it is, but with a Read list it can only be a Call, and with
/// neither a Read list nor a Reply chunk it can be nothing.
#[inline(always)]
fn judge_nomsg(
    declared: Option<Direction>,
    lists: &Lists<'_>,
    limits: &Limits,
) -> Result<Direction, Reject> {
    let shape = match (lists.reads, lists.reply) {
        ([], Some(_)) => Direction::Reply,
        _ => Direction::Call,
    };
    let direction = declared.unwrap_or(shape);
    match direction {
        Direction::Call if lists.all_absent() => Err(Reject::NoLists),
        Direction::Call if lists.reads.is_empty() => Err(Reject::NoPositionZero),
        Direction::Call => geometry::check(lists.reads, InlineBody::PositionZero, limits),
        Direction::Reply if !lists.reads.is_empty() => Err(Reject::ReadsInReply),
        Direction::Reply if lists.reply.is_none() => Err(Reject::NoReplyChunk),
        Direction::Reply => Ok(()),
    }
    .map(|()| direction)
}

/// Everything but an MSG or a NOMSG long enough to be one: nothing of it is on the fast path.
#[cold]
#[inline(never)]
fn parse_other<'m>(
    fixed: FixedHeader,
    message: &'m [u8],
    rest: &'m [u8],
    limits: &Limits,
) -> Result<Header<'m>, Reject> {
    match fixed.vers {
        rfc8166::VERSION => parse_one_other(fixed, message, rest),
        cel_v2_03::VERSION => parse_two_other(fixed, message, rest, limits),
        _ => parse_unknown(fixed, message, rest),
    }
}

/// Everything of version one but MSG and NOMSG.
fn parse_one_other<'m>(
    fixed: FixedHeader,
    message: &'m [u8],
    rest: &'m [u8],
) -> Result<Header<'m>, Reject> {
    // Only an ERROR may be shorter than 28 octets (V1-01).
    if fixed.proc == rfc8166::ERROR && message.len() >= rfc8166::SHORTEST_ERROR_BYTES {
        let (body, rest) = control::error_one(rest)?;
        return Ok(header(
            fixed,
            Version::One,
            Body::Error(body),
            message,
            rest,
        ));
    }
    if message.len() < rfc8166::SHORTEST_BYTES {
        return Err(Reject::Short);
    }
    Err(match fixed.proc {
        rfc8166::MSGP => Reject::Msgp,
        rfc8166::DONE => Reject::Done,
        _ => Reject::UnknownProcedure,
    })
}

/// Everything of version two but MSG and NOMSG.
fn parse_two_other<'m>(
    fixed: FixedHeader,
    message: &'m [u8],
    rest: &'m [u8],
    limits: &Limits,
) -> Result<Header<'m>, Reject> {
    if message.len() < cel_v2_03::SHORTEST_BYTES {
        return Err(Reject::Short);
    }
    let (body, rest) = match fixed.proc {
        cel_v2_03::ERROR => {
            let (body, rest) = control::error_two(rest)?;
            if !rest.is_empty() {
                return Err(Reject::ErrorTrailing);
            }
            (Body::Error(body), rest)
        }
        cel_v2_03::OPTIONAL => return Err(control::refuse_optional(rest)),
        proc => {
            let (body, rest) = control::take_properties(proc, rest, limits)?;
            if !rest.is_empty() {
                return Err(Reject::TrailingOctets);
            }
            (body, rest)
        }
    };
    Ok(header(fixed, Version::Two, body, message, rest))
}

/// A version nobody here speaks: only its ERR_VERS can be understood (V1-02, V2-09).
fn parse_unknown<'m>(
    fixed: FixedHeader,
    message: &'m [u8],
    rest: &'m [u8],
) -> Result<Header<'m>, Reject> {
    let error = fixed.proc == rfc8166::ERROR;
    let shortest = if error {
        rfc8166::SHORTEST_ERROR_BYTES
    } else {
        rfc8166::SHORTEST_BYTES
    };
    if message.len() < shortest {
        return Err(Reject::Short);
    }
    if !error {
        return Err(Reject::UnknownVersion);
    }
    match control::error_one(rest) {
        Ok((body @ ErrorBody::Version { .. }, rest)) => Ok(header(
            fixed,
            Version::One,
            Body::Error(body),
            message,
            rest,
        )),
        Ok(_) | Err(Reject::ErrorCode) => Err(Reject::ErrorVersion),
        Err(reject) => Err(reject),
    }
}

/// A header whose own octets are those of `message` before `rest`. No payload.
fn header<'m>(
    fixed: FixedHeader,
    version: Version,
    body: Body<'m>,
    message: &'m [u8],
    rest: &'m [u8],
) -> Header<'m> {
    Header {
        xid: fixed.xid,
        version,
        vers: fixed.vers,
        credits: fixed.credits,
        body,
        header_bytes: message.len().saturating_sub(rest.len()),
        payload: &[],
    }
}
