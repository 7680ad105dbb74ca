//! RDMA devices: the fabric that they are, as a plan has it, and what they are, for people.

use super::output::complain;
use crate::table::table;
use anyhow::{Context, Result};
use rpcrdma_config::plan::{self, Devices, Verbs};
use rpcrdma_verbs::{Expose, LinkState, Settings, Survey, Transport, VerbsFabric, survey};
use std::fmt::Write;
use std::process::ExitCode;

/// The fabric of the devices that the plan names.
pub(super) fn fabric(verbs: &Verbs) -> Result<VerbsFabric> {
    VerbsFabric::new(settings(verbs)).context("fabric = \"verbs\"")
}

fn settings(verbs: &Verbs) -> Settings {
    Settings {
        devices: match &verbs.devices {
            Devices::All => Vec::new(),
            Devices::Named(names) => names.clone(),
        },
        gid_index: verbs.gid_index.map(u32::from),
        expose: match verbs.expose {
            plan::Expose::Auto => Expose::Auto,
            plan::Expose::Window => Expose::Window,
            plan::Expose::Region => Expose::Region,
            plan::Expose::Arena => Expose::Arena,
        },
        read_depth: verbs.read_depth,
        retry_count: verbs.retry_count,
        rnr_retry: verbs.rnr_retry,
        min_rnr_timer: verbs.min_rnr_timer,
        resolve_timeout_ms: u32::try_from(verbs.resolve_timeout.as_millis()).unwrap_or(u32::MAX),
        ..Settings::default()
    }
}

/// One line about what there is.
pub(crate) fn presence() -> String {
    match survey(&Settings::default()) {
        Ok(found) => {
            let names = found.devices.into_iter().map(|device| device.name);
            let silent = found.silent.into_iter();
            let silent = silent.map(|(name, _)| format!("{name} (does not answer)"));
            let names: Vec<_> = names.chain(silent).collect();
            format!("RDMA devices: {}", names.join(", "))
        }
        Err(error) => error.to_string(),
    }
}

/// `rpcrdmad devices`.
pub(super) fn devices() -> Result<ExitCode> {
    match survey(&Settings::default()) {
        Ok(found) => {
            super::output::say(&described(&found.devices))?;
            for (name, error) in &found.silent {
                complain(format_args!("{name} does not answer: {error}"));
            }
            let all = found.silent.is_empty();
            Ok(if all {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
        Err(error) => {
            complain(error);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// All there is to know of devices, for people.
fn described(devices: &[Survey]) -> String {
    let headings = [
        "device",
        "speaks",
        "firmware",
        ">NUMA",
        ">link",
        "state",
        ">MTU",
        "addresses",
    ];
    let mut links = table(&headings);
    for device in devices {
        for link in &device.links {
            let chosen = link.chosen.iter().flatten();
            let address = |gid: &rpcrdma_verbs::Gid| match gid.ip() {
                Some(ip) => format!("{ip} (GID {})", gid.index),
                None => format!("GID {}", gid.index),
            };
            let addresses: Vec<_> = chosen.map(address).collect();
            links.add_row([
                device.name.clone(),
                transport(device.transport, link.ethernet).to_owned(),
                device.firmware.clone(),
                device
                    .node
                    .map_or_else(|| "-".to_owned(), |node| node.to_string()),
                link.number.to_string(),
                state(link.state).to_owned(),
                link.mtu.to_string(),
                addresses.join(", "),
            ]);
        }
    }
    let mut text = format!("{links}\n");
    for device in devices {
        let it = &device.limits;
        let windows = match it.windows {
            0 => "no memory windows of type two".to_owned(),
            count => format!("{count} memory windows of type two"),
        };
        let invalidate = if it.invalidate { "with" } else { "without" };
        let _ = writeln!(
            text,
            "{}: {} queue pairs of {} entries, {} elements ({} of a Read), {} octets inline, \
             messages of {} octets, {} and {} Reads at once, {} regions, {windows}, {invalidate} \
             Send With Invalidate",
            device.name,
            it.queue_pairs,
            it.depth,
            it.gather,
            it.gather_reads,
            it.inline_bytes,
            it.message_bytes,
            it.reads_issued,
            it.reads_served,
            it.regions,
        );
        if let Some(warning) = it.warning(&device.name) {
            let _ = writeln!(text, "{warning}");
        }
    }
    text
}

fn transport(it: Transport, ethernet: bool) -> &'static str {
    match it {
        Transport::InfiniBand if ethernet => "RoCE",
        Transport::InfiniBand => "InfiniBand",
        Transport::Iwarp => "iWARP",
        Transport::Other => "something else",
    }
}

fn state(it: LinkState) -> &'static str {
    match it {
        LinkState::Active => "up",
        LinkState::Down => "down",
        LinkState::Coming => "coming up",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_config::Machine;
    use rpcrdma_verbs::{Limits, Link};

    #[test]
    fn the_defaults_of_the_configuration_are_those_of_the_fabric() {
        let machine = Machine {
            cores: vec![0],
            status_socket: "/s".into(),
        };
        let text = "[[service]]\nname = 's'\nfabric = 'verbs'\nlisten = '[::]:20049'\n";
        let plan = rpcrdma_config::parse("", text, &machine).unwrap();
        assert_eq!(settings(&plan.verbs), Settings::default());
    }

    #[test]
    fn a_device_is_told_with_its_links_and_limits() {
        let device = Survey {
            name: "siw0".to_owned(),
            firmware: "1.0".to_owned(),
            node: None,
            transport: Transport::Iwarp,
            limits: Limits {
                queue_pairs: 7,
                writes_sinks: true,
                ..Limits::default()
            },
            links: vec![Link {
                number: 1,
                state: LinkState::Active,
                mtu: 1024,
                ethernet: true,
                gids: Vec::new(),
                chosen: [None, None],
            }],
        };
        let text = described(&[device]);
        for expected in [
            "siw0",
            "iWARP",
            "up",
            "7 queue pairs",
            "no memory windows",
            "can write all memory",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }
}
