//! The procedures without chunk lists: ERROR of both versions, OPTIONAL, and the four property
//! messages of version two.

use super::Body;
use crate::limits::Limits;
use crate::octets::{take_opaque, take_word};
use crate::property::{take_set, take_subset};
use crate::reject::Reject;
use crate::types::Direction;
use crate::{cel_v2_03, rfc8166};

/// What an ERROR says. Where the versions share a code they share a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorBody {
    /// ERR_VERS, code 1: the version is not served; these are, both included.
    Version {
        /// The lowest version served.
        low: u32,
        /// The highest version served.
        high: u32,
    },
    /// ERR_CHUNK in version one, BAD_XDR in version two, code 2: the header was no good.
    Chunk,
    /// REPLY_RESOURCE, code 3, version two: the reply does not fit.
    ReplyResource {
        /// The first segment that is too short, from one; zero when it cannot be told (V2-11).
        segment: u32,
        /// The octets it would need; zero when it cannot be told.
        length: u32,
    },
    /// INVAL_PROC, code 4, version two: the procedure is not known.
    InvalProc,
    /// INVAL_OPTION, code 5, version two: the option is not known.
    InvalOption,
    /// SYSTEM, code 6, version two: something else; for good.
    System,
}

impl ErrorBody {
    /// Its `rdma_err`.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            ErrorBody::Version { .. } => cel_v2_03::ERR_VERS,
            ErrorBody::Chunk => cel_v2_03::ERR_BAD_XDR,
            ErrorBody::ReplyResource { .. } => cel_v2_03::ERR_REPLY_RESOURCE,
            ErrorBody::InvalProc => cel_v2_03::ERR_INVAL_PROC,
            ErrorBody::InvalOption => cel_v2_03::ERR_INVAL_OPTION,
            ErrorBody::System => cel_v2_03::ERR_SYSTEM,
        }
    }

    /// The two words that follow the code, for those codes that have them.
    #[must_use]
    pub const fn words(self) -> Option<(u32, u32)> {
        match self {
            ErrorBody::Version { low, high } => Some((low, high)),
            ErrorBody::ReplyResource { segment, length } => Some((segment, length)),
            _ => None,
        }
    }
}

/// What an OPTIONAL message is about: shown by `decode`, answered with INVAL_OPTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Optional<'m> {
    /// `rdma_optdir`.
    pub direction: Direction,
    /// `rdma_opttype`.
    pub option: u32,
    /// `rdma_optinfo`.
    pub info: &'m [u8],
}

impl Optional<'_> {
    /// Reads the body of a version-two OPTIONAL message; `None` when it is none, or cannot be
    /// read.
    #[must_use]
    pub fn peek(message: &[u8]) -> Option<Optional<'_>> {
        let (fixed, rest) = super::FixedHeader::take(message)?;
        if (fixed.vers, fixed.proc) != (cel_v2_03::VERSION, cel_v2_03::OPTIONAL) {
            return None;
        }
        take_optional(rest).ok()
    }
}

fn take_optional(rest: &[u8]) -> Result<Optional<'_>, Reject> {
    let (direction, rest) = take_word(rest).ok_or(Reject::Truncated)?;
    let direction = Direction::of(direction).ok_or(Reject::DirectionValue)?;
    let (option, rest) = take_word(rest).ok_or(Reject::Truncated)?;
    let (info, _) = take_opaque(rest).ok_or(Reject::Truncated)?;
    Ok(Optional {
        direction,
        option,
        info,
    })
}

/// Why an OPTIONAL message is refused: no option is known here, the property operations in
/// their older guise included (V2-01), and a Reply to what nobody asked is dropped (V2-18).
pub(super) fn refuse_optional(rest: &[u8]) -> Reject {
    match take_optional(rest) {
        Ok(optional) => match optional.direction {
            Direction::Call => Reject::UnknownOption,
            Direction::Reply => Reject::OptionReply,
        },
        Err(reject) => reject,
    }
}

/// Takes the body of an ERROR in the layout of version one.
pub(super) fn error_one(rest: &[u8]) -> Result<(ErrorBody, &[u8]), Reject> {
    let (code, rest) = take_word(rest).ok_or(Reject::ErrorTruncated)?;
    match code {
        rfc8166::ERR_VERS => take_pair(rest, |low, high| ErrorBody::Version { low, high }),
        rfc8166::ERR_CHUNK => Ok((ErrorBody::Chunk, rest)),
        _ => Err(Reject::ErrorCode),
    }
}

/// Takes the body of an ERROR in the layout of version two.
pub(super) fn error_two(rest: &[u8]) -> Result<(ErrorBody, &[u8]), Reject> {
    let (code, rest) = take_word(rest).ok_or(Reject::ErrorTruncated)?;
    match code {
        cel_v2_03::ERR_VERS => take_pair(rest, |low, high| ErrorBody::Version { low, high }),
        cel_v2_03::ERR_BAD_XDR => Ok((ErrorBody::Chunk, rest)),
        cel_v2_03::ERR_REPLY_RESOURCE => take_pair(rest, |segment, length| {
            ErrorBody::ReplyResource { segment, length }
        }),
        cel_v2_03::ERR_INVAL_PROC => Ok((ErrorBody::InvalProc, rest)),
        cel_v2_03::ERR_INVAL_OPTION => Ok((ErrorBody::InvalOption, rest)),
        cel_v2_03::ERR_SYSTEM => Ok((ErrorBody::System, rest)),
        _ => Err(Reject::ErrorCode),
    }
}

fn take_pair(
    rest: &[u8],
    body: impl FnOnce(u32, u32) -> ErrorBody,
) -> Result<(ErrorBody, &[u8]), Reject> {
    let (first, rest) = take_word(rest).ok_or(Reject::ErrorTruncated)?;
    let (second, rest) = take_word(rest).ok_or(Reject::ErrorTruncated)?;
    Ok((body(first, second), rest))
}

/// Takes the body of a property message; any other procedure is not known.
pub(super) fn take_properties<'m>(
    proc: u32,
    rest: &'m [u8],
    limits: &Limits,
) -> Result<(Body<'m>, &'m [u8]), Reject> {
    match proc {
        cel_v2_03::CONNPROP => {
            let (start, rest) = take_set(rest, limits)?;
            let (nochg, rest) = take_subset(rest)?;
            if !nochg.within(start.len()) {
                return Err(Reject::SubsetBeyondSet);
            }
            Ok((Body::ConnProp { start, nochg }, rest))
        }
        cel_v2_03::REQPROP => {
            take_set(rest, limits).map(|(want, rest)| (Body::ReqProp { want }, rest))
        }
        cel_v2_03::RESPROP => {
            let (done, rest) = take_subset(rest)?;
            let (rejected, rest) = take_subset(rest)?;
            let (other, rest) = take_set(rest, limits)?;
            let body = Body::RespProp {
                done,
                rejected,
                other,
            };
            Ok((body, rest))
        }
        cel_v2_03::UPDPROP => {
            take_set(rest, limits).map(|(now, rest)| (Body::UpdProp { now }, rest))
        }
        _ => Err(Reject::UnknownProcedure),
    }
}
