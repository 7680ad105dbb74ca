//! Judging any message at all, and naming what is wrong with it.
//!
//! Complete by itself: for whatever `glance` sees, this says the same.

use super::chunks::Lists;
use super::geometry::{self, Body as InlineBody};
use super::{Body, ErrorBody, FixedHeader, Header, Preamble, control, header};
use crate::limits::Limits;
use crate::reject::Reject;
use crate::types::{Direction, Version, Xid};
use crate::{cel_v2_03, rfc8166, rpc};

/// Judges any message, and names what is wrong with it.
#[inline(never)]
pub(super) fn judge<'m>(message: &'m [u8], limits: &Limits) -> Result<Header<'m>, Reject> {
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
