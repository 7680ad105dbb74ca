//! A DHCP client for IPoIB links (RFC 2131 as RFC 4390 uses it): an address for a link, kept as long as the server allows.
//!
//! What is of IPoIB: hardware type 32 and no hardware address, since 20 octets do not fit; the client is known by its client
//! identifier alone (RFC 4361); a server cannot send to it by its hardware address, so it has to be asked to broadcast
//! ([`message::Kind::broadcasts`]).
//!
//! It owns: the lease, and the timers that it lives by. It promises: no address is used that was not acknowledged, found free
//! and still leased; nothing of a reply counts that is not to the exchange under way. It never does input or output: datagrams,
//! time and randomness come in, datagrams and [`client::Change`]s come out.
//!
//! | | |
//! |---|---|
//! | [`message`] | the messages as octets |
//! | [`phase`] | the states and what leads from one to another; its table is `src/phase.md` |
//! | [`lease`] | a lease and its times |
//! | [`client`] | all of it |
#![forbid(unsafe_code)]

pub mod client;
pub mod lease;
pub mod message;
pub mod phase;
