//! ONC RPC call and reply headers (RFC 5531), as far as routing, direction and security flavour
//! need them.
//!
//! Nothing here judges a service: an unknown program, a denied reply, a flavour never heard of
//! all parse. What does not parse is what is cut short, or says that an authenticator is longer
//! than the 400 octets it may have (section 8.2).

use crate::emit::Octets;
use crate::octets::{padding, take_word};
use crate::types::{Direction, Xid};

/// `msg_type` (RFC 5531 section 9). The same two values as `rdma_direction`, on purpose.
pub type MessageType = Direction;

/// RPC version, the only one there is.
pub const RPC_VERSION: u32 = 2;
/// AUTH_NONE.
pub const AUTH_NONE: u32 = 0;
/// RPCSEC_GSS (RFC 2203).
pub const RPCSEC_GSS: u32 = 6;
/// Most octets of an authenticator's body (section 8.2).
pub const AUTH_BYTES: u32 = 400;
/// Octets of the head of a Call with AUTH_NONE, which is the shortest head.
pub const CALL_BYTES: usize = 40;
/// Octets of the head of an accepted Reply with AUTH_NONE.
pub const REPLY_BYTES: usize = 24;

const MSG_ACCEPTED: u32 = 0;
const MSG_DENIED: u32 = 1;
const SUCCESS: u32 = 0;
const GSS_VERSION: u32 = 1;
const GSS_DATA: u32 = 0;

/// The xid and type of an RPC message; `None` when it is shorter than those, or of neither type.
#[inline]
#[must_use]
pub fn peek(message: &[u8]) -> Option<(Xid, MessageType)> {
    match peek_type(message)? {
        (xid, Some(kind)) => Some((xid, kind)),
        _ => None,
    }
}

/// The xid of an RPC message and its type, where that is one there is.
#[inline]
pub(crate) fn peek_type(message: &[u8]) -> Option<(Xid, Option<MessageType>)> {
    let (xid, rest) = take_word(message)?;
    let (kind, _) = take_word(rest)?;
    Some((Xid(xid), Direction::of(kind)))
}

/// What RPCSEC_GSS does to the arguments and results of a Call (RFC 2203 section 5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GssService {
    /// They are as they would be without it.
    None,
    /// They are wrapped, with a checksum.
    Integrity,
    /// They are wrapped and encrypted.
    Privacy,
    /// A control message, or a credential that cannot be read: taken as the worst.
    Other,
}

/// The head of an RPC Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallHeader {
    /// Transaction.
    pub xid: Xid,
    /// `rpcvers`: 2, or a server answers RPC_MISMATCH.
    pub rpc_version: u32,
    /// Program number.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// Its procedure.
    pub procedure: u32,
    /// The credential's flavour.
    pub flavor: u32,
    /// What RPCSEC_GSS does here; `None` under any other flavour.
    pub gss: Option<GssService>,
    /// Where the arguments begin, octets from the start of the message.
    pub arguments: usize,
}

impl CallHeader {
    /// Reads the head of a Call; `None` when it is a Reply, or cannot be read.
    #[must_use]
    pub fn parse(message: &[u8]) -> Option<CallHeader> {
        let (xid, MessageType::Call) = peek(message)? else {
            return None;
        };
        let (_, rest) = message.split_at_checked(8)?;
        let (rpc_version, rest) = take_word(rest)?;
        let (program, rest) = take_word(rest)?;
        let (version, rest) = take_word(rest)?;
        let (procedure, rest) = take_word(rest)?;
        let (flavor, credential, rest) = take_auth(rest)?;
        let (_, _, rest) = take_auth(rest)?;
        Some(CallHeader {
            xid,
            rpc_version,
            program,
            version,
            procedure,
            flavor,
            gss: (flavor == RPCSEC_GSS).then(|| gss_service(credential)),
            arguments: message.len().saturating_sub(rest.len()),
        })
    }

    /// True when data items may be taken out of the arguments and results: never when GSS wraps
    /// them (RFC 8267 section 4.2.1 and RFC 8166 section 8.2.2: what is wrapped is not XDR any more).
    #[must_use]
    pub fn reducible(&self) -> bool {
        matches!(self.gss, None | Some(GssService::None))
    }
}

/// Reads `rpc_gss_cred_t`.
fn gss_service(credential: &[u8]) -> GssService {
    let words = || {
        let (version, rest) = take_word(credential)?;
        let (proc, rest) = take_word(rest)?;
        let (_sequence, rest) = take_word(rest)?;
        let (service, _) = take_word(rest)?;
        Some((version, proc, service))
    };
    match words() {
        Some((GSS_VERSION, GSS_DATA, 1)) => GssService::None,
        Some((GSS_VERSION, GSS_DATA, 2)) => GssService::Integrity,
        Some((GSS_VERSION, GSS_DATA, 3)) => GssService::Privacy,
        _ => GssService::Other,
    }
}

/// What became of a Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// MSG_ACCEPTED, with `accept_stat`: 0 is SUCCESS.
    Accepted(u32),
    /// MSG_DENIED, with `reject_stat`.
    Denied(u32),
}

/// The head of an RPC Reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader {
    /// Transaction.
    pub xid: Xid,
    /// What became of the Call.
    pub outcome: Outcome,
    /// Where the results (or what an error brings with it) begin, octets from the start of the
    /// message.
    pub results: usize,
}

impl ReplyHeader {
    /// Reads the head of a Reply; `None` when it is a Call, or cannot be read.
    #[must_use]
    pub fn parse(message: &[u8]) -> Option<ReplyHeader> {
        let (xid, MessageType::Reply) = peek(message)? else {
            return None;
        };
        let (_, rest) = message.split_at_checked(8)?;
        let (outcome, rest) = match take_word(rest)? {
            (MSG_ACCEPTED, rest) => {
                let (_, _, rest) = take_auth(rest)?;
                let (status, rest) = take_word(rest)?;
                (Outcome::Accepted(status), rest)
            }
            (MSG_DENIED, rest) => {
                let (status, rest) = take_word(rest)?;
                (Outcome::Denied(status), rest)
            }
            _ => return None,
        };
        Some(ReplyHeader {
            xid,
            outcome,
            results: message.len().saturating_sub(rest.len()),
        })
    }

    /// True when results follow.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.outcome == Outcome::Accepted(SUCCESS)
    }
}

/// Takes one `opaque_auth`: its flavour, its body, what is behind it.
fn take_auth(octets: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (flavor, rest) = take_word(octets)?;
    let (length, rest) = take_word(rest)?;
    if length > AUTH_BYTES {
        return None;
    }
    let (body, rest) = rest.split_at_checked(length as usize)?;
    let (_, rest) = rest.split_at_checked(padding(length))?;
    Some((flavor, body, rest))
}

/// Writes the head of a Call with AUTH_NONE: [`CALL_BYTES`] octets, returned. `None` when `buf`
/// is shorter.
#[must_use]
pub fn emit_call(
    buf: &mut [u8],
    xid: Xid,
    program: u32,
    version: u32,
    procedure: u32,
) -> Option<usize> {
    let mut out = Octets::new(buf);
    for word in [xid.0, MessageType::Call.code(), RPC_VERSION] {
        out.word(word);
    }
    for word in [program, version, procedure] {
        out.word(word);
    }
    // Credential and verifier: AUTH_NONE with an empty body, both.
    for word in [AUTH_NONE, 0, AUTH_NONE, 0] {
        out.word(word);
    }
    out.finish()
}

/// Writes the head of an accepted, successful Reply with AUTH_NONE: [`REPLY_BYTES`] octets,
/// returned. `None` when `buf` is shorter.
#[must_use]
pub fn emit_reply(buf: &mut [u8], xid: Xid) -> Option<usize> {
    let mut out = Octets::new(buf);
    for word in [xid.0, MessageType::Reply.code(), MSG_ACCEPTED] {
        out.word(word);
    }
    for word in [AUTH_NONE, 0, SUCCESS] {
        out.word(word);
    }
    out.finish()
}
