//! A device that goes takes its connections with it and nothing else; when it is back it is used.

#[path = "support/mod.rs"]
mod support;

use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::connect::{
    ConnectionId, Device, DeviceChange, Event, Fabric, PortId, PortWanted,
};
use rpcrdma_memory::{Error, MemoryFabric, MemoryPort};
use rpcrdmad::status::{DeviceState, Document};
use rpcrdmad::supervise::{Handle, Supervisor};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use support::appliance::plan;
use support::octets::Two;
use support::peer::Peer;
use support::twisted::{Twist, Twisted};
use support::until;

const NAMES: [&str; 2] = ["d0", "d1"];
const WARNING: &str = "device d0: it may go at any time";

/// Which devices are there, as a test wants it.
#[derive(Default)]
struct Desk {
    gone: [bool; 2],
    /// Receives that a connection can have posted, where that is fewer than usual.
    receives: Option<u32>,
    /// Changes that were not told yet.
    news: Vec<(usize, DeviceChange)>,
}

/// Devices that can go.
struct Frail {
    desk: Arc<Mutex<Desk>>,
    /// The device of each port, and whether that has gone since.
    ports: HashMap<PortId, (usize, bool)>,
    /// How many devices there are.
    devices: usize,
}

impl Twist for Frail {
    fn devices(&self, inner: &MemoryFabric) -> Vec<Device> {
        let desk = self.desk.lock().unwrap();
        let [device] = &inner.devices()[..] else {
            panic!("one device")
        };
        let there = (0..self.devices).filter(|&index| !desk.gone[index]);
        let named = |index: usize| {
            let mut device = device.clone();
            NAMES[index].clone_into(&mut device.name);
            let receives = &mut device.capabilities.receive_depth;
            *receives = desk.receives.unwrap_or(*receives);
            device
        };
        there.map(named).collect()
    }

    fn warnings(&self) -> Vec<String> {
        vec![WARNING.to_owned()]
    }

    fn open_port(
        &mut self,
        inner: &mut MemoryFabric,
        arena: Arc<Arena>,
        wanted: &PortWanted,
    ) -> Result<(PortId, MemoryPort), Error> {
        let name = wanted.device.as_deref();
        let device = NAMES.iter().position(|&known| Some(known) == name);
        let device = device.expect("a device of this fabric");
        let whole = PortWanted {
            device: None,
            ..wanted.clone()
        };
        let (id, port) = inner.open_port(arena, &whole)?;
        self.ports.insert(id, (device, false));
        Ok((id, port))
    }

    fn may_serve(&self, inner: &MemoryFabric, connection: ConnectionId, port: PortId) -> bool {
        let (_, gone) = self.ports[&port];
        !gone && inner.may_serve(connection, port)
    }

    fn poll(&mut self, inner: &mut MemoryFabric) -> Option<Event> {
        let Some((index, change)) = self.desk.lock().unwrap().news.pop() else {
            return inner.poll();
        };
        let its = self.ports.iter_mut().filter(|(_, port)| port.0 == index);
        let ports = its.map(|(&id, port)| {
            port.1 |= change == DeviceChange::Gone;
            id
        });
        Some(Event::Device {
            name: NAMES[index].to_owned(),
            ports: ports.collect(),
            change,
        })
    }
}

/// An appliance with the built-in program, on one lcore for each device.
struct Scene {
    desk: Arc<Mutex<Desk>>,
    fabric: MemoryFabric,
    handle: Handle,
    control: JoinHandle<Result<(), String>>,
}

impl Scene {
    fn new(devices: usize) -> Scene {
        let plan = plan(&format!(
            "[[service]]\nname = 's'\nlisten = 's'\n[transport]\ncredits = 4\n\
             [runtime]\nmemory_mib = 32\nconnections_max = 8\nlcores = {devices}\n"
        ));
        let desk = Arc::default();
        let fabric = Twisted::new(Frail {
            desk: Arc::clone(&desk),
            ports: HashMap::new(),
            devices,
        });
        let supervisor = Supervisor::start(plan, fabric).expect("an appliance");
        let fabric = supervisor.fabric().inner.clone();
        let handle = supervisor.handle();
        let run = move || supervisor.run(None).map_err(|error| format!("{error:#}"));
        Scene {
            desk,
            fabric,
            handle,
            control: std::thread::spawn(run),
        }
    }

    fn take_device(&self, index: usize) {
        let mut desk = self.desk.lock().unwrap();
        desk.gone[index] = true;
        desk.news.push((index, DeviceChange::Gone));
    }

    fn give_device(&self, index: usize) {
        self.desk.lock().unwrap().gone[index] = false;
    }

    fn document(&self) -> Document {
        self.handle.board().document()
    }

    fn until_device(&self, index: usize, state: DeviceState) {
        until("the state of a device", || {
            let document = self.document();
            let device = document.devices.iter().find(|it| it.name == NAMES[index]);
            (device.map(|it| it.state) == Some(state)).then_some(())
        });
    }

    /// A peer whose NULL call was answered.
    fn peer(&self) -> Peer {
        let mut peer = Peer::within(self.fabric.clone());
        peer.connect("s");
        peer.greet(Two, 1, 4);
        peer
    }

    fn end(self) {
        self.handle.drain();
        let ended = self.control.join().expect("no panic");
        ended.expect("an orderly end");
    }
}

#[test]
fn the_only_device_goes_and_comes_back() {
    let scene = Scene::new(1);
    let mut first = scene.peer();
    scene.take_device(0);
    first.until_over();
    scene.until_device(0, DeviceState::Gone);
    let asked = first.ask("s", 1, &[]);
    let reason = first.until_rejected(asked);
    assert!(reason.contains("no lcore polls"), "{reason}");

    scene.give_device(0);
    scene.until_device(0, DeviceState::Up);
    let mut second = scene.peer();
    let lcores = scene.document().lcores;
    assert_eq!((lcores.len(), lcores[0].device.as_str()), (1, "d0"));
    assert_eq!(lcores[0].connections.len(), 1);
    second.leave();
    scene.end();
}

/// It is another device in the same place, with shorter queues: what it grants fits those.
#[test]
fn the_plan_is_made_to_fit_the_device_that_comes_back() {
    let scene = Scene::new(1);
    let mut first = scene.peer();
    scene.take_device(0);
    first.until_over();
    scene.until_device(0, DeviceState::Gone);
    let document = scene.document();
    assert_eq!(document.clamps, []);
    assert_eq!(document.warnings, [WARNING]);
    // Two for control messages, two for backward Calls, and so one for Calls.
    scene.desk.lock().unwrap().receives = Some(5);
    scene.give_device(0);
    scene.until_device(0, DeviceState::Up);
    let mut second = Peer::within(scene.fabric.clone());
    second.connect("s");
    second.greet(Two, 1, 1);
    let clamps = scene.document().clamps;
    let clamps: Vec<_> = clamps
        .iter()
        .map(|it| (&*it.what, it.wanted, it.given))
        .collect();
    assert_eq!(clamps, [("credits", 4, 1)]);
    second.leave();
    scene.end();
}

#[test]
fn an_end_without_a_device_is_orderly() {
    let scene = Scene::new(1);
    let mut peer = scene.peer();
    scene.take_device(0);
    peer.until_over();
    scene.until_device(0, DeviceState::Gone);
    scene.end();
}

#[test]
fn the_other_device_goes_on_and_is_shared() {
    let two = core_affinity::get_core_ids().is_some_and(|cores| cores.len() > 1);
    if !two {
        eprintln!("SKIPPED: two lcores take two processors");
        return;
    }
    let scene = Scene::new(2);
    // The roomier lcore gets the next one: one on each.
    let mut peers = [scene.peer(), scene.peer()];
    scene.take_device(0);
    let over = until("the end of one connection", || {
        peers.iter_mut().position(Peer::is_over)
    });
    let other = &mut peers[1 - over];
    other.greet(Two, 2, 4);
    // The lcore that lost its device polls the other one, too.
    until("another device", || {
        let lcores = scene.document().lcores;
        let polled = lcores.iter().all(|lcore| lcore.device == "d1");
        (lcores.len() == 2 && polled).then_some(())
    });
    let mut more = [scene.peer(), scene.peer()];
    peers[1 - over].greet(Two, 3, 4);
    more.iter_mut().for_each(Peer::leave);
    scene.end();
}
