//! An RDMA fabric inside one process, with the semantics of a reliable-connection queue pair.
//!
//! [`MemoryFabric`] is what a control thread sees, [`MemoryPort`] what an lcore polls. Start
//! reading in `port.rs`; the three things that make it go are `ring.rs` (messages), `window.rs`
//! (who may reach what) and `barrier.rs` (sleeping without missing anything).
//!
//! # How it is built
//!
//! Between each ordered pair of ports that have connections there is one ring with one writer
//! and one reader. A Send is copied into the ring by the sender's thread and out of it, into the
//! posted receive, by the receiver's; so a Send whose peer has a receive is done when the call
//! returns. RDMA Read and Write are one copy between the two arenas, in the poster's thread,
//! under a use count of the peer's window. No lock is taken on the way of a message, and no
//! queue pair is polled: a reap looks at the rings, and at short lists of what needs looking
//! after, so a thousand idle connections cost nothing.
//!
//! # What happens, exactly
//!
//! **Order.** Messages of a queue pair meet the peer's receives in the order of both. What
//! cannot be done at once waits in the queue pair's send queue, and everything posted later
//! waits behind it; completions of what waited come in that order. A full send queue, or no
//! memory for the copy of a message that must wait, is `Busy`. `retire` does not wait: it acts at
//! once.
//!
//! **No receive.** The receiver publishes how many receives it has posted and the length of the
//! shortest; the sender counts against that. Without a receive the Send waits and is tried
//! again by each reap, for ever, or a set number of times: then it fails with `NotReady`.
//!
//! **Length.** A message no longer than the shortest posted receive fits wherever it arrives.
//! A longer one is sent all the same, but is done only when the receiver has said that the
//! receive it met was long enough. If it was not: `LocalLength` there, `RemoteInvalid` here, the
//! connection is over, and nothing of it was written.
//!
//! **Access.** A handle is checked for its random part, the connection and side it was opened
//! for, the right (Read or Write), and its bounds, in 64 bits. Any failure is `RemoteAccess` at
//! the poster and ends the connection; the owner of the window sees `Disconnected`. A port is
//! one protection domain; a window belongs to one side of one connection, which is narrower.
//!
//! **Invalidation.** Send With Invalidate closes the peer's window before the message can be
//! seen. From then on no access begins; `retired_by_peer` makes the window free for reuse once
//! none is under way. A wrong handle is `RemoteAccess`, and the message is not sent. A local
//! `retire` is `Done` when nobody is inside, else `Pending` until then. Retiring what is not open
//! is `LocalProtection` and ends the connection, except on a queue pair in error, where it is
//! `Done`.
//!
//! **The end.** Whoever ends a connection (`disconnect`, failed work, a dropped endpoint, a
//! dropped port) flushes its own work at once. The other side first gets every message that was
//! in the ring, then its flush, then `Disconnected`, once on each side. After the end has come
//! nothing is taken from either side, even before it has been reaped. A queue pair's number may
//! be used again after `destroy`: records carry a generation, and late ones are dropped.
//!
//! **A dead lcore.** Dropping a port ends its connections and returns only when no access to its
//! arena is under way.
//!
//! **A hostile peer** reaches this fabric only by these calls, so what it controls is bounded
//! by them: ring room, receives and parking memory by the settings, requests by a backlog,
//! private data by 512 octets. It can fill the ring between its port and ours; it cannot make
//! other ports' rings any fuller. Octets in the ring are never taken for records.
//!
//! **Datagrams.** Beside all that each clone of the fabric is a node of a subnet with UD queue pairs
//! and multicast groups, for control threads: `datagram/mod.rs`.
//!
//! # What checks it
//!
//! Beside the tests, the raw memory and the orderings are run under Miri, whose model of the
//! store buffers does not know words that are atomic in one lap and octets in another, and is
//! switched off:
//!
//! ```text
//! MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-disable-weak-memory-emulation" \
//!     cargo +nightly miri test -p rpcrdma-memory --lib ring::     (and window::)
//! ```
//!
//! # What it costs
//!
//! A message of up to 48 octets is one cache line on its way to the other core, and up to 112
//! are two. `cargo bench -p rpcrdma-memory` measures; [`rpcrdma_fabric::floor`] has the same for
//! others to compare with.

#![deny(unsafe_code)]

mod barrier;
mod bell;
#[expect(unsafe_code, reason = "raw memory is this module's job")]
mod copy;
mod datagram;
mod desk;
mod error;
mod fabric;
mod fault;
mod fifo;
mod lane;
mod link;
mod padded;
mod port;
mod queue_pair;
mod registry;
#[expect(unsafe_code, reason = "raw memory is this module's job")]
mod ring;
mod settings;
mod shared;
#[expect(unsafe_code, reason = "raw memory is this module's job")]
mod transfer;
mod window;

pub use bell::Waker;
pub use datagram::{LinkSettings, MemoryDatagrams};
pub use error::Error;
pub use fabric::MemoryFabric;
pub use port::MemoryPort;
pub use queue_pair::Endpoint;
pub use settings::{Faults, Settings};
