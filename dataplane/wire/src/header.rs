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
use crate::types::{Direction, Procedure, Version, Xid};
use crate::{cel_v2_03, rfc8166, rpc};
use geometry::Body as InlineBody;

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
        let (xid, rest) = take_word(message)?;
        let (vers, rest) = take_word(rest)?;
        let (credits, rest) = take_word(rest)?;
        let (proc, rest) = take_word(rest)?;
        let fixed = FixedHeader {
            xid: Xid(xid),
            vers,
            credits,
            proc,
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
#[inline]
pub fn parse<'m>(message: &'m [u8], limits: &Limits) -> Result<Header<'m>, Reject> {
    let Some((fixed, rest)) = FixedHeader::take(message) else {
        return Err(Reject::Short);
    };
    match fixed.vers {
        rfc8166::VERSION => parse_one(fixed, message, rest, limits),
        cel_v2_03::VERSION => parse_two(fixed, message, rest, limits),
        _ => parse_unknown(fixed, message, rest),
    }
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

#[inline]
fn parse_one<'m>(
    fixed: FixedHeader,
    message: &'m [u8],
    rest: &'m [u8],
    limits: &Limits,
) -> Result<Header<'m>, Reject> {
    if message.len() < rfc8166::SHORTEST_BYTES {
        return parse_short(fixed, message, rest);
    }
    match fixed.proc {
        rfc8166::MSG => {
            let (lists, payload) = chunks::take_lists(rest, limits)?;
            let (xid, direction) = rpc::peek_type(payload).ok_or(Reject::NoPayload)?;
            let direction = direction.ok_or(Reject::MessageType)?;
            let lists = ChunkLists { direction, ..lists };
            finish_msg(fixed, Version::One, message, lists, payload, xid, limits)
        }
        rfc8166::NOMSG => {
            let (lists, rest) = chunks::take_lists(rest, limits)?;
            // Without a Read list it can only be a Reply; with one it can only be a Call.
            let direction = match (lists.reads.is_empty(), lists.reply) {
                (false, _) => Direction::Call,
                (true, Some(_)) => Direction::Reply,
                (true, None) if lists.writes.is_empty() => return Err(Reject::NoLists),
                (true, None) => return Err(Reject::NoPositionZero),
            };
            let lists = ChunkLists { direction, ..lists };
            finish_nomsg(fixed, Version::One, message, lists, rest, limits)
        }
        rfc8166::MSGP => Err(Reject::Msgp),
        rfc8166::DONE => Err(Reject::Done),
        rfc8166::ERROR => control::error_one(rest)
            .map(|(body, rest)| header(fixed, Version::One, Body::Error(body), message, rest)),
        _ => Err(Reject::UnknownProcedure),
    }
}

#[inline]
fn parse_two<'m>(
    fixed: FixedHeader,
    message: &'m [u8],
    rest: &'m [u8],
    limits: &Limits,
) -> Result<Header<'m>, Reject> {
    if message.len() < cel_v2_03::SHORTEST_BYTES {
        return Err(Reject::Short);
    }
    match fixed.proc {
        cel_v2_03::MSG => {
            let (lists, payload) = chunks::take_directed_lists(rest, limits)?;
            let (xid, direction) = rpc::peek_type(payload).ok_or(Reject::NoPayload)?;
            if direction != Some(lists.direction) {
                return Err(Reject::DirectionMismatch);
            }
            finish_msg(fixed, Version::Two, message, lists, payload, xid, limits)
        }
        cel_v2_03::NOMSG => {
            let (lists, rest) = chunks::take_directed_lists(rest, limits)?;
            finish_nomsg(fixed, Version::Two, message, lists, rest, limits)
        }
        _ => parse_two_control(fixed, message, rest, limits),
    }
}

/// The procedures without chunk lists: none of them is on the fast path.
#[cold]
#[inline(never)]
fn parse_two_control<'m>(
    fixed: FixedHeader,
    message: &'m [u8],
    rest: &'m [u8],
    limits: &Limits,
) -> Result<Header<'m>, Reject> {
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

/// A version-one message of less than 28 octets: only an ERROR may be that short (V1-01).
#[cold]
fn parse_short<'m>(
    fixed: FixedHeader,
    message: &'m [u8],
    rest: &'m [u8],
) -> Result<Header<'m>, Reject> {
    if fixed.proc != rfc8166::ERROR || message.len() < rfc8166::SHORTEST_ERROR_BYTES {
        return Err(Reject::Short);
    }
    let (body, rest) = control::error_one(rest)?;
    Ok(header(
        fixed,
        Version::One,
        Body::Error(body),
        message,
        rest,
    ))
}

/// A version nobody here speaks: only its ERR_VERS can be understood (V1-02, V2-09).
#[cold]
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

/// What an MSG of either version has to satisfy once its lists and direction are known.
#[inline]
fn finish_msg<'m>(
    fixed: FixedHeader,
    version: Version,
    message: &'m [u8],
    lists: ChunkLists<'m>,
    payload: &'m [u8],
    xid: Xid,
    limits: &Limits,
) -> Result<Header<'m>, Reject> {
    if xid != fixed.xid {
        return Err(Reject::XidMismatch);
    }
    if !lists.reads.is_empty() {
        if lists.direction == Direction::Reply {
            return Err(Reject::ReadsInReply);
        }
        geometry::check(lists.reads, InlineBody::Payload(payload.len()), limits)?;
    }
    let lists = lists.matched()?;
    Ok(Header {
        payload,
        ..header(fixed, version, Body::Msg(lists), message, payload)
    })
}

/// What a NOMSG of either version has to satisfy once its direction is known.
#[inline]
fn finish_nomsg<'m>(
    fixed: FixedHeader,
    version: Version,
    message: &'m [u8],
    lists: ChunkLists<'m>,
    rest: &'m [u8],
    limits: &Limits,
) -> Result<Header<'m>, Reject> {
    match lists.direction {
        Direction::Call => {
            if lists.reads.is_empty() {
                let absent = lists.writes.is_empty() && lists.reply.is_none();
                return Err(if absent {
                    Reject::NoLists
                } else {
                    Reject::NoPositionZero
                });
            }
            geometry::check(lists.reads, InlineBody::PositionZero, limits)?;
        }
        Direction::Reply if !lists.reads.is_empty() => return Err(Reject::ReadsInReply),
        Direction::Reply if lists.reply.is_none() => return Err(Reject::NoReplyChunk),
        Direction::Reply => {}
    }
    let lists = lists.matched()?;
    Ok(header(fixed, version, Body::NoMsg(lists), message, rest))
}

/// A header whose own octets are those of `message` before `rest`. No payload.
#[inline]
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
