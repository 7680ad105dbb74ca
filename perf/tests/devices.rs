//! With several devices a bed's ports are on the one that leads to the service.

#[path = "../../control/tests/support/twisted.rs"]
mod twisted;

use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::connect::{ConnectionId, Device, Fabric, PortId, PortWanted};
use rpcrdma_lcore::Idle;
use rpcrdma_memory::{Error, MemoryFabric, MemoryPort};
use rpcrdma_perf::bed::{Bed, Place, Wanted};
use rpcrdma_perf::workload::Workload;
use rpcrdma_wire::Version;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use twisted::{Twist, Twisted};

const NAMES: [&str; 3] = ["d0", "d1", "d2"];

/// Three devices, of which one leads everywhere.
struct Three {
    leads: Option<&'static str>,
    /// The device that no port can be opened on.
    broken: Option<&'static str>,
    ports: HashMap<PortId, String>,
    /// The devices of ports with room for a load, in order.
    opened: Arc<Mutex<Vec<String>>>,
}

impl Twist for Three {
    fn devices(&self, inner: &MemoryFabric) -> Vec<Device> {
        let [device] = &inner.devices()[..] else {
            panic!("one device")
        };
        let named = |name: &str| Device {
            name: name.to_owned(),
            ..device.clone()
        };
        NAMES.map(named).into()
    }

    fn open_port(
        &mut self,
        inner: &mut MemoryFabric,
        arena: Arc<Arena>,
        wanted: &PortWanted,
    ) -> Result<(PortId, MemoryPort), Error> {
        let device = wanted.device.clone().expect("one of several");
        if self.broken == Some(&*device) {
            return Err(Error::Setting("it is broken"));
        }
        if wanted.queue_pairs > 1 {
            self.opened.lock().unwrap().push(device.clone());
        }
        let whole = PortWanted {
            device: None,
            ..wanted.clone()
        };
        let (id, port) = inner.open_port(arena, &whole)?;
        self.ports.insert(id, device);
        Ok((id, port))
    }

    fn may_serve(&self, inner: &MemoryFabric, connection: ConnectionId, port: PortId) -> bool {
        self.leads == Some(&*self.ports[&port]) && inner.may_serve(connection, port)
    }
}

/// A bed on such devices and so many lcores, with what its ports were opened on.
fn bed(
    leads: Option<&'static str>,
    broken: Option<&'static str>,
    lcores: usize,
    place: Place,
) -> (anyhow::Result<Bed<Twisted<Three>>>, Vec<String>) {
    let opened = Arc::default();
    let fabric = Twisted::new(Three {
        leads,
        broken,
        ports: HashMap::new(),
        opened: Arc::clone(&opened),
    });
    let wanted = Wanted {
        workload: Workload::Null,
        depth: 1,
        connections: 2,
        lcores,
        version: Version::Two,
        idle: Idle::Adaptive {
            spin: std::time::Duration::ZERO,
        },
    };
    let bed = Bed::on_threads(wanted, fabric, place);
    let opened = opened.lock().unwrap().clone();
    (bed, opened)
}

#[test]
fn the_device_that_leads_there_is_taken() {
    for device in NAMES {
        let (bed, opened) = bed(Some(device), None, 1, Place::Here("here".to_owned()));
        let measured = bed.expect("a bed").finish().expect("an end");
        assert_eq!(measured.errors, 0);
        assert_eq!(opened, [device]);
    }
}

#[test]
fn where_none_leads_there_it_is_said() {
    let (bed, opened) = bed(None, None, 1, Place::Here("here".to_owned()));
    let error = format!("{:#}", bed.err().expect("no bed"));
    let expected = "the device that leads to here: no port on d0, d1, d2 may serve it";
    assert_eq!(error, expected);
    assert!(opened.is_empty());
}

/// A device that is broken is in nobody's way, and is what is told of where none serves.
#[test]
fn a_broken_device_is_passed_over() {
    let here = || Place::Here("here".to_owned());
    let (served, opened) = bed(Some("d1"), Some("d0"), 1, here());
    let measured = served.expect("a bed").finish().expect("an end");
    assert_eq!(
        (measured.errors, opened.as_slice()),
        (0, &["d1".to_owned()][..])
    );
    let (refused, _) = bed(None, Some("d0"), 1, here());
    let error = format!("{:#}", refused.err().expect("no bed"));
    assert!(
        error.ends_with(&Error::Setting("it is broken").to_string()),
        "{error}"
    );
}

#[test]
fn a_service_everywhere_is_on_each_in_turn() {
    // Each lcore wants a processor.
    let lcores = std::thread::available_parallelism().map_or(1, |it| it.get().min(4));
    if lcores == 1 {
        eprintln!("SKIPPED: there is one processor, and so no turn");
        return;
    }
    let everywhere = Place::Serving("[::]:20049".to_owned());
    let (bed, opened) = bed(Some("d1"), None, lcores, everywhere);
    drop(bed.expect("a bed"));
    assert_eq!(opened, ["d0", "d1", "d2", "d0"][..lcores]);
}
