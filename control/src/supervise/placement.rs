//! Which device each lcore polls.

use anyhow::{Result, bail};
use rpcrdma_fabric::connect::Device;
pub(super) use rpcrdma_fabric::numa::node_of_processor as node_of;

/// The name of the device of each processor's lcore. Devices come in turn, so that each is
/// polled where there are lcores enough; of those whose turn it is, one at the processor's own
/// NUMA node comes first.
pub(super) fn place(devices: &[Device], processors: &[usize]) -> Result<Vec<String>> {
    place_by(devices, processors, node_of)
}

fn place_by(
    devices: &[Device],
    processors: &[usize],
    node_of: impl Fn(usize) -> Option<u32>,
) -> Result<Vec<String>> {
    let mut lcores = vec![0_usize; devices.len()];
    let mut placed = Vec::with_capacity(processors.len());
    for &processor in processors {
        let node = node_of(processor);
        let far = |device: &Device| node.is_none() || device.node != node;
        let numbered = devices.iter().enumerate();
        let Some((best, device)) =
            numbered.min_by_key(|&(index, device)| (lcores[index], far(device)))
        else {
            bail!("there is no device to open a port on");
        };
        lcores[best] += 1;
        placed.push(device.name.clone());
    }
    Ok(placed)
}

/// The devices that no lcore polls: connections that come by them cannot be had.
pub(super) fn unpolled<'d>(devices: &'d [Device], placed: &[String]) -> Vec<&'d str> {
    let names = devices.iter().map(|device| device.name.as_str());
    names
        .filter(|&name| placed.iter().all(|polled| polled != name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_fabric::Capabilities;

    fn device(name: &str, node: Option<u32>) -> Device {
        Device {
            name: name.to_owned(),
            node,
            up: true,
            capabilities: Capabilities {
                queue_pairs: 1,
                gather: 1,
                send_depth: 1,
                receive_depth: 1,
                transfer_bytes: 1,
                windows: 1,
                send_invalidate: false,
                receive_invalidate: false,
            },
        }
    }

    /// Processors 0 to 3 are at node 0, 4 to 7 at node 1.
    fn place(devices: &[Device], processors: &[usize]) -> Vec<String> {
        let node = |processor: usize| Some(u32::from(processor > 3));
        place_by(devices, processors, node).unwrap()
    }

    #[test]
    fn devices_go_to_their_own_node() {
        let devices = [device("a", Some(0)), device("b", Some(1))];
        assert_eq!(place(&devices, &[5, 1]), ["b", "a"]);
        assert_eq!(place(&devices, &[4, 1, 2, 6]), ["b", "a", "a", "b"]);
    }

    #[test]
    fn devices_beyond_the_lcores_are_polled_by_none() {
        let devices = [device("a", Some(0)), device("b", Some(0))];
        let placed = place(&devices, &[0]);
        assert_eq!(unpolled(&devices, &placed), ["b"]);
        let placed = place(&devices, &[0, 1]);
        assert!(unpolled(&devices, &placed).is_empty());
    }

    #[test]
    fn every_device_is_polled_even_from_afar() {
        let devices = [device("a", Some(0)), device("b", Some(1))];
        assert_eq!(place(&devices, &[0, 1, 2]), ["a", "b", "a"]);
        let unknown = [device("a", None), device("b", None)];
        assert_eq!(place(&unknown, &[0, 1, 2]), ["a", "b", "a"]);
    }

    #[test]
    fn without_a_device_there_is_nothing_to_poll() {
        assert!(place_by(&[], &[0], |_| None).is_err());
    }
}
