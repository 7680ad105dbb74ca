//! The connection manager: ids, its events, and the way of one connection.
//!
//! Start with [`stage`]: what follows what.

mod address;
mod channel;
mod event;
mod identifier;
mod parameters;
mod reason;
mod stage;

pub(crate) use address::Address;
pub(crate) use channel::Channel;
pub(crate) use event::{Happening, Offer, What};
pub(crate) use identifier::Identifier;
pub(crate) use parameters::{Most, Parameters};
pub(crate) use reason::to_peer;
pub(crate) use stage::{Input, Parting, Stage};
