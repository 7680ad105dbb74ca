//! IP over InfiniBand for the control thread: links, multicast groups and neighbours as pure state machines, and the bytes
//! they speak.
//!
//! It owns: what is known of the subnet administrator (SA), of each link and its groups, of neighbours. It promises: every
//! failure of a group operation is told by kind, also of those that nobody waits for; no limit of a peer's choosing; time
//! and randomness come in as data. It never does input or output: bytes and commands go in, bytes and commands come out.
//!
//! | | |
//! |---|---|
//! | names | [`gid`], [`pkey`], [`qkey`], [`mtu`], [`mgid`] |
//! | bytes | [`mad`] (SA management datagrams), [`packet`] (encapsulation, ARP, neighbour discovery, IP, UDP) |
//! | machines | [`sa`] (transactions), [`link`] (bring-up), [`group`] (joins, cache), [`address`] (this node's own), [`neighbour`] (hosts), [`router`], [`node`] (all of them) |
//! | beside them | [`settings`], [`port`] (facts), [`trouble`] (failures by kind), [`small_sa`] (an SA for where there is none) |
//!
//! Start reading at [`node`]: what goes in, what comes out, what it believes and for how long. The tables of the machines are
//! in `tests/phases/` and are the documentation of them; `tests/sections/` has a test for each rule, by its section;
//! `tests/simulation/` runs nodes on a subnet that forgets, moves, loses and delays, from a seed.
//!
//! References are to draft-ietf-ipoib-link-multicast-04 ("link section 7"), RFC 4391 (encapsulation), RFC 4755 (connected
//! mode) and the InfiniBand Architecture Specification ("IBA 15.2.5.17").
#![forbid(unsafe_code)]

pub mod address;
pub mod gid;
pub mod group;
pub mod join;
pub mod link;
pub mod mad;
pub mod mgid;
pub mod mtu;
pub mod neighbour;
pub mod node;
pub mod packet;
pub mod pkey;
pub mod port;
pub mod qkey;
pub mod router;
pub mod sa;
pub mod settings;
pub mod small_sa;
pub mod time;
pub mod trouble;

mod rejects;
