//! Finding appliances by multicast: who serves this RPC program over RDMA, and where?
//!
//! The question is standard rpcbind version 4 (RFC 1833 section 2.2), RPCBPROC_GETADDRLIST, in a UDP datagram to a group that the
//! appliances of a link have joined. Who serves the program answers with its universal addresses (RFC 5665), netids
//! `rdma` and `rdma6`; everybody else is silent, as with any broadcast call (RFC 5531 section 8.4.3).
//!
//! It owns: what is asked, what is answered, and the list of who answered. It promises: no answer to what is no call for it, and
//! to none beyond its rate; an answer counts only if it is to the question that was asked last, and its xid cannot be guessed;
//! no place is told or believed that another host does not get to; every limit is the reader's own. It never does input or output,
//! and takes time and randomness as arguments.
//!
//! | | |
//! |---|---|
//! | [`universal`] | universal addresses, RFC 5665 section 5.2 |
//! | [`rpcbind`] | the calls and replies as octets |
//! | [`answer`] | the appliance that is asked |
//! | [`seek`] | the back gateway that asks: the table of its states is there |
//! | [`rate`] | how many in a second |
#![forbid(unsafe_code)]

pub mod answer;
pub mod rate;
pub mod rpcbind;
pub mod seek;
pub mod universal;
