//! `rpcrdmad decode`: what the wire crate makes of one message given as hex.
//!
//! [`decode`] is a pure function from a line of text to a [`Decoded`], which is the JSON object
//! when serialised and the text for people when displayed. It judges nothing itself: what is
//! taken, why not, and what goes back all come from the crate that the engine uses, by the same
//! calls, with the same limits.

mod fields;
mod render;
#[cfg(test)]
mod tests;

use fields::{ErrorField, Properties, ReadChunk, SegmentField};
use rpcrdma_wire::{
    Answer, Body, Direction, ErrorBody, FixedHeader, Header, Limits, Optional, Reject, Role,
    Version, answer, emit_error, parse_as, role_of,
};
use serde::Serialize;

/// Credits in the errors that are shown: the least that may be granted. A connection puts its
/// own grant there; nothing else of an answer depends on more than the message.
pub const ANSWER_CREDITS: u32 = 1;

/// The versions that an ERR_VERS says are served.
const SERVED: (u32, u32) = (1, 2);

/// The name that stands in `reject` when a line is not hex at all.
pub const NOT_HEX: &str = "not-hex";
/// The name that stands in `reject` when a line is longer than any message.
pub const TOO_LONG: &str = "too-long";

/// How messages are judged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judge {
    /// What the receiver is; `None`: what the message says, or else a responder.
    pub role: Option<Role>,
    /// What it is prepared to take.
    pub limits: Limits,
}

/// What became of one line. The fields are the keys of the JSON object; what a message does not
/// have, or what could not be read of it, is null.
#[derive(Debug, Default, Serialize)]
pub struct Decoded {
    /// The message is good.
    pub accept: bool,
    /// Why it is not.
    pub reject: Option<&'static str>,
    /// What goes back: `none` for a good message, `drop`, or the name of an error.
    pub answer: Option<&'static str>,
    /// Its octets.
    pub answer_hex: Option<String>,
    /// `rdma_xid`.
    pub xid: Option<u32>,
    /// `rdma_vers`.
    pub version: Option<u32>,
    /// `rdma_credit`.
    pub credit: Option<u32>,
    proc: Option<fields::Proc>,
    direction: Option<&'static str>,
    /// `rdma_inv_handle` as sent, zero for none; version one has no such field.
    inv_handle: Option<u32>,
    reads: Option<Vec<ReadChunk>>,
    writes: Option<Vec<Vec<SegmentField>>>,
    reply: Option<Vec<SegmentField>>,
    error: Option<ErrorField>,
    option: Option<u32>,
    properties: Option<Properties>,
    /// Octets of the transport header.
    pub header_bytes: Option<usize>,
}

impl Decoded {
    /// What becomes of a line that is longer than any message.
    #[must_use]
    pub fn too_long() -> Self {
        Self {
            reject: Some(TOO_LONG),
            ..Self::default()
        }
    }

    /// The line held a message, good or not. A command that met one that did not has failed.
    #[must_use]
    pub fn is_message(&self) -> bool {
        self.reject != Some(NOT_HEX) && self.reject != Some(TOO_LONG)
    }
}

/// Decodes one line; `None` for a blank one, or one that is a comment (`#`).
#[must_use]
pub fn decode(line: &str, judge: &Judge) -> Option<Decoded> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    Some(match octets(line) {
        Some(message) => decode_message(&message, judge),
        None => Decoded {
            reject: Some(NOT_HEX),
            ..Decoded::default()
        },
    })
}

/// Decodes one message.
#[must_use]
pub fn decode_message(message: &[u8], judge: &Judge) -> Decoded {
    let role = judge.role.unwrap_or_else(|| role_of(message));
    let mut decoded = match parse_as(message, &judge.limits, role) {
        Ok(header) => accepted(&header),
        Err(reject) => refused(reject, message, role),
    };
    if let Some(fixed) = FixedHeader::peek(message) {
        decoded.xid = Some(fixed.xid.0);
        decoded.version = Some(fixed.vers);
        decoded.credit = Some(fixed.credits);
        decoded.proc = Some(fields::Proc::of(fixed.vers, fixed.proc));
    }
    decoded
}

fn accepted(header: &Header<'_>) -> Decoded {
    let mut decoded = Decoded {
        accept: true,
        answer: Some(Answer::None.name()),
        header_bytes: Some(header.header_bytes),
        ..Decoded::default()
    };
    match &header.body {
        Body::Msg(lists) | Body::NoMsg(lists) => {
            decoded.direction = Some(direction_name(lists.direction));
            let handle = lists.inv_handle.map_or(0, |handle| handle.0);
            decoded.inv_handle = (header.version == Version::Two).then_some(handle);
            decoded.reads = Some(fields::read_chunks(lists.reads));
            decoded.writes = Some(lists.writes.iter().map(fields::segments).collect());
            decoded.reply = lists.reply.map(fields::segments);
        }
        Body::Error(error) => {
            decoded.direction = Some(direction_name(Direction::Reply));
            decoded.error = Some(ErrorField::of(*error, header.vers));
        }
        body => decoded.properties = Properties::of(body),
    }
    decoded
}

fn refused(reject: Reject, message: &[u8], role: Role) -> Decoded {
    let answer = answer(reject, message, role);
    let optional = Optional::peek(message);
    Decoded {
        reject: Some(reject.name()),
        answer: Some(answer.name()),
        answer_hex: answer
            .error(SERVED.0, SERVED.1)
            .and_then(|error| answer_hex(message, error)),
        direction: optional.map(|optional| direction_name(optional.direction)),
        option: optional.map(|optional| optional.option),
        ..Decoded::default()
    }
}

/// The octets of the error that goes back for `message`.
fn answer_hex(message: &[u8], error: ErrorBody) -> Option<String> {
    let fixed = FixedHeader::peek(message)?;
    let mut buf = [0; 32];
    let bytes = emit_error(&mut buf, fixed.vers, fixed.xid, ANSWER_CREDITS, error)?;
    buf.get(..bytes).map(fields::hex)
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Call => "CALL",
        Direction::Reply => "REPLY",
    }
}

/// The octets that a line of hex digits stands for. White space between digits and `0x` before
/// the first are let pass.
fn octets(line: &str) -> Option<Vec<u8>> {
    let line = line.strip_prefix("0x").unwrap_or(line);
    let digits: Option<Vec<u8>> = line
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let (pairs, odd) = digits.as_deref()?.as_chunks::<2>();
    let octets = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    odd.is_empty().then_some(octets)
}
