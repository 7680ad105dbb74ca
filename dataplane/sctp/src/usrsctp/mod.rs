//! SCTP of libusrsctp, with packets in UDP (RFC 6951).
//!
//! One endpoint is one UDP socket, one socket of the library's in a copy of its own, and any
//! number of associations, one for each UDP address that a peer has. Packets enter the library by
//! its packet interface (`AF_CONN`) and leave it by a callback; both sides of the UDP socket are
//! worked in batches.
//!
//! # Paths
//!
//! To the library a path is a pointer that it never follows. It is given a keyed hash of the
//! peer's UDP address: the same for an INIT and for the COOKIE-ECHO that follows, so nothing has to be
//! kept between them and INITs cost their sender more than us; and part of what the cookie
//! authenticates, so the cookie is good for the address that it was sent to and for no other. A
//! path gets a record when an association comes up on it. A peer whose UDP port changes while an
//! association is up (a rebinding NAT) is another path: the association is lost, and the peer asks
//! for another one.
//!
//! # Traps of the library, and what is done about them
//!
//! - Messages come before the adaptation indication, or before the association is said to be up,
//!   when the peer sends them along with its COOKIE-ECHO: they are held until the packet has been
//!   worked off, which is when the indication is known, or known to be missing.
//! - `SCTP_DISABLE_FRAGMENTS` compares with a size that lacks the common header: chunks are
//!   measured here, and the option is left off so that SCTP fragments where a path is too narrow
//!   for the least segment.
//! - The path MTU can be lowered, never raised, once an association is there, and also sets the
//!   first congestion window: it is set on the socket before each association comes to be.
//! - Its checksum is a table's work: it is switched off, and computed here with the processor's
//!   instruction.
//! - Its clock is told the time: [`crate::Llp::deadline`] is never far away while there are
//!   associations.

#[expect(unsafe_code, reason = "callbacks of a foreign interface")]
mod desk;
mod endpoint;
#[expect(unsafe_code, reason = "memory of a foreign allocator")]
mod parcel;
#[expect(unsafe_code, reason = "calls of a foreign interface")]
mod stack;
mod turn;

pub use endpoint::{Counts, Usrsctp};
