//! The connection manager: ids and its events. What follows what is in
//! [`rpcrdma_fabric::stage`].

mod address;
mod channel;
mod event;
mod identifier;
mod parameters;
mod reason;

pub(crate) use address::Address;
pub(crate) use channel::Channel;
pub(crate) use event::{GroupNews, Happening, Offer, What};
pub(crate) use identifier::Identifier;
pub(crate) use parameters::{Most, Parameters};
pub(crate) use reason::to_peer;
