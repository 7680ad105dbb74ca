//! SCTP associations as one lcore drives them: no thread of their own, no waiting.
//!
//! [`Llp`] is what the layer above asks of SCTP (the lower layer protocol of RFC 5041). Behind it
//! are [`Usrsctp`]: libusrsctp, with packets in UDP (RFC 6951) on an ordinary socket, or by a port
//! of DPDK (feature `dpdk`); and [`KernelSctp`]: the kernel's, natively or in UDP, where it has the
//! module.
//!
//! # Two lcores in one process
//!
//! libusrsctp keeps all it knows in global variables, and takes locks around them. An endpoint
//! here has a copy of the library of its own (`usrsctp-sys` loads as many as there are endpoints,
//! and gives them to later ones when endpoints go), so what one lcore does is nothing to another:
//! no lock is shared, and no timer of one runs on the other's thread. An endpoint may move
//! between threads; it is used by one at a time, which the borrow checker sees to.
//!
//! # What a peer may cost
//!
//! INITs are answered from the library's cookie without a record of any kind. Associations are
//! limited by places ([`Settings::associations`]), octets on their way to here by
//! [`Settings::receive_bytes`], work of a turn by a number of batches. Messages that come before
//! an association is up are held up to a number. What IPsec would keep away is the operating
//! system's to keep away (RFC 5043 section 13): packets in UDP are neither authenticated nor
//! encrypted.
//!
//! Start reading at [`Llp`]; then `usrsctp/mod.rs`, an essay, and `usrsctp/turn.rs`.

#![deny(unsafe_code)]

mod carriage;
mod checksum;
mod discards;
#[cfg(feature = "dpdk")]
mod dpdk;
mod frames;
mod kernel;
mod llp;
mod notice;
mod roster;
mod settings;
mod udp;
mod usrsctp;

pub use discards::{DISCARDS, Discards};
#[cfg(feature = "dpdk")]
pub use dpdk::{EtherPort, PortPlan, Ports};
pub use frames::Frames;
pub use kernel::KernelSctp;
pub use llp::{AbortCause, AssociationId, Error, Event, LEAST_CHUNK, Llp, Reason, Refused};
pub use settings::{ADAPTATION_DDP, ENCAPSULATION_PORT, NFS_RDMA_PORT, Settings};
pub use usrsctp::{Counts, Usrsctp};
