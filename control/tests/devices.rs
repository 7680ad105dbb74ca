//! A device that goes takes its connections with it and nothing else; when it is back it is used.

#[path = "support/mod.rs"]
mod support;

use rpcrdma_fabric::Port;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::connect::{
    ConnectionId, Device, DeviceChange, Event, Fabric, ListenerId, PortId, PortWanted,
};
use rpcrdma_memory::{Error, MemoryFabric, MemoryPort};
use rpcrdmad::status::{DeviceState, Document};
use rpcrdmad::supervise::{Handle, Supervisor};
use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use support::appliance::plan;
use support::octets::Two;
use support::peer::Peer;
use support::until;

const NAMES: [&str; 2] = ["d0", "d1"];

/// Which devices are there, as a test wants it.
#[derive(Default)]
struct Desk {
    gone: [bool; 2],
    /// Changes that were not told yet.
    news: Vec<(usize, DeviceChange)>,
}

/// The memory fabric, cut in two devices that can go.
struct Frail {
    inner: MemoryFabric,
    desk: Arc<Mutex<Desk>>,
    /// The device of each port, and whether that has gone since.
    ports: HashMap<PortId, (usize, bool)>,
    /// How many devices there are.
    devices: usize,
}

impl Fabric for Frail {
    type Port = MemoryPort;
    type Error = Error;

    fn devices(&self) -> Vec<Device> {
        let gone = self.desk.lock().unwrap().gone;
        let [device] = &self.inner.devices()[..] else {
            panic!("one device")
        };
        let there = (0..self.devices).filter(|&index| !gone[index]);
        let named = |index: usize| Device {
            name: NAMES[index].to_owned(),
            ..device.clone()
        };
        there.map(named).collect()
    }

    fn open_port(
        &mut self,
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
        let (id, port) = self.inner.open_port(arena, &whole)?;
        self.ports.insert(id, (device, false));
        Ok((id, port))
    }

    fn listen(&mut self, address: &str) -> Result<ListenerId, Error> {
        self.inner.listen(address)
    }

    fn address(&self, listener: ListenerId) -> Option<String> {
        self.inner.address(listener)
    }

    fn resolve(&mut self, address: &str) -> Result<ConnectionId, Error> {
        self.inner.resolve(address)
    }

    fn may_serve(&self, connection: ConnectionId, port: PortId) -> bool {
        self.ports[&port] == (self.ports[&port].0, false) && self.inner.may_serve(connection, port)
    }

    fn take(
        &mut self,
        connection: ConnectionId,
        port: PortId,
    ) -> Result<<MemoryPort as Port>::Endpoint, Error> {
        self.inner.take(connection, port)
    }

    fn connect(&mut self, connection: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        self.inner.connect(connection, private_data)
    }

    fn accept(&mut self, connection: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        self.inner.accept(connection, private_data)
    }

    fn reject(&mut self, connection: ConnectionId, reason: &str) -> Result<(), Error> {
        self.inner.reject(connection, reason)
    }

    fn abandon(&mut self, connection: ConnectionId) {
        self.inner.abandon(connection);
    }

    fn poll(&mut self) -> Option<Event> {
        let Some((index, change)) = self.desk.lock().unwrap().news.pop() else {
            return self.inner.poll();
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

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
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
        let fabric = Frail {
            inner: MemoryFabric::new(),
            desk: Arc::clone(&desk),
            ports: HashMap::new(),
            devices,
        };
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
