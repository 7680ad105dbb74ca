//! What goes back for a refused message.
//!
//! Two things decide: the version and procedure that the message claims, and what its receiver
//! is for it. A responder tells the requester what was wrong; a requester never answers a bad
//! Reply (V1-05), because nobody waits for that answer. Errors are never answered at all
//! (V1-04, V2-12), and ERR_VERS goes back whatever the role, because in a version that cannot
//! be read there is no telling.

use super::Reject;
use crate::header::skim::skim;
use crate::header::{ErrorBody, FixedHeader};
use crate::octets::peek_word;
use crate::types::{Direction, Version};
use crate::{cel_v2_03, rfc8166, rpc};

/// What the receiver of a message is, for that message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The message is a Call, or stands on its own: its xid is the sender's.
    Responder,
    /// The message is a Reply or an error: its xid is ours.
    Requester,
}

/// What goes back for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Nothing: the message is good.
    None,
    /// Nothing: the message is dropped and counted.
    Drop,
    /// ERR_VERS, with the versions served.
    ErrVers,
    /// ERR_CHUNK (version one).
    ErrChunk,
    /// BAD_XDR (version two).
    BadXdr,
    /// INVAL_PROC (version two).
    InvalProc,
    /// INVAL_OPTION (version two).
    InvalOption,
    /// SYSTEM (version two).
    System,
    /// REPLY_RESOURCE (version two).
    ReplyResource {
        /// The first segment that is too short, from one; zero when it cannot be told (V2-11).
        segment: u32,
        /// The octets it would need; zero when it cannot be told.
        length: u32,
    },
}

impl Answer {
    /// Its name in `decode` and in logs: the specifications' own, and `none` and `drop`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Answer::None => "none",
            Answer::Drop => "drop",
            Answer::ErrVers => "ERR_VERS",
            Answer::ErrChunk => "ERR_CHUNK",
            Answer::BadXdr => "BAD_XDR",
            Answer::InvalProc => "INVAL_PROC",
            Answer::InvalOption => "INVAL_OPTION",
            Answer::System => "SYSTEM",
            Answer::ReplyResource { .. } => "REPLY_RESOURCE",
        }
    }

    /// The error to send, for [`crate::emit_error`]; `None` when nothing goes back. `low` and
    /// `high` are the versions served, both included.
    #[must_use]
    pub const fn error(self, low: u32, high: u32) -> Option<ErrorBody> {
        match self {
            Answer::None | Answer::Drop => None,
            Answer::ErrVers => Some(ErrorBody::Version { low, high }),
            Answer::ErrChunk | Answer::BadXdr => Some(ErrorBody::Chunk),
            Answer::InvalProc => Some(ErrorBody::InvalProc),
            Answer::InvalOption => Some(ErrorBody::InvalOption),
            Answer::System => Some(ErrorBody::System),
            Answer::ReplyResource { segment, length } => {
                Some(ErrorBody::ReplyResource { segment, length })
            }
        }
    }
}

/// What goes back for `message`, refused for `reject` by a receiver that is its `role`.
///
/// Only the version is read from the message.
#[must_use]
pub fn answer(reject: Reject, message: &[u8], role: Role) -> Answer {
    match reject {
        Reject::Short
        | Reject::Done
        | Reject::ErrorToResponder
        | Reject::ErrorTruncated
        | Reject::ErrorCode
        | Reject::ErrorVersion
        | Reject::ErrorTrailing
        | Reject::OptionReply => Answer::Drop,
        Reject::UnknownVersion => Answer::ErrVers,
        _ if role == Role::Requester => Answer::Drop,
        _ => match FixedHeader::peek(message).and_then(|fixed| Version::of(fixed.vers)) {
            Some(Version::One) => Answer::ErrChunk,
            Some(Version::Two) => match reject {
                Reject::UnknownProcedure => Answer::InvalProc,
                Reject::UnknownOption => Answer::InvalOption,
                _ => Answer::BadXdr,
            },
            None => Answer::Drop,
        },
    }
}

/// What the receiver of `message` is, as far as the message tells; a responder where it does
/// not. For one whose side of the connection never gets Calls, [`told_role`] is the better
/// question.
#[must_use]
pub fn role_of(message: &[u8]) -> Role {
    told_role(message).unwrap_or(Role::Responder)
}

/// What the receiver of `message` is; `None` where the message does not tell, which in version
/// one is every MSG and NOMSG whose lists cannot be walked.
///
/// Version two says it in `rdma_direction`. Version one says it in the RPC message's type, and
/// of a NOMSG by its shape: a Reply has no Read list and a Reply chunk (RFC 8166 section 4.3.1).
#[must_use]
pub fn told_role(message: &[u8]) -> Option<Role> {
    let fixed = FixedHeader::peek(message)?;
    // ERROR is number 4 in every version (RFC 8166 section 4.2).
    if fixed.proc == rfc8166::ERROR {
        return Some(Role::Requester);
    }
    let direction = match Version::of(fixed.vers)? {
        Version::One => direction_one(fixed.proc, message)?,
        Version::Two => direction_two(fixed.proc, message)?,
    };
    Some(match direction {
        Direction::Call => Role::Responder,
        Direction::Reply => Role::Requester,
    })
}

fn direction_one(proc: u32, message: &[u8]) -> Option<Direction> {
    let lists = skim(message.get(FixedHeader::BYTES..)?)?;
    match proc {
        rfc8166::MSG => rpc::peek(lists.payload).map(|(_, direction)| direction),
        rfc8166::NOMSG if lists.reads == 0 && lists.reply => Some(Direction::Reply),
        rfc8166::NOMSG => Some(Direction::Call),
        _ => None,
    }
}

fn direction_two(proc: u32, message: &[u8]) -> Option<Direction> {
    match proc {
        cel_v2_03::MSG | cel_v2_03::NOMSG | cel_v2_03::OPTIONAL => {
            Direction::of(peek_word(message, FixedHeader::BYTES)?)
        }
        // The one control message whose xid is the receiver's (V2-14).
        cel_v2_03::RESPROP => Some(Direction::Reply),
        _ => Some(Direction::Call),
    }
}
