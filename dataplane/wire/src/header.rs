//! Parsing a transport header in place.
//!
//! [`parse`] checks every octet of a header and either refuses the message by name or hands out
//! views of it: a Read list is an array of 24-octet entries in memory, so it is viewed as one; a
//! Write chunk is an array of 16-octet segments. Nothing is copied, and after the check nothing
//! in a view can fail.
//!
//! It does so in two ways that must agree. `glance` is short straight code for the usual good
//! message; it is always inlined, because a header has more parts than there are registers, and
//! of those that its user does not look at nothing is then computed; and at the first doubt it
//! sees nothing. `judge` takes any message and is the one that knows what is wrong with it.
//!
//! What is judged here is what one message shows by itself: its shape, the receiver's limits,
//! and where its Read chunks go (`geometry`). What needs the connection's state (credits,
//! xids in flight, the version in force) is the engine's.
//!
//! Order of judgement, which decides the name when a message has several faults: length,
//! version, procedure, lists from front to back, direction, payload, then geometry.

mod chunks;
mod control;
mod geometry;
mod judge;
pub(crate) mod skim;

pub use chunks::{ChunkLists, WriteChunks, WriteList};
pub use control::{ErrorBody, Optional};

use crate::limits::Limits;
use crate::property::{PropertySet, PropertySubset};
use crate::reject::{Reject, Role};
use crate::types::{Direction, Handle, Procedure, Version, Xid};
use crate::{rfc8166, rpc};
use chunks::Lists;
use judge::judge;
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

    #[inline(always)]
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
    match glance(message, limits) {
        Some(header) => Ok(header),
        None => judge(message, limits),
    }
}

/// What `judge` gives, for an MSG with at most one segment in each list and with nothing wrong:
/// nearly all traffic. `None` says only that the message has to be judged.
#[inline(always)]
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

/// A header whose own octets are those of `message` before `rest`.
#[inline(always)]
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
