//! Datagrams on a link of Ethernet: what a host without an operating system's network does to have
//! UDP, and nothing else.
//!
//! It owns the addresses of one station, what it knows of its neighbours, and every header around
//! a datagram. It promises that nothing a frame says is believed before it was checked, that each
//! frame refused is counted by its reason, and that memory is bounded whatever comes. It never
//! reads a clock, sends, allocates for a frame, or panics: time comes in, frames and requests go
//! out as values.
//!
//! # A frame's way
//!
//! ```text
//!   in   frame ──► Link::take ──► a datagram: from whom, to which port, which of its octets
//!                            └──► an answer to send: ARP reply, neighbour advertisement, echo
//!   out  datagram ──► Link::dispatch ──► the way to it: Link::write_head, and it goes
//!                                   └──► held, until the neighbour has answered Link::requests
//! ```
//!
//! # What it does of which standard
//!
//! ARP (RFC 826) with the limits of RFC 1122 section 2.3.2; neighbour discovery for an address
//! that it was given (RFC 4861 sections 7.1 to 7.3; no routers, no autoconfiguration); IPv4
//! without fragments and options (RFC 791, RFC 1122); IPv6 without extension headers (RFC 8200);
//! UDP with its checksum (RFC 768); echoes of ICMP (RFC 792), so that an operator can see whether the
//! station is there.
//!
//! Start reading at [`Link`]; `arrive.rs` has what is checked, `neighbour.rs` the states of a
//! neighbour.

#![forbid(unsafe_code)]

mod arrive;
mod cache;
mod depart;
mod link;
mod neighbour;
mod refused;
mod short;
mod station;
mod sum;

pub use arrive::{Arrival, Datagram};
pub use depart::HEAD_MAX;
pub use link::{Dispatch, Link, Way};
pub use refused::{Counts, Refused};
pub use short::Short;
pub use station::{Mac, Station, Unfit};
