//! RDMA without an RDMA device: RDMAP (RFC 5040) on DDP (RFC 5041) on SCTP streams (RFC 5043), as
//! state machines without I/O and without a clock.
//!
//! What it owns: every octet between an upper layer's message and an SCTP chunk, in both
//! directions; who may place what where; the order in which things count. What it promises: no
//! octet is placed that a check has not let pass, whatever a peer sends; each piece of work is
//! told of once and in order; each session ends once, for one reason. What it never does:
//! allocate, lock or panic for a chunk (but to keep a request that comes before it is known what
//! the peer speaks); wait; read a clock; look at memory that a peer may write.
//!
//! # How it is built
//!
//! ```text
//!    upper layer   post_receive, send, write, read            Event: Received, Done, Failed, ...
//!    ------------------------------------------------------------------------------------------
//!    rdmap         Endpoint: works, receives, reads, answers      one end of one RDMAP stream
//!    ddp           headers, segmentation, queues, what is whole, the order of submission
//!    session       Stream: Initiate ... Terminate, DDP-SSN        one DDP stream, many sessions
//!                  Association: its streams, what the peer speaks
//!    ------------------------------------------------------------------------------------------
//!    lower layer   Lower::send                                Association::receive
//! ```
//!
//! [`StagTable`] is beside them, one for all streams of an lcore: who may reach what. [`Memory`] is
//! what spans name.
//!
//! # Life of a chunk
//!
//! In: length, DDP-SSN, phase ([`session`]); then header, opcode, queue or STag, bounds, and the
//! payload goes to its place, in whatever order chunks come (`rdmap/endpoint/place.rs`). What is
//! left to do in the chunk's turn is four bits in a table (`ddp/order.rs`); when all before it are
//! there, it is done: a message is delivered, an STag invalidated, a Read answered
//! (`rdmap/endpoint/deliver.rs`).
//!
//! Out: one segment at a time is decided on, written straight into the layer below's memory, and
//! counted only if that layer took it (`rdmap/endpoint/emit.rs`, `session/stream/transmit.rs`).
//!
//! # States
//!
//! | machine | states | where |
//! |---|---|---|
//! | DDP stream | Idle, Initiating, Abandoned, Pending, Accepting, Open, Closing, Closed, Lost | [`Phase`], `tests/phases/stream.txt` |
//! | tagged buffer | Free, Open, Invalidated | `stag.rs` |
//! | association | not known what it speaks, DDP, gone | `session/association.rs` |
//!
//! # Failure answers
//!
//! | what | answer |
//! |---|---|
//! | the peer breaks a rule of RDMAP or DDP | its own name and counter ([`Reject`]); an RDMAP Terminate with layer, type, code and headers; the session's Terminate |
//! | the peer breaks a rule of the session | the same, with the one code that says "this stream"; without an Accept the session's Terminate alone |
//! | one request too many | the session's Terminate; the upper layer never hears of it |
//! | the peer's Terminate, of either kind | work fails; the session's Terminate |
//! | chunks of a session that is over | counted, not looked at |
//! | no room below | nothing has happened; the same again later |
//! | 32767 chunks sent, and the first of them may be missing | nothing is sent until all have arrived |
//! | the association is lost | every stream is told, nothing is sent |
//! | the upper layer out of turn | [`Misstep`] or `Refused`, and nothing has happened |
//!
//! One stream's end is no other's.
//!
//! # Limits on what a peer controls
//!
//! Memory of a stream is had when an endpoint is made and bound; none of it grows. Before that a
//! request costs nothing but its place among [`Settings::pending`]. A message is delivered only if
//! every octet of it came exactly once (`ddp/assembly.rs`), so no peer is shown, or has acted on,
//! what a buffer held before. Reads of the peer's are answered up to the number agreed on, and
//! take turns with this side's own work.
//!
//! # What the layer below has to do
//!
//! Whoever carries the chunks, a library, the kernel or a packet driver, fills [`Lower`] and
//! makes these calls:
//!
//! | when | call |
//! |---|---|
//! | the association is up | [`Association::new`], with both numbers of streams: it asks for equal ones |
//! | the peer's adaptation parameter is known, or that there is none | [`Association::indication`] |
//! | a chunk came | [`Association::receive`], each once, whole, in any order; then [`Association::transmit`] |
//! | room again after [`Flow::Busy`] | [`Association::transmit`] |
//! | everything sent has been acknowledged, and a stream [awaits](Association::awaits_dry) that | [`Association::dry`]; then [`Association::transmit`] |
//! | the association is gone | [`Association::lost`] |
//!
//! And it promises:
//!
//! - INIT and INIT-ACK carry [`session::ADAPTATION_DDP`], and ask for as many streams one way as
//!   the other (RFC 5043 sections 5.1 and 8). An association for which `new` or `indication`
//!   gives a [`Refusal`] is aborted.
//! - What it hands to [`Association::receive`] need not have been unordered. A peer must send
//!   nothing else (section 10), but an ordered chunk has a DDP-SSN as well, and that alone is
//!   looked at: such a chunk can only come late, so refusing it would gain nothing.
//! - Every chunk is sent unordered, and none is held back to be bundled: [`Ppid::Segment`] and
//!   [`Ppid::Control`] go into the chunk's payload protocol identifier in network byte order
//!   (sections 5.2, 10 and 11.2).
//! - [`SegmentBytes`] leaves room for SCTP's header, its data chunk's, the DDP-SSN and some
//!   control chunk in one packet; SCTP fragments only where IP would have to, and what it
//!   fragmented arrives here as one chunk (section 9). Chunks are covered by CRC32c.
//! - What [`Lower::send`] took arrives, or the association is lost; it keeps no reference to
//!   what it was given. If it ran `fill` and then found no room, it says [`Busy`] all the same,
//!   and forgets the octets.
//! - One address at each end unless configured otherwise (section 7.2). IPsec is the operating
//!   system's (section 13).
//!
//! # What the layer above has to do
//!
//! A port for this fabric maps a queue pair to a stream of an association and keeps a list of the
//! streams that have something to send. It gives each session an [`Owner`] that it never uses
//! again; checks spans against the arena when work is posted, and never lets go of one before
//! its event; reclaims what [`Event::Received`] says was invalidated; closes what it opened
//! ([`StagTable::close_all`]) when a session has ended, before the memory is used for anything
//! else. Octets that are not in the arena are copied there first: a message here is of spans. Only
//! the end that opened the association begins sessions on it: Initiates that cross end both.
//! A peer need not answer a Terminate with its own, and then the stream is not this side's to use
//! again: when no stream is idle and [`Association::unanswered`] is not zero, the layer above lets
//! the sessions that are left come to their ends, the association too, and opens another.
//! A peer that turns an enhanced request away has been asked again without the word when that is
//! told of ([`End::TurnedAway`]).
//!
//! Start reading in `session/phase.rs`, then `session/stream/receive.rs`, then
//! `rdmap/endpoint/mod.rs`.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::panic
    )
)]

pub mod ddp;
mod event;
mod local;
mod lower;
pub mod rdmap;
mod reject;
mod ring;
pub mod session;
mod stag;

pub use event::{End, Event};
pub use local::{Local, Memory};
pub use lower::{Busy, Lower, Ppid, SegmentBytes, StreamId};
pub use rdmap::{Endpoint, Outfit, Terminate};
pub use reject::{Answer, Code, Reject};
pub use session::{Association, Depths, Flow, Indication, Misstep, Phase, Refusal, Settings};
pub use stag::{Denied, Domain, Owner, Party, Scope, Stag, StagTable, Violation};
