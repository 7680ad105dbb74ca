//! Handing raw objects to a port, with what keeps them alive.

#![expect(unsafe_code, reason = "promises about a foreign interface's objects")]

use crate::expose::{Regions, Registrar, Site};
use crate::object::Objects;
use crate::port::{Calls, Poller};
use rpcrdma_fabric::arena::Arena;
use std::any::Any;
use std::sync::Arc;

/// The one poller of a port's completion queue. The port's inbox keeps the objects, and is
/// dropped after the poller.
pub(super) fn poller(objects: &Objects, invalidating: u32, calls: Calls) -> Poller {
    let (queue, channel) = (objects.queue.queue(), objects.queue.channel());
    // SAFETY: kept as just said; the channel was made for this queue and reads without waiting;
    // this is called once for each port.
    unsafe { Poller::new(queue, channel.0, invalidating, calls) }
}

/// What a port's short-lived regions stand on.
pub(super) fn keeper(objects: &Arc<Objects>, arena: &Arc<Arena>) -> Arc<dyn Any + Send + Sync> {
    Arc::new((Arc::clone(objects), Arc::clone(arena)))
}

/// The short-lived regions of a new port.
pub(super) fn join(registrar: &Registrar, site: Site, count: u32) -> Regions {
    // SAFETY: the keeper of the site is that of above: it has the domain, and the arena that
    // address and octets are of.
    unsafe { registrar.join(site, count) }
}
