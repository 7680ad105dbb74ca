//! The fabric of hosts without RDMA devices: RDMAP (RFC 5040) on DDP (RFC 5041) on SCTP streams (RFC
//! 5043), driven by the lcores themselves.
//!
//! [`IwarpFabric`] is what a control thread sees, [`IwarpPort`] what an lcore polls. The rules of
//! the protocols are `rpcrdma-iwarp`'s, the associations are `rpcrdma-sctp`'s; this crate puts the
//! two together, and where they meet the arena.
//!
//! # Who does what
//!
//! ```text
//!   control: IwarpFabric                              lcore: IwarpPort
//!     listeners, names of hosts                         sites: SCTP endpoints, each with its
//!     makes SCTP endpoints (Stack)         ──►            associations, those with streams
//!     the stage of each connection        Notice,       queue pairs, bound to streams
//!     counts queue pairs                  Endpoint      STags, the outbox, completions
//!                                            ◄──
//!                                           Word
//! ```
//!
//! Control makes sockets and decides; an association lives on the port that has its socket, and no
//! other thread touches it. A connection is a session on a stream: several connections with one
//! peer share one association, and the end of one is no other's. Only the side that opened an
//! association begins sessions on it, so Initiates never cross.
//!
//! # The way of a connection
//!
//! | control | port | on the wire |
//! |---|---|---|
//! | `take`, the lcore adopts | RDMAP's end is made, receives go to it | |
//! | `connect` | the association is found or made; a stream that is idle; bound | Initiate, with the word of RFC 6581 |
//! | [`Event::Request`](rpcrdma_fabric::connect::Event::Request) | the stream waits | |
//! | `take`, the lcore adopts | RDMAP's end is made and bound to that stream | |
//! | `accept` / `reject` | the session stands / is over | Accept / Reject |
//! | `Established` at both | work may be posted | |
//!
//! # What happens, exactly
//!
//! **Done.** A Send or Write is done when SCTP has taken its last chunk, a Read when its data is
//! here. A Send of octets that are not in the arena is done at once: they are copied. What is
//! wrong with a Write is found by the peer, later, and ends the connection.
//!
//! **No receive.** There is no waiting for one: a message that meets none ends the connection (RFC
//! 5041 section 7.1), as on every iWARP device.
//!
//! **Exposures** are windows: an STag of one stream, with random bits and a random base, read or
//! written, never both, checked for all of that and for bounds before an octet moves. A peer may
//! invalidate them, and is told of by [`Received`](rpcrdma_fabric::Outcome::Received).
//!
//! **The end.** See `port/mod.rs`. An association that is lost ends its connections as
//! [`Transport`](rpcrdma_fabric::WorkError::Transport), without a word on the wire. One that
//! nobody uses is shut down after [`Settings::idle`].
//!
//! **Streams that do not come back.** A peer need not answer a Terminate (RFC 5043 section 6.2), and
//! then the stream is not this side's to use again. Where an association has no other left, who
//! wants a session is sent elsewhere: to an association from another address, and the old one ends
//! with its last session.
//!
//! **RFC 6581.** Sessions are asked for with its word, and without where a peer does not know it:
//! then this side has one RDMA Read outstanding at a time.
//!
//! # Limits on what a peer controls
//!
//! | what | by |
//! |---|---|
//! | associations, octets in flight | SCTP's settings |
//! | requests that wait | [`Settings::pending`] on an association, [`Settings::requests_max`] on a port; the excess gets Terminate |
//! | messages, Reads asked for | receives posted, the depth agreed on |
//! | what it may reach | its own stream's exposures |
//! | its share of the lcore | a burst of chunks, then the next stream's turn |
//! | private data | 508 octets, and the word of RFC 6581 |
//!
//! # Several lcores
//!
//! Each port hears each listener's address for itself (`SO_REUSEPORT`), with an SCTP of its own:
//! nothing is shared. See `port/mod.rs` for what that means when ports come and go. With ports of DPDK
//! (feature `dpdk`, `ByPort`) each lcore has an adapter, and an address, of its own instead.
//!
//! Start reading in `port/mod.rs`, then `port/heed.rs` (in) and `port/pump.rs` (out).
#![deny(unsafe_code)]

#[cfg(feature = "dpdk")]
mod by_port;
mod endpoint;
mod error;
mod fabric;
mod inbox;
mod native;
mod port;
mod settings;
mod stack;
#[cfg(any(test, feature = "stand-in"))]
pub mod stand_in;
mod udp;

#[cfg(feature = "dpdk")]
pub use by_port::ByPort;
pub use endpoint::Endpoint;
pub use error::Error;
pub use fabric::IwarpFabric;
pub use native::Native;
pub use port::IwarpPort;
pub use settings::Settings;
pub use stack::Stack;
pub use udp::InUdp;

/// The one device there is.
const DEVICE: &str = "iwarp-sctp";
