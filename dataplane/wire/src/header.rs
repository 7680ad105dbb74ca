//! Parsing a transport header in place.
//!
//! [`parse`] checks every octet of a header and either refuses the message by name or hands out
//! views of it: a Read list is an array of 24-octet entries in memory, so it is viewed as one; a
//! Write chunk is an array of 16-octet segments. Nothing is copied, and after the check nothing
//! in a view can fail.
//!
//! It does so in two ways that must agree. [`glance`] is short straight code for the usual good
//! message; it is inlined where it is used, and at the first doubt it sees nothing. [`judge`]
//! takes any message and is the one that knows what is wrong with it.
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
#[inline]
pub fn parse<'m>(message: &'m [u8], limits: &Limits) -> Result<Header<'m>, Reject> {
    match glance(message, limits) {
        Some(header) => Ok(header),
        None => judge(message, limits),
    }
}

/// What [`judge`] gives, for an MSG with at most one segment in each list and with nothing wrong:
/// nearly all traffic. `None` says only that the message has to be judged.
#[inline]
fn glance<'m>(message: &'m [u8], limits: &Limits) -> Option<Header<'m>> {
    let (fixed, rest) = FixedHeader::take(message)?;
    let version = Version::of(fixed.vers)?;
    let (preamble, rest) = match version {
        Version::One => (Preamble::ABSENT, rest),
        Version::Two => Preamble::take(rest)?,
    };
    let (lists, payload) = Lists::glance(rest, limits)?;
    let (xid, direction) = rpc::peek(payload)?;
    let told = preamble
        .direction
        .is_none_or(|told| told == direction.code());
    if fixed.proc != rfc8166::MSG || xid != fixed.xid || !told {
        return None;
    }
    if let [read] = lists.reads
        && (direction == Direction::Reply || !geometry::fits(read, payload.len(), limits))
    {
        return None;
    }
    let inv_handle = preamble.inv_handle(direction);
    if inv_handle.is_some_and(|handle| !lists.hold(handle)) {
        return None;
    }
    let lists = lists.directed(direction, inv_handle);
    Some(header(fixed, version, Body::Msg(lists), message, payload))
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
    /// `rdma_direction` as it stands.
    direction: Option<u32>,
    /// `rdma_inv_handle` as it stands: zero names none.
    inv_handle: u32,
}

impl Preamble {
    const ABSENT: Preamble = Preamble {
        direction: None,
        inv_handle: 0,
    };

    #[inline]
    fn take(octets: &[u8]) -> Option<(Preamble, &[u8])> {
        let ([direction, inv_handle], rest) =
            <[U32<BigEndian>; 2]>::ref_from_prefix(octets).ok()?;
        let preamble = Preamble {
            direction: Some(direction.get()),
            inv_handle: inv_handle.get(),
        };
        Some((preamble, rest))
    }

    /// The handle to be matched with those of the lists; in a Reply there is none (V2-08).
    #[inline]
    fn inv_handle(self, direction: Direction) -> Option<Handle> {
        let named = self.inv_handle != 0 && direction == Direction::Call;
        named.then_some(Handle(self.inv_handle))
    }
}

/// Judges any message, and names what is wrong with it.
#[inline(never)]
fn judge<'m>(message: &'m [u8], limits: &Limits) -> Result<Header<'m>, Reject> {
    let Some((fixed, rest)) = FixedHeader::take(message) else {
        return Err(Reject::Short);
    };
    let carries_rpc = fixed.proc <= rfc8166::NOMSG;
    match Version::of(fixed.vers) {
        Some(Version::One) if carries_rpc && message.len() >= rfc8166::SHORTEST_BYTES => {
            judge_rpc(fixed, Version::One, message, rest, limits)
        }
        Some(Version::Two) if carries_rpc && message.len() >= cel_v2_03::SHORTEST_BYTES => {
            judge_rpc(fixed, Version::Two, message, rest, limits)
        }
        Some(Version::One) => judge_one_other(fixed, message, rest),
        Some(Version::Two) => judge_two_other(fixed, message, rest, limits),
        None => judge_unknown(fixed, message, rest),
    }
}

/// An MSG or a NOMSG of either version: `rest` is what follows its fixed words.
fn judge_rpc<'m>(
    fixed: FixedHeader,
    version: Version,
    message: &'m [u8],
    rest: &'m [u8],
    limits: &Limits,
) -> Result<Header<'m>, Reject> {
    let (preamble, rest) = match version {
        Version::One => (Preamble::ABSENT, rest),
        Version::Two => Preamble::take(rest).ok_or(Reject::Truncated)?,
    };
    let declared = preamble
        .direction
        .map(|code| Direction::of(code).ok_or(Reject::DirectionValue))
        .transpose()?;
    let (lists, rest) = Lists::take(rest, limits)?;
    let inline = fixed.proc == rfc8166::MSG;
    let direction = if inline {
        judge_msg(fixed.xid, declared, &lists, rest, limits)?
    } else {
        judge_nomsg(declared, &lists, limits)?
    };
    let inv_handle = preamble.inv_handle(direction);
    if inv_handle.is_some_and(|handle| !lists.hold(handle)) {
        return Err(Reject::UnmatchedInvHandle);
    }
    let lists = lists.directed(direction, inv_handle);
    let body = if inline {
        Body::Msg(lists)
    } else {
        Body::NoMsg(lists)
    };
    Ok(header(fixed, version, body, message, rest))
}

/// Judges an MSG: what follows its header must be an RPC message with the header's xid, of the
/// declared direction if there is one, and the Read chunks must fit it.
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

/// Everything of version one but MSG and NOMSG.
fn judge_one_other<'m>(
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
fn judge_two_other<'m>(
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
fn judge_unknown<'m>(
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

/// A header whose own octets are those of `message` before `rest`.
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
        header_bytes: message.len().wrapping_sub(rest.len()),
        payload: match body {
            Body::Msg(_) => rest,
            _ => &[],
        },
    }
}
