//! Messages without chunk lists: most of those there are, seen as one block of words.
//!
//! An MSG whose three lists are absent has a header of fixed length in either version, and what
//! has to hold between its words and the first two of the RPC message behind it is a handful of
//! comparisons. [`Plain::peek`] makes them. It gives no reasons: whatever it does not see as
//! plain goes to [`parse`](crate::parse), which sees the same in a message that is plain, and
//! judges all others.

use crate::types::{Direction, Procedure, Version, Xid};

/// Octets of the longest header without chunk lists: that of version two.
pub const PLAIN_BYTES: usize = 36;
/// Octets of version one's.
const ONE_BYTES: usize = 28;

/// An MSG without chunk lists that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// Whose transaction.
    pub xid: Xid,
    /// Its version.
    pub version: Version,
    /// Credits asked for or granted, as sent.
    pub credits: u32,
    /// Whose xid it is.
    pub direction: Direction,
    /// Octets of the transport header: the RPC message is what follows.
    pub header_bytes: u32,
}

/// A word as it lies in the message.
type Word = [u8; 4];

/// No "one more", no handle, the procedure MSG.
const ZERO: Word = [0; 4];

impl Plain {
    /// Sees a message that is plain and in which nothing is wrong. `None` says only that it has
    /// to be parsed.
    #[inline]
    #[must_use]
    pub fn peek(message: &[u8]) -> Option<Plain> {
        let (words, _) = message.as_chunks::<4>();
        let (&[xid, vers, credits, procedure], rest) = words.split_first_chunk()?;
        let version = Version::of(u32::from_be_bytes(vers))?;
        let (absent, own, kind) = match version {
            Version::One => {
                let [lists @ .., own, kind] = rest.first_chunk::<5>()?;
                (*lists == [ZERO; 3], own, *kind)
            }
            Version::Two => {
                let [declared, handle_and_lists @ .., own, kind] = rest.first_chunk::<7>()?;
                let absent = *handle_and_lists == [ZERO; 4];
                (absent && declared == kind, own, *kind)
            }
        };
        let direction = Direction::of(u32::from_be_bytes(kind))?;
        (absent && procedure == ZERO && *own == xid).then_some(Plain {
            xid: Xid(u32::from_be_bytes(xid)),
            version,
            credits: u32::from_be_bytes(credits),
            direction,
            header_bytes: header_bytes(version),
        })
    }
}

/// Octets of the header of a plain message.
#[inline]
#[must_use]
pub const fn header_bytes(version: Version) -> u32 {
    match version {
        Version::One => 28,
        Version::Two => 36,
    }
}

/// The header of a plain message, in `room`.
#[inline]
pub fn emit_plain(
    room: &mut [u8; PLAIN_BYTES],
    version: Version,
    xid: Xid,
    credits: u32,
    direction: Direction,
) -> &[u8] {
    let kind = match version {
        Version::One => 0,
        Version::Two => direction.code(),
    };
    let procedure = Procedure::Msg.code();
    // Version one's header ends earlier, and the words where version two's has direction and
    // handle are its absent lists, like those behind them.
    let words = [xid.0, version.code(), credits, procedure, kind, 0, 0, 0, 0];
    let (places, _) = room.as_chunks_mut::<4>();
    for (place, word) in places.iter_mut().zip(words) {
        *place = word.to_be_bytes();
    }
    match version {
        Version::One => room.first_chunk::<ONE_BYTES>().map_or(&[], |octets| octets),
        Version::Two => room,
    }
}
