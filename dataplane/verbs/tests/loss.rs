//! Links that go down, and devices that are taken away: done to a device that the environment
//! names, for it disturbs whoever else uses it.
//!
//! ```text
//! RPCRDMA_TEST_LOSS="rxe d0 a0" cargo test -p rpcrdma-verbs --test loss -- --test-threads 1
//! ```
//!
//! names the driver of software RDMA, its device, and the interface below it.

mod bed;

use bed::{Bed, with_bed};
use rpcrdma_fabric::connect::{DeviceChange, Event, Fabric, next_event};
use rpcrdma_fabric::{Outcome, Port};
use rpcrdma_verbs::{Error, Settings, VerbsFabric};
use std::process::Command;
use std::time::Instant;

struct Lossy {
    driver: String,
    device: String,
    interface: String,
}

fn with_lossy_bed(test: impl FnOnce(Bed, &Lossy)) {
    let told = std::env::var("RPCRDMA_TEST_LOSS").unwrap_or_default();
    let words: Vec<&str> = told.split_whitespace().collect();
    let [driver, device, interface] = words[..] else {
        println!("SKIPPED: no RDMA device: RPCRDMA_TEST_LOSS names none that may be lost");
        return;
    };
    let lossy = Lossy {
        driver: driver.to_owned(),
        device: device.to_owned(),
        interface: interface.to_owned(),
    };
    with_bed(|bed| test(bed, &lossy));
}

fn run(command: &str) {
    let status = Command::new("sh").args(["-c", command]).status();
    assert!(status.expect("a shell").success(), "{command}");
}

fn change(bed: &mut Bed, lossy: &Lossy, wanted: DeviceChange) {
    bed.event("the change", |event| {
        matches!(event, Event::Device { name, change, .. } if *name == lossy.device && *change == wanted)
    });
}

#[test]
fn a_link_that_goes_down_ends_its_connections() {
    with_lossy_bed(|mut bed, lossy| {
        let listener = bed.fabric.listen(&bed.anywhere()).expect("a listener");
        let address = bed.fabric.address(listener).expect("it listens");
        let (asking, asked) = bed.connection_to(&address);
        bed.send(asking, asked);
        run(&format!("ip link set {} down", lossy.interface));
        change(&mut bed, lossy, DeviceChange::Down);
        bed.ended(asking);
        bed.ended(asked);
        bed.destroy(asking);
        bed.destroy(asked);
        run(&format!("ip link set {} up", lossy.interface));
        change(&mut bed, lossy, DeviceChange::Up);
        // The same port, and the same listener.
        let (asking, asked) = bed.connection_to(&address);
        bed.send(asked, asking);
    });
}

#[test]
fn a_link_that_is_down_from_the_start_is_known_to_be() {
    with_lossy_bed(|bed, lossy| {
        drop(bed);
        run(&format!("ip link set {} down", lossy.interface));
        let mut fabric = VerbsFabric::new(Settings::default()).expect("a fabric");
        let is_up = |fabric: &VerbsFabric| {
            let devices = fabric.devices();
            let mut devices = devices.iter();
            devices.find(|it| it.name == lossy.device).map(|it| it.up)
        };
        assert_eq!(is_up(&fabric), Some(false));
        run(&format!("ip link set {} up", lossy.interface));
        let deadline = Instant::now() + bed::PATIENCE;
        let regained = std::iter::from_fn(|| next_event(&mut fabric, deadline)).find(|event| {
            matches!(event, Event::Device { name, change: DeviceChange::Up, .. } if *name == lossy.device)
        });
        assert!(regained.is_some());
        assert_eq!(is_up(&fabric), Some(true));
    });
}

#[test]
fn a_device_that_is_taken_away_ends_what_was_on_it_and_can_come_back() {
    with_lossy_bed(|mut bed, lossy| {
        // Of the family: siw hears IPv4 at no IPv6 address.
        let everywhere = bed.fabric.listen("0.0.0.0:0").expect("a listener");
        let there = bed.fabric.listen(&bed.anywhere()).expect("a listener");
        let address = bed.fabric.address(there).expect("it listens");
        let (asking, asked) = bed.connection_to(&address);
        bed.send(asking, asked);
        let begun = bed.resolve(&address);
        // The kernel waits until everything is given up: who waits for it is not this thread.
        let delete = format!("rdma link delete {}", lossy.device);
        let deleting = std::thread::spawn(move || run(&delete));
        change(&mut bed, lossy, DeviceChange::Gone);
        bed.ended(asking);
        bed.ended(asked);
        assert!(bed.rejected(begun).contains("gone"));
        bed.destroy(asking);
        bed.destroy(asked);
        bed.until("the kernel to be done", |_| {
            deleting.is_finished().then_some(())
        });
        deleting.join().expect("deleted");
        assert!(bed.fabric.devices().is_empty());
        let wanted = bed::wanted();
        let arena =
            rpcrdma_fabric::arena::Arena::map(1 << 20, rpcrdma_fabric::arena::Hugepages::Off);
        let arena = std::sync::Arc::new(arena.expect("memory"));
        let refused = bed.fabric.open_port(arena.clone(), &wanted);
        assert!(matches!(refused, Err(Error::NoDevice(_))));
        run(&format!(
            "rdma link add {} type {} netdev {}",
            lossy.device, lossy.driver, lossy.interface
        ));
        change(&mut bed, lossy, DeviceChange::Up);
        let (id, port) = bed.fabric.open_port(arena, &wanted).expect("a port again");
        (bed.id, bed.port) = (id, port);
        for listener in [there, everywhere] {
            let port = bed.fabric.address(listener).expect("it listens again");
            let (_, port) = port.rsplit_once(':').expect("with a port");
            let (asking, asked) = bed.connection_to(&format!("{}:{port}", bed.ip));
            bed.send(asked, asking);
            bed.port.disconnect(asked.pair);
            bed.completion("the end", |completion| {
                completion.token == asking.token && completion.outcome == Outcome::Disconnected
            });
            bed.event("the end", |event| {
                matches!(event, Event::Disconnected { .. })
            });
        }
    });
}

#[test]
fn an_idle_device_does_not_hold_up_its_removal() {
    with_lossy_bed(|mut bed, lossy| {
        bed.fabric.listen("[::]:0").expect("a listener");
        let delete = format!("rdma link delete {}", lossy.device);
        let deleting = std::thread::spawn(move || run(&delete));
        change(&mut bed, lossy, DeviceChange::Gone);
        bed.until("the kernel to be done", |_| {
            deleting.is_finished().then_some(())
        });
        deleting.join().expect("deleted");
        run(&format!(
            "rdma link add {} type {} netdev {}",
            lossy.device, lossy.driver, lossy.interface
        ));
        change(&mut bed, lossy, DeviceChange::Up);
    });
}
