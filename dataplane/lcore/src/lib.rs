//! The pinned poll loop: one thread, one port, one pool of memory, and the connections on it.
//!
//! An [`Lcore`] owns its connections outright and shares nothing: what control has to say comes
//! in by one bounded ring, what control has to know goes out by another ([`line`], [`Line`]).
//! It reaps a burst of completions a turn, has each connection's engine settle them, hands the events to
//! the connection's upper layer, looks at sockets now and then, and rings the doorbell once a
//! turn. Idle, it spins or sleeps as [`Idle`] says.
//!
//! Promises: after start-up no allocation, lock, log or system call per message; no connection
//! can starve another (bursts, steps and orders of one turn are bounded); whatever is lent by
//! control comes back; a full ring never makes it wait.
//!
//! Never: configuration, policy, connecting, blocking.
//!
//! With the feature `dpdk`, and once EAL was started, lcores are EAL's: see `eal.rs`.
//!
//! Start reading at [`Lcore::turn`] in `turn.rs`; the only unsafe code is that of `memory.rs`, and
//! of `eal/tract.rs` with the feature.

#![deny(unsafe_code)]

mod bell;
mod counters;
#[cfg(feature = "dpdk")]
pub mod eal;
mod foresee;
mod idle;
mod line;
mod memory;
mod obey;
mod queue;
mod refusals;
mod regions;
mod report;
mod ring;
mod seats;
mod settle;
mod snapshot;
mod sockets;
mod thread;
mod turn;

pub use bell::Bell;
pub use counters::LoopCounters;
pub use idle::Idle;
pub use line::{Line, Link, NotTaken, Places, line};
pub use memory::stock;
pub use refusals::{KEPT, KEPT_BYTES, Refusal, Refusals};
pub use regions::{Regions, Shares};
pub use ring::{Ending, Notice, SeatOrder, Session};
pub use seats::{ConnectionNumber, MAX_SEATS, SeatId};
pub use snapshot::{Credits, Row, Snapshot};
pub use thread::{Exit, Running, spawn};
pub use turn::Lcore;
