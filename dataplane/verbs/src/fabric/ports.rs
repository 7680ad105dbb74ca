//! Making ports, and hearing what they say.

use super::VerbsFabric;
use super::assemble::{join, keeper, poller};
use super::connections::Connection;
use crate::device::{Plan, plan};
use crate::error::Error;
use crate::expose::{Means, Registrar, Site, Windows};
use crate::inbox::{self, Inbox, Notice, Outlet, Word};
use crate::object::{CompletionQueue, Context, Depths, Objects, Region, Rights};
use crate::port::{Calls, Limits, Parts, Registered};
use crate::settings::Expose;
use crate::{VerbsPort, expose};
use rpcrdma_fabric::Handle;
use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::connect::{ConnectionId, PortId, PortWanted};
use rpcrdma_fabric::stage::Input;
use std::sync::Arc;

/// Octets that all queue pairs of a port have in flight from the port's own memory, together,
/// before each gets room for one message only.
const OUTBOX_BYTES: u64 = 64 << 20;
/// Words that are read in one go.
const WORDS: usize = 256;

/// Where a port is moored: control's side of it.
#[derive(Debug)]
pub(crate) struct Berth {
    outlet: Outlet,
    /// `None` once it is lost and everything by which it reached memory is destroyed.
    objects: Option<Arc<Objects>>,
    /// The device, or the completion queue, is gone.
    lost: bool,
    pub(super) context: Context,
    plan: Plan,
    /// Queue pairs that are out.
    pairs: u32,
}

impl Berth {
    pub(super) fn has_queue(&self, queue: usize) -> bool {
        let objects = self.objects.as_ref();
        objects.is_some_and(|objects| objects.queue.raw().addr() == queue)
    }

    /// Another queue pair, and entries of the completion queue for all it could have out.
    fn has_room(&self) -> bool {
        self.pairs < self.plan.at_once
    }

    fn depths(&self) -> Depths {
        Depths {
            send: self.plan.send_depth,
            receive: self.plan.receive_depth,
            gather: self.plan.gather,
            inline_bytes: self.plan.inline_bytes,
            extended: self.plan.extended_calls,
        }
    }
}

impl Drop for Berth {
    /// What the port has said and nobody has read: windows that are still bound go before the
    /// queue pairs that are behind them in the ring.
    fn drop(&mut self) {
        while let Some(word) = self.outlet.hear() {
            if let (Word::Window(window), Some(objects)) = (word, &self.objects) {
                objects.remove_window(window);
            }
        }
    }
}

impl VerbsFabric {
    pub(super) fn make_port(
        &mut self,
        arena: &Arc<Arena>,
        wanted: &PortWanted,
    ) -> Result<(PortId, VerbsPort), Error> {
        // What a port that was dropped has left is destroyed before its memory is another's.
        while self.ports.values().any(|berth| berth.outlet.is_left()) {
            self.hear_ports();
        }
        let known = self.choose_device(wanted.device.as_deref(), wanted.processor)?;
        let (number, device) = (known.number, Arc::clone(&known.device));
        let mut plan =
            plan(&known.limits, wanted, self.settings.expose).map_err(|lacks| Error::Unfit {
                device: device.name().to_owned(),
                lacks,
            })?;
        let invalidating = known.limits.invalidated_flags;
        let extended = plan.extended_calls;
        let vector = wanted.processor.unwrap_or_default();
        let vector = u32::try_from(vector).unwrap_or(0) % device.context().vectors();
        let queue = CompletionQueue::new(&device, plan.completions, vector, extended)?;
        let region = self.region(number, arena, rights(&plan))?;
        let outbox_bytes = outbox_bytes(plan.queue_pairs, wanted.message_bytes);
        let outbox = u64::from(plan.queue_pairs) * u64::from(outbox_bytes);
        let outbox = Arena::map(outbox, Hugepages::Off).map_err(Error::System)?;
        let outbox = Arc::new(outbox);
        let outbox_region = self.region(number, &outbox, Rights::default())?;
        let objects = Arc::new(Objects::new(queue, Arc::clone(&region), outbox_region));
        let windows = make_windows(&objects, &mut plan)?;
        let (inbox, outlet) = inbox::pair(
            plan.queue_pairs,
            plan.windows,
            Arc::clone(&self.bell),
            Some(Arc::clone(&objects)),
        )
        .map_err(Error::System)?;
        let means = self.means(&plan, windows, &objects, arena, &inbox)?;
        let calls = Calls::of(&self.library.verbs);
        let parts = Parts {
            poller: poller(&objects, invalidating, calls),
            arena: registered(arena, &objects.arena),
            outbox: registered(&outbox, &objects.outbox),
            limits: limits(&plan, outbox_bytes),
            means,
        };
        let channel = objects.queue.events();
        let port = VerbsPort::new(parts, inbox, calls, channel).map_err(Error::System)?;
        let id = PortId(self.small_number());
        self.ports.insert(
            id,
            Berth {
                outlet,
                context: device.context(),
                objects: Some(objects),
                lost: false,
                plan,
                pairs: 0,
            },
        );
        Ok((id, port))
    }

    fn region(
        &mut self,
        device: u64,
        arena: &Arc<Arena>,
        rights: Rights,
    ) -> Result<Arc<Region>, Error> {
        let known = self.devices.iter_mut().find(|known| known.number == device);
        let known = known.ok_or_else(|| Error::NoDevice(device.to_string()))?;
        Ok(known.region(arena, rights)?)
    }

    fn means(
        &mut self,
        plan: &Plan,
        windows: Vec<expose::Window>,
        objects: &Arc<Objects>,
        arena: &Arc<Arena>,
        inbox: &Inbox,
    ) -> Result<Means, Error> {
        match plan.means {
            Expose::Window => Ok(Means::Windows(Windows::new(windows, objects.arena.raw()))),
            Expose::Arena => Ok(Means::Arena(Handle(objects.arena.rkey))),
            Expose::Auto | Expose::Region => {
                let registrar = match self.registrar.take() {
                    Some(registrar) => registrar,
                    None => Registrar::start().map_err(Error::System)?,
                };
                let site = Site {
                    verbs: &self.library.verbs,
                    domain: objects.device.domain(),
                    address: arena.start().as_ptr().addr() as u64,
                    bytes: arena.len(),
                    keeper: keeper(objects, arena),
                    bell: inbox.bell(),
                };
                let regions = join(&registrar, site, plan.windows);
                self.registrar = Some(registrar);
                Ok(Means::Regions(regions))
            }
        }
    }

    /// Whether a connection by this device can be taken on a port, and why not.
    pub(super) fn check_berth(&self, id: PortId, context: Option<Context>) -> Result<(), Error> {
        let berth = self.ports.get(&id).ok_or(Error::NoPort(id))?;
        if berth.lost || berth.outlet.is_over() {
            Err(Error::NoPort(id))
        } else if context != Some(berth.context) {
            Err(Error::OtherDevice(id))
        } else if !berth.has_room() {
            Err(Error::PortFull(id))
        } else {
            Ok(())
        }
    }

    pub(super) fn berth(&self, id: PortId) -> Result<(Arc<Objects>, Depths), Error> {
        let berth = self.ports.get(&id).ok_or(Error::NoPort(id))?;
        let objects = berth.objects.as_ref().ok_or(Error::NoPort(id))?;
        Ok((Arc::clone(objects), berth.depths()))
    }

    pub(super) fn join_port(&mut self, id: PortId) {
        if let Some(berth) = self.ports.get_mut(&id) {
            berth.pairs += 1;
        }
    }

    pub(super) fn leave_port(&mut self, id: PortId) {
        if let Some(berth) = self.ports.get_mut(&id) {
            berth.pairs = berth.pairs.saturating_sub(1);
        }
        self.end_port_if_done(id);
    }

    pub(super) fn tell_port(&mut self, id: PortId, notice: Notice) {
        if let Some(berth) = self.ports.get_mut(&id) {
            berth.outlet.tell(notice);
        }
    }

    /// Its device, or its completion queue, is gone: it gives back what stands at the device.
    pub(super) fn give_up_port(&mut self, id: PortId) {
        if let Some(berth) = self.ports.get_mut(&id)
            && !std::mem::replace(&mut berth.lost, true)
        {
            berth.outlet.tell(Notice::Gone);
            self.end_port_if_done(id);
        }
    }

    /// Of a port that is lost, when its last queue pair is destroyed, and the windows that were
    /// bound to them before: control's share of the objects ends.
    fn end_port_if_done(&mut self, id: PortId) {
        if let Some(berth) = self.ports.get_mut(&id)
            && berth.lost
            && berth.pairs == 0
            && berth.objects.take().is_some()
        {
            berth.outlet.tell(Notice::Ended);
        }
    }

    /// The bell was rung: what do ports say, and which endpoints were given up?
    pub(super) fn hear_ports(&mut self) {
        let ports: Vec<PortId> = self.ports.keys().copied().collect();
        for &port in &ports {
            self.hear_port(port);
        }
        for id in self.those(Connection::is_vacated) {
            self.feed(id, Input::Vacated, || {
                "the lcore has given it up".to_owned()
            });
        }
        // After the connections: they stand on the ports' objects.
        self.ports
            .retain(|_, berth| berth.pairs > 0 || !berth.outlet.is_over());
    }

    fn hear_port(&mut self, port: PortId) {
        for _ in 0..WORDS {
            let Some(berth) = self.ports.get_mut(&port) else {
                return;
            };
            let Some(word) = berth.outlet.hear() else {
                return berth.outlet.push_on();
            };
            match word {
                Word::Broken(id) => self.end(id),
                Word::Window(window) => self.replace_window(port, window),
                // Its end is noted where it is held in common.
                Word::Over(endpoint) => drop(endpoint),
            }
        }
        // There is more: the others get their turn first.
        self.bell.ring();
    }

    fn end(&mut self, id: ConnectionId) {
        self.feed(id, Input::Broken, || {
            "its queue pair is in error".to_owned()
        });
    }

    fn replace_window(&mut self, port: PortId, old: expose::Window) {
        let Some(berth) = self.ports.get_mut(&port) else {
            return;
        };
        let Some(objects) = &berth.objects else {
            return;
        };
        objects.remove_window(old);
        // Where the device has no other, the port goes on with fewer.
        if !berth.lost
            && let Ok(window) = objects.add_window()
        {
            berth.outlet.tell(Notice::Window(window));
        }
    }
}

fn rights(plan: &Plan) -> Rights {
    Rights {
        windows: plan.means == Expose::Window,
        exposed: plan.means == Expose::Arena,
        sink: plan.writes_sinks,
    }
}

fn outbox_bytes(queue_pairs: u32, message_bytes: u32) -> u32 {
    let two = message_bytes.max(1024).saturating_mul(2);
    if u64::from(two) * u64::from(queue_pairs) <= OUTBOX_BYTES {
        two
    } else {
        two / 2
    }
}

/// As many windows as were planned, or as the device has left, but one at least.
fn make_windows(objects: &Objects, plan: &mut Plan) -> Result<Vec<expose::Window>, Error> {
    if plan.means != Expose::Window {
        return Ok(Vec::new());
    }
    let mut windows = Vec::new();
    while windows.len() < plan.windows as usize {
        match objects.add_window() {
            Ok(window) => windows.push(window),
            Err(fault) if windows.is_empty() => return Err(fault.into()),
            Err(_) => break,
        }
    }
    plan.windows = u32::try_from(windows.len()).unwrap_or(plan.windows);
    Ok(windows)
}

fn registered(arena: &Arc<Arena>, region: &Region) -> Registered {
    Registered {
        arena: Arc::clone(arena),
        address: arena.start().as_ptr().addr() as u64,
        lkey: region.lkey,
    }
}

fn limits(plan: &Plan, outbox_bytes: u32) -> Limits {
    Limits {
        queue_pairs: plan.at_once,
        send_depth: plan.send_depth,
        receive_depth: plan.receive_depth,
        gather: plan.gather,
        transfer_bytes: plan.transfer_bytes,
        outbox_bytes,
        windows: plan.windows,
        send_invalidate: plan.send_invalidate,
        receive_invalidate: plan.receive_invalidate,
        lazy_bytes: plan.lazy_bytes,
        fenced: plan.fenced,
    }
}
