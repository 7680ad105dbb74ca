//! Devices that come, go, and lose their links.
//!
//! A device that goes takes its ports and connections with it, and nothing else. Some kernels
//! wait with removing it until everything made of it is destroyed and its context closed, and
//! say nothing to a process that has no connection there. So it is looked once a second which
//! devices are there; and of one that is gone everything is given up as soon as its ports have
//! let go of it.
//!
//! # Nothing is said on a link that is down
//!
//! The connection manager says goodbye to a peer whenever a connection ends, at the latest when
//! its id is destroyed. Where the link is down that goes nowhere; and on rxe (Linux 6.12) it
//! puts the queue pair that all of its messages go by in error, for good: no connection is made
//! on that device any more. So of what ends while its link is down the queue pair is destroyed at
//! once, and the id only when the link is up again, or the device is gone.

use super::VerbsFabric;
use super::connections::Connection;
use crate::device::{self, Limits, LinkState, Share, is_shared, present};
use crate::error::{Error, Fault};
use crate::object::{Context, Device, Region, Rights};
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::connect::{self, DeviceChange, Event, PortId};
use rpcrdma_fabric::datagram::LinkChange;
use rpcrdma_fabric::numa;
use rpcrdma_fabric::stage::Input;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

/// Why a connection ends with its link.
pub(super) const LINK_DOWN: &str = "the link is down";

/// A device that was found.
#[derive(Debug)]
pub(crate) struct Known {
    /// As its descriptor is called.
    pub(super) number: u64,
    pub(crate) device: Arc<Device>,
    pub(crate) limits: Limits,
    /// With the other fabrics of this process.
    pub(super) share: Arc<Share>,
    node: Option<u32>,
    /// Nothing of it can be used any more.
    pub(super) gone: bool,
    /// Links that are down.
    down: Vec<u32>,
    /// Connections that are over, and whose peers are to hear of it when their link is up.
    unburied: Vec<(u32, Connection)>,
    /// Memory that is registered already: arenas of one tract share a region.
    regions: Vec<Weak<Region>>,
}

impl Known {
    /// A region over the tract of an arena, an earlier one if it is the same.
    pub(super) fn region(
        &mut self,
        arena: &Arc<Arena>,
        rights: Rights,
    ) -> Result<Arc<Region>, Fault> {
        self.regions.retain(|region| region.strong_count() > 0);
        let same = |region: &Arc<Region>| region.extent == arena.tract() && region.rights == rights;
        if let Some(region) = self.regions.iter().filter_map(Weak::upgrade).find(same) {
            return Ok(region);
        }
        let region = Arc::new(Region::new(&self.device, arena, rights)?);
        self.regions.push(Arc::downgrade(&region));
        Ok(region)
    }
}

impl VerbsFabric {
    pub(super) fn list_devices(&self) -> Vec<connect::Device> {
        let there = self.devices.iter().filter(|known| !known.gone);
        there
            .map(|known| connect::Device {
                name: known.device.name().to_owned(),
                node: known.node,
                up: known.down.len() < usize::from(known.limits.links),
                capabilities: known.limits.at_best(self.settings.expose),
            })
            .collect()
    }

    fn known(&self, context: Context) -> Option<&Known> {
        let is_it = |known: &&Known| !known.gone && known.device.context() == context;
        self.devices.iter().find(is_it)
    }

    pub(super) fn limits_of(&self, context: Context) -> Option<Limits> {
        self.known(context).map(|known| known.limits)
    }

    /// The device of a context that the manager has brought, one that came since included.
    pub(crate) fn device_of(&mut self, context: Context) -> Option<Arc<Device>> {
        if self.known(context).is_none() && self.settings.allows(&context.name(self.library)) {
            // One that cannot be used is as good as none.
            let _ = self.find_devices();
        }
        self.known(context).map(|known| Arc::clone(&known.device))
    }

    /// Takes note of all devices that are there, allowed, and not known: of those that can be
    /// used even where another cannot, which is the first error.
    pub(super) fn find_devices(&mut self) -> Result<(), Error> {
        self.leases.take(self.library);
        let mut found = Ok(());
        for context in self.leases.newest() {
            // One that is gone and not closed yet is on the list too, and stays gone.
            let met = |known: &Known| known.device.context() == context;
            if !self.devices.iter().any(met) && self.settings.allows(&context.name(self.library)) {
                found = found.and(self.add_device(context));
            }
        }
        found
    }

    fn add_device(&mut self, context: Context) -> Result<(), Error> {
        let device = Arc::new(Device::new(self.library, context)?);
        let limits = device::limits(&device)?;
        let number = super::look::CHANNEL + self.number() + 1;
        let share = Share::of(context, &self.bell);
        self.watch(context.events(), number)?;
        // Asked only now that what changes is told.
        let links = device::links(self.library, context, limits.links, &self.settings)?;
        let down = links.iter().filter(|link| link.state != LinkState::Active);
        let down: Vec<u32> = down.map(|link| u32::from(link.number)).collect();
        down.iter().for_each(|link| device.note_link(*link, true));
        self.devices.push(Known {
            number,
            node: device::node(device.name()),
            device,
            limits,
            share,
            gone: false,
            down,
            unburied: Vec::new(),
            regions: Vec::new(),
        });
        Ok(())
    }

    /// The device for a port: the one that is named, or of those with a link the first on the
    /// processor's node, or the first.
    pub(crate) fn choose_device(
        &self,
        name: Option<&str>,
        processor: Option<usize>,
    ) -> Result<&Known, Error> {
        let node = processor.and_then(numa::node_of_processor);
        let wanted =
            |known: &&Known| !known.gone && name.is_none_or(|name| name == known.device.name());
        let rank = |known: &&Known| {
            let near = known.node.is_some() && known.node == node;
            (self.has_link(known), near)
        };
        // The first of the best: `max_by_key` gives the last.
        let best = self.devices.iter().filter(wanted).rev().max_by_key(rank);
        best.ok_or_else(|| Error::NoDevice(name.unwrap_or("any").to_owned()))
    }

    pub(crate) fn links(&self, known: &Known) -> Vec<device::Link> {
        let context = known.device.context();
        device::links(self.library, context, known.limits.links, &self.settings).unwrap_or_default()
    }

    fn has_link(&self, known: &Known) -> bool {
        let links = self.links(known);
        links.iter().any(|link| link.state == LinkState::Active)
    }

    /// Where connections begun here come from, if the configuration says so.
    pub(super) fn source(&self, ipv4: bool) -> Result<Option<SocketAddr>, Error> {
        let Some(index) = self.settings.gid_index else {
            return Ok(None);
        };
        let links = self.devices.iter().filter(|known| !known.gone);
        let ip = links
            .flat_map(|known| self.links(known))
            .filter_map(|link| link.chosen[usize::from(!ipv4)]?.ip())
            .find(|ip| ip.is_ipv4() == ipv4);
        match ip {
            Some(ip) => Ok(Some(SocketAddr::new(ip, 0))),
            None => Err(Error::Unfit {
                device: format!("GID {index}"),
                lacks: "no device has an address of the peer's family there",
            }),
        }
    }

    /// A link is down: its connections end now, and not only when the transport gives up.
    pub(super) fn lose_link(&mut self, number: u64, link: u32) {
        self.note_change(number, link, LinkChange::Down);
        self.tell_change(number, DeviceChange::Down);
        let Some(known) = self.devices.iter_mut().find(|known| known.number == number) else {
            return;
        };
        known.down.retain(|down| *down != link);
        known.down.push(link);
        known.device.note_link(link, true);
        let context = known.device.context();
        let by_it = self.those(|it| it.context() == Some(context) && it.link() == Some(link));
        for id in by_it {
            self.feed(id, Input::Lost, || LINK_DOWN.to_owned());
        }
    }

    /// A link is up: peers hear what could not be said.
    pub(super) fn regain_link(&mut self, number: u64, link: u32) {
        if let Some(known) = self.devices.iter_mut().find(|known| known.number == number) {
            known.down.retain(|down| *down != link);
            known.unburied.retain(|(of, _)| *of != link);
            known.device.note_link(link, false);
        }
        self.note_change(number, link, LinkChange::Up);
        self.tell_change(number, DeviceChange::Up);
    }

    /// The link that a connection goes by is down.
    pub(super) fn is_down(&self, connection: &Connection) -> bool {
        let (Some(context), Some(link)) = (connection.context(), connection.link()) else {
            return false;
        };
        self.known(context)
            .is_some_and(|known| known.down.contains(&link))
    }

    /// Destroys a connection that is over, now or when that can be said. Of one that was begun here
    /// and not taken no peer knows, and there is no bound to how many of them come to their end
    /// while a link is down.
    pub(super) fn lay_down(&mut self, mut connection: Connection) {
        if connection.listener.is_none() && connection.pair().is_none() {
            return;
        }
        let (context, link) = (connection.context(), connection.link());
        let is_it = |known: &&mut Known| !known.gone && context == Some(known.device.context());
        if let Some(known) = self.devices.iter_mut().find(is_it)
            && let Some(link) = link.filter(|link| known.down.contains(link))
        {
            connection.destroy_pair();
            known.unburied.push((link, connection));
        }
    }

    fn ports_on(&self, context: Context) -> Vec<PortId> {
        let on_it = self
            .ports
            .iter()
            .filter(|(_, berth)| berth.context == context);
        let mut ports: Vec<PortId> = on_it.map(|(id, _)| *id).collect();
        ports.sort_by_key(|id| id.0);
        ports
    }

    fn tell_change(&mut self, number: u64, change: DeviceChange) {
        let known = self.devices.iter().find(|known| known.number == number);
        if let Some(known) = known {
            let (name, context) = (known.device.name().to_owned(), known.device.context());
            let ports = self.ports_on(context);
            self.events.push_back(Event::Device {
                name,
                ports,
                change,
            });
        }
    }

    /// A device is gone.
    pub(super) fn lose_device(&mut self, number: u64) {
        self.note_change(number, 0, LinkChange::Gone);
        self.tell_change(number, DeviceChange::Gone);
        let Some(known) = self.devices.iter_mut().find(|known| known.number == number) else {
            return;
        };
        known.gone = true;
        known.device.note_gone();
        known.unburied.clear();
        let context = known.device.context();
        // Its descriptor may be readable for ever.
        let _ = rustix::event::epoll::delete(&self.epoll, context.events());
        for id in self.those(|it| it.context() == Some(context)) {
            self.feed(id, Input::Lost, || "the device is gone".to_owned());
        }
        for port in self.ports_on(context) {
            self.give_up_port(port);
        }
    }

    /// A completion queue, by the address of the device's, is broken: its port is lost.
    pub(super) fn lose_port(&mut self, queue: usize) {
        let lost = self.ports.iter().find(|(_, berth)| berth.has_queue(queue));
        let Some((&port, berth)) = lost else {
            return;
        };
        let name = berth.context.name(self.library);
        for id in self.those(|it| it.port() == Some(port)) {
            self.feed(id, Input::Lost, || {
                "its completion queue is broken".to_owned()
            });
        }
        self.give_up_port(port);
        self.events.push_back(Event::Device {
            name,
            ports: vec![port],
            change: DeviceChange::Gone,
        });
    }

    /// Once a second: which devices are there?
    pub(super) fn look_for_devices(&mut self) {
        // Where that cannot be told, for want of descriptors or memory, nothing has changed.
        let Some(there) = present(self.library) else {
            return;
        };
        let missing =
            |known: &&Known| !known.gone && !there.contains(&known.device.context().device());
        let missing: Vec<u64> = self
            .devices
            .iter()
            .filter(missing)
            .map(|it| it.number)
            .collect();
        for number in missing {
            self.lose_device(number);
        }
        self.close_gone(&there);
        if self.met.has_strangers(&there) {
            self.welcome();
        }
        self.note_met_of(&there);
        if self.has_lost_listeners() {
            self.listen_again();
        }
    }

    /// Notes which devices need no more looking at: those that are used, and those that are not to
    /// be. One that could not be opened, or that does not answer, is tried again with each look.
    pub(super) fn note_met(&mut self) {
        self.note_met_of(&present(self.library).unwrap_or_default());
    }

    fn note_met_of(&mut self, there: &[usize]) {
        let leased = self.leases.newest();
        let is_met = |context: &Context| {
            let is_it = |known: &Known| known.device.context() == *context;
            self.devices.iter().any(is_it) || !self.settings.allows(&context.name(self.library))
        };
        let met = leased.iter().filter(|context| is_met(context));
        let met: Vec<usize> = met.map(|context| context.device()).collect();
        self.met.note(there, &met);
    }

    fn welcome(&mut self) {
        let before: Vec<u64> = self.devices.iter().map(|known| known.number).collect();
        // One that cannot be used is as good as none, and tried again with the next look.
        let _ = self.find_devices();
        let new = |known: &&Known| !before.contains(&known.number);
        let new: Vec<u64> = self
            .devices
            .iter()
            .filter(new)
            .map(|it| it.number)
            .collect();
        for number in new {
            self.tell_change(number, DeviceChange::Up);
        }
    }

    /// Gives back to the kernel what is gone and used by nobody any more: devices that the
    /// configuration does not allow included, which the manager has opened all the same.
    fn close_gone(&mut self, there: &[usize]) {
        let known: Vec<Context> = self.devices.iter().map(|it| it.device.context()).collect();
        let strangers = self.leases.newest().into_iter();
        let mut over: Vec<Context> = strangers
            .filter(|it| !there.contains(&it.device()) && !known.contains(it))
            .collect();
        let let_go = |it: &mut Known| it.gone && Arc::strong_count(&it.device) == 1;
        over.extend(
            self.devices
                .extract_if(.., let_go)
                .map(|it| it.device.context()),
        );
        for context in over.iter().filter(|context| !is_shared(**context)) {
            context.cut_off();
        }
        if !over.is_empty() {
            // Not what both leases have: that is not given back in between.
            self.leases.take(self.library);
        }
        if !self.devices.iter().any(|known| known.gone) {
            self.leases.end_old();
        }
    }
}
