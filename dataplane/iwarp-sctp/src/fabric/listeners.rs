//! Where peers are heard.
//!
//! A listener is one address, and one SCTP endpoint there on each port. The first is made when it
//! is asked for, so that an address that cannot be had is known at once; where there is no port
//! yet, it waits for one.

use super::IwarpFabric;
use crate::error::Error;
use crate::stack::Stack;
use rpcrdma_fabric::connect::ListenerId;
use std::net::{IpAddr, SocketAddr};

/// A listener.
#[derive(Debug)]
pub(super) struct Listener<L> {
    /// The address with its port filled in.
    address: SocketAddr,
    /// The SCTP endpoint that no port has yet.
    spare: Option<L>,
}

impl<L> Listener<L> {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// An SCTP endpoint for another port.
    pub(super) fn site<S: Stack<Llp = L>>(&mut self, stack: &mut S) -> Result<L, Error> {
        match self.spare.take() {
            Some(llp) => Ok(llp),
            None => Ok(stack.listen(self.address)?.0),
        }
    }
}

/// An address in this fabric's form. An IPv4 address within IPv6 is taken as what it is.
pub(super) fn parse(address: &str) -> Result<SocketAddr, Error> {
    let parsed: SocketAddr = address
        .parse()
        .map_err(|_| Error::Address(address.to_owned()))?;
    Ok(match parsed.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, parsed.port()),
        IpAddr::V6(_) => parsed,
    })
}

impl<S: Stack> IwarpFabric<S> {
    pub(super) fn add_listener(&mut self, address: &str) -> Result<ListenerId, Error> {
        let (llp, address) = self.stack.listen(parse(address)?)?;
        let id = ListenerId(self.small_number());
        let spare = Some(llp);
        self.listeners.insert(id, Listener { address, spare });
        if let Err(error) = self.add_listener_to_ports(id) {
            self.listeners.remove(&id);
            return Err(error);
        }
        Ok(id)
    }
}
