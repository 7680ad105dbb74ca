//! The document, for people.

use super::document::{
    Clamp, Connection, Device, DeviceState, Document, Lcore, Link, Listener, Role, State,
};
use crate::table::table;
use std::collections::HashSet;
use std::fmt;

/// Counters of frames that were lost on their way in.
const COMING: [&str; 3] = [
    "port_frames_missed",
    "port_frames_no_buffer",
    "port_frames_damaged",
];
/// Counters of frames and packets that were lost on their way out.
const GOING: [&str; 4] = [
    "port_frames_unsent",
    "port_frames_crowded",
    "port_packets_no_way",
    "port_packets_unanswered",
];

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Document {
            version,
            process,
            state,
            ..
        } = self;
        writeln!(
            f,
            "rpcrdmad {version}, process {process}, {state} for {}",
            duration(self.uptime_seconds)
        )?;
        listeners(f, &self.listeners)?;
        for device in self.devices.iter().filter(|it| it.state != DeviceState::Up) {
            writeln!(f, "{device}")?;
        }
        for backend in self.backends.iter().filter(|it| !it.reachable) {
            writeln!(f, "{backend}")?;
        }
        for clamp in &self.clamps {
            writeln!(f, "{clamp}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "{warning}")?;
        }
        if let Some(problems) = &self.reloads.last_refusal {
            writeln!(f, "the configuration read last was refused:\n{problems}")?;
        }
        if !self.reloads.restart.is_empty() {
            writeln!(f, "takes a restart: {}", self.reloads.restart.join("; "))?;
        }
        links(f, &self.links)?;
        lcores(f, &self.lcores)?;
        frames(f, &self.lcores)?;
        connections(f, &self.lcores)?;
        if !self.refused.is_empty() {
            writeln!(
                f,
                "\nlast refused headers, oldest first, for `rpcrdmad decode`:"
            )?;
        }
        for refused in &self.refused {
            // A comment for people at the end would not be hexadecimal: it goes before.
            writeln!(f, "# connection {}, {}", refused.connection, refused.reject)?;
            writeln!(f, "{}", refused.hex)?;
        }
        Ok(())
    }
}

fn listeners(f: &mut fmt::Formatter<'_>, listeners: &[Listener]) -> fmt::Result {
    let mut table = table(&["listener", "role", "transport", "address"]);
    for listener in listeners {
        table.add_row([
            listener.name.clone(),
            listener.role.to_string(),
            listener.transport.clone(),
            listener.address.clone(),
        ]);
    }
    writeln!(f, "{table}")
}

fn links(f: &mut fmt::Formatter<'_>, links: &[Link]) -> fmt::Result {
    if links.is_empty() {
        return Ok(());
    }
    let headings = [
        "link",
        "port",
        "P_Key",
        "state",
        ">groups",
        ">failures",
        ">drops",
        ">ignored",
        "addresses",
        "found",
    ];
    let mut table = table(&headings);
    let mut ports = HashSet::new();
    for link in links {
        let states = link
            .ips
            .iter()
            .map(|ip| format!("v{} {}", ip.version, ip.state));
        let dhcp = link.dhcp.iter().map(|phase| format!("DHCP {phase}"));
        // What is counted for a whole port stands with the first of its links.
        let first = link.port == "memory" || ports.insert(&link.port);
        let of_port = |count: u64| match first {
            true => count.to_string(),
            false => String::new(),
        };
        let found = link.sought.iter().flat_map(|it| it.known.clone());
        table.add_row([
            link.name.clone(),
            link.port.clone(),
            format!("{:#06x}", link.p_key),
            states.chain(dhcp).collect::<Vec<_>>().join(", "),
            link.groups
                .iter()
                .filter(|it| !it.joined.is_empty())
                .count()
                .to_string(),
            of_port(link.failures.iter().map(|it| it.count).sum()),
            of_port(link.drops.values().sum()),
            of_port(link.ignored.values().sum()),
            link.addresses.join(", "),
            found.collect::<Vec<_>>().join(", "),
        ]);
    }
    writeln!(f, "{table}")?;
    links.iter().try_for_each(|link| notes(f, link))
}

/// What keeps a link down, and what it will soon have no more of.
fn notes(f: &mut fmt::Formatter<'_>, link: &Link) -> fmt::Result {
    for ip in &link.ips {
        if let Some(error) = &ip.error {
            writeln!(f, "link {}, IPv{}: {error}", link.name, ip.version)?;
        }
    }
    for (name, resource) in link.resources.iter().filter(|(_, it)| it.is_scarce()) {
        let (used, limit) = (resource.used, resource.limit.unwrap_or_default());
        let what = name.replace('_', " ");
        writeln!(f, "link {}: {used} of {limit} {what} are in use", link.name)?;
    }
    Ok(())
}

fn lcores(f: &mut fmt::Formatter<'_>, lcores: &[Lcore]) -> fmt::Result {
    let headings = [
        ">lcore",
        ">cpu",
        "device",
        "exposes by",
        ">conns",
        ">calls in",
        ">calls out",
        ">refused",
        ">breaches",
        "memory: used, peak, of",
        "receives: given, of",
    ];
    let mut table = table(&headings);
    for lcore in lcores {
        let count = |name| lcore.counters.get(name).copied().unwrap_or(0).to_string();
        let memory = &lcore.memory;
        let total = lcore.connections.len() as u64 + lcore.connections_left_out;
        table.add_row([
            lcore.lcore.to_string(),
            lcore.processor.to_string(),
            lcore.device.clone(),
            lcore.exposure.clone(),
            total.to_string(),
            count("calls_in"),
            count("calls_out"),
            lcore.rejects.values().sum::<u64>().to_string(),
            lcore.port_rejects.values().sum::<u64>().to_string(),
            format!(
                "{}, {}, {}{}",
                octets(memory.in_use_bytes),
                octets(memory.peak_bytes),
                octets(memory.ceiling_bytes),
                if memory.hugepages { " huge" } else { "" }
            ),
            format!(
                "{}, {}",
                octets(memory.receives_bytes),
                octets(memory.receives_ceiling_bytes)
            ),
        ]);
    }
    writeln!(f, "{table}")
}

/// What ports of DPDK have seen; nothing where there is none that has seen anything.
fn frames(f: &mut fmt::Formatter<'_>, lcores: &[Lcore]) -> fmt::Result {
    let headings = [
        ">lcore",
        ">frames in",
        ">frames out",
        ">lost coming",
        ">lost going",
    ];
    let mut table = table(&headings);
    for lcore in lcores {
        let of = |name: &&str| lcore.counters.get(*name).copied().unwrap_or(0);
        let sum = |names: &[&str]| names.iter().map(of).sum::<u64>();
        let counts = [
            sum(&["port_frames_in"]),
            sum(&["port_frames_out"]),
            sum(&COMING),
            sum(&GOING),
        ];
        if counts != [0; 4] {
            let [came, went, coming, going] = counts.map(|count| count.to_string());
            table.add_row([lcore.lcore.to_string(), came, went, coming, going]);
        }
    }
    if table.is_empty() {
        return Ok(());
    }
    writeln!(f, "{table}")
}

fn connections(f: &mut fmt::Formatter<'_>, lcores: &[Lcore]) -> fmt::Result {
    let headings = [
        ">#",
        ">lcore",
        "of",
        "peer",
        "tcp",
        "version",
        "phase",
        "inline out/in",
        "credits",
        ">memory",
        "last refusal",
    ];
    let mut table = table(&headings);
    for lcore in lcores {
        for connection in &lcore.connections {
            table.add_row(row(lcore.lcore, connection));
        }
    }
    if table.is_empty() {
        return writeln!(f, "no connections");
    }
    writeln!(f, "{table}")?;
    match lcores
        .iter()
        .map(|lcore| lcore.connections_left_out)
        .sum::<u64>()
    {
        0 => Ok(()),
        more => writeln!(f, "and {more} more"),
    }
}

fn row(lcore: u32, connection: &Connection) -> [String; 11] {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    [
        connection.number.to_string(),
        lcore.to_string(),
        format!("{} {}", connection.role, connection.name),
        connection.peer.clone(),
        or_dash(&connection.tcp),
        connection
            .version
            .map_or_else(|| "-".to_owned(), |version| version.to_string()),
        connection.phase.clone(),
        format!("{}/{}", connection.send_bytes, connection.receive_bytes),
        format!(
            "{} of {}",
            connection.credits_used, connection.credits_granted
        ),
        octets(connection.memory_bytes),
        or_dash(&connection.last_refusal),
    ]
}

/// With a binary prefix where it is long.
fn octets(bytes: u64) -> String {
    match bytes {
        0..10_240 => bytes.to_string(),
        10_240..10_485_760 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes} min {} s", seconds % 60),
        (0, hours) => format!("{hours} h {minutes} min"),
        (days, hours) => format!("{days} d {hours} h"),
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            DeviceState::Up => "up",
            DeviceState::Down => "link down",
            DeviceState::Gone => "gone",
        };
        write!(f, "device {}: {state}", self.name)
    }
}

impl fmt::Display for Clamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Clamp {
            endpoint,
            what,
            wanted,
            given,
            reason,
        } = self;
        let reason = reason.as_deref().unwrap_or("the device can do no more");
        write!(f, "{endpoint}: {what} is {given}, not {wanted}: {reason}")
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Starting => "starting",
            State::Serving => "serving",
            State::Draining => "draining",
        })
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Front => "front",
            Role::Back => "back",
            Role::Service => "service",
            Role::Export => "export",
            Role::Metrics => "metrics",
        })
    }
}
