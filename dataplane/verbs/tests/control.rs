//! Connections over the connection manager of a real device, looped back.

mod bed;
#[path = "../../fabric/tests/promises/control.rs"]
mod promises;

use bed::with_bed;
use rpcrdma_fabric::connect::Fabric;
use rpcrdma_verbs::{Error, Settings, VerbsFabric, survey};

#[test]
fn a_machine_without_a_device_says_so_in_one_line() {
    match VerbsFabric::new(Settings::default()) {
        Ok(fabric) => assert!(!fabric.devices().is_empty()),
        Err(error) => {
            let line = error.to_string();
            assert!(
                line.starts_with("no RDMA device: ") && !line.contains('\n'),
                "{line}"
            );
            assert_eq!(
                survey(&Settings::default())
                    .expect_err("none here either")
                    .to_string(),
                line
            );
        }
    }
}

#[test]
fn a_device_is_surveyed() {
    with_bed(|bed| {
        let found = survey(&Settings::default()).expect("devices");
        println!("{found:#?}");
        for (device, surveyed) in bed.fabric.devices().iter().zip(&found.devices) {
            assert_eq!(device.name, surveyed.name);
            let limits = surveyed.limits;
            assert!(limits.queue_pairs > 0 && limits.depth >= 16 && limits.completions >= 32);
            assert!(device.up, "it carries this bed");
            assert!(device.capabilities.gather > 0 && device.capabilities.windows > 0);
            assert!(device.capabilities.transfer_bytes >= 1 << 20);
        }
        let unknown = Settings {
            devices: vec!["no_such_device".to_owned()],
            ..Settings::default()
        };
        let refused = VerbsFabric::new(unknown).expect_err("not there");
        assert!(matches!(refused, Error::NoDevice(name) if name == "no_such_device"));
    });
}
