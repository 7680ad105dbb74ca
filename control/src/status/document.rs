//! What `rpcrdmad status` gets to know: one JSON document.
//!
//! Programs read it, so names stay, and new ones may come. Sizes are octets.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Refused headers shown, the last ones of all lcores.
pub const REFUSED_HEADERS: usize = 16;

/// The state of a running appliance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// The appliance's version and commit.
    pub version: String,
    /// Its process.
    pub process: u32,
    /// Since it started.
    pub uptime_seconds: u64,
    /// What it is doing.
    pub state: State,
    /// Where it listens.
    pub listeners: Vec<Listener>,
    /// The devices that its lcores poll.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// What those cannot do, and so was taken from the plan.
    #[serde(default)]
    pub clamps: Vec<Clamp>,
    /// Where those protect less than one would think, a sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// What came of configurations that were read again.
    #[serde(default)]
    pub reloads: Reloads,
    /// Its lcores.
    pub lcores: Vec<Lcore>,
    /// The last headers it refused, oldest first; at most [`REFUSED_HEADERS`].
    pub refused: Vec<RefusedHeader>,
}

/// What the appliance is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not everything is there yet.
    #[default]
    Starting,
    /// Takes connections and calls.
    Serving,
    /// Answers the calls in flight, and ends.
    Draining,
}

/// What part of the appliance something belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// RDMA in, TCP out.
    Front,
    /// TCP in, RDMA out.
    Back,
    /// The built-in benchmark program.
    Service,
    /// The embedded NFSv3 server.
    Export,
    /// The counters, for Prometheus.
    Metrics,
}

/// An open door.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    /// Whose.
    pub role: Role,
    /// Its name in the configuration.
    pub name: String,
    /// `tcp` or the fabric's name.
    pub transport: String,
    /// Where.
    pub address: String,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// The NUMA node it sits at, where that is known.
    pub node: Option<u32>,
    /// How it is.
    pub state: DeviceState,
}

impl Device {
    /// One that is there.
    pub(crate) fn new(device: &rpcrdma_fabric::connect::Device) -> Self {
        Self {
            name: device.name.clone(),
            node: device.node,
            state: DeviceState::of(device),
        }
    }
}

/// How a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceState {
    /// It has a link that is up.
    Up,
    /// Its link is down.
    Down,
    /// It is not there any more.
    Gone,
}

impl DeviceState {
    /// That of one that is there.
    pub(crate) fn of(device: &rpcrdma_fabric::connect::Device) -> Self {
        match device.up {
            true => Self::Up,
            false => Self::Down,
        }
    }
}

/// A value of the plan that no device in use can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clamp {
    /// The front, back or service.
    pub endpoint: String,
    /// The key below its `transport`.
    pub what: String,
    /// What the configuration says.
    pub wanted: u64,
    /// What it is instead.
    pub given: u64,
    /// Why, where there is more to say than that the device can do no more.
    #[serde(default)]
    pub reason: Option<String>,
}

/// What came of configurations that were read again while it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloads {
    /// How many were right.
    pub taken: u64,
    /// How many were refused.
    pub refused: u64,
    /// Why the last one was, if it was: a line for each problem.
    pub last_refusal: Option<String>,
    /// Keys that the last one that was right gives values which take a restart.
    pub restart: Vec<String>,
}

/// One lcore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lcore {
    /// Its number, from zero.
    pub lcore: u32,
    /// The processor it is pinned to.
    pub processor: u32,
    /// The device it polls.
    #[serde(default)]
    pub device: String,
    /// What can leak: connections, exposures, memory, ... by name; after a disconnection each
    /// goes back to what it was.
    pub in_use: BTreeMap<String, u64>,
    /// Its registered memory.
    pub memory: Memory,
    /// What it has counted since its start, by name.
    pub counters: BTreeMap<String, u64>,
    /// Headers it has refused, by reason; reasons that never occurred are left out.
    pub rejects: BTreeMap<String, u64>,
    /// What peers did that the fabric's own protocols do not allow, below RPC-over-RDMA, by
    /// reason; reasons that never occurred are left out. Of fabrics in software: devices do not say.
    #[serde(default)]
    pub port_rejects: BTreeMap<String, u64>,
    /// Its connections.
    pub connections: Vec<Connection>,
    /// Connections that there was no room to list.
    pub connections_left_out: u64,
}

/// Registered memory of an lcore, octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Given out now.
    pub in_use_bytes: u64,
    /// Most ever given out at once.
    pub peak_bytes: u64,
    /// Most that can be given out.
    pub ceiling_bytes: u64,
    /// Of that, given to connections for their receives.
    #[serde(default)]
    pub receives_bytes: u64,
    /// Set aside for all of them. Near it, new connections get fewer credits.
    #[serde(default)]
    pub receives_ceiling_bytes: u64,
    /// In huge pages.
    pub hugepages: bool,
}

/// One RDMA connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Its number, which no other ever has.
    pub number: u64,
    /// What it belongs to.
    pub role: Role,
    /// That one's name in the configuration.
    pub name: String,
    /// The other end, in the fabric's form of address.
    pub peer: String,
    /// The TCP end: the backend of a front, the client of a back.
    pub tcp: Option<String>,
    /// Where it is in its life.
    pub phase: String,
    /// The RPC-over-RDMA version, once that is known.
    pub version: Option<u32>,
    /// Longest message the peer takes.
    pub send_bytes: u32,
    /// Longest message the peer may send.
    pub receive_bytes: u32,
    /// Calls in flight.
    pub credits_used: u32,
    /// Calls that may be in flight, as granted by the responder.
    pub credits_granted: u32,
    /// Memory it holds or may claim at any time.
    pub memory_bytes: u64,
    /// Why its last refused header was refused.
    pub last_refusal: Option<String>,
}

/// A header that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedHeader {
    /// By which lcore.
    pub lcore: u32,
    /// On which connection.
    pub connection: u64,
    /// Why.
    pub reject: String,
    /// Length of the whole message.
    pub message_bytes: u32,
    /// Its first octets, as `rpcrdmad decode` reads them.
    pub hex: String,
}

impl RefusedHeader {
    /// A header of which `octets` were kept.
    #[must_use]
    pub fn new(
        lcore: u32,
        connection: u64,
        reject: &str,
        message_bytes: u32,
        octets: &[u8],
    ) -> Self {
        let hex = octets
            .iter()
            .fold(String::with_capacity(octets.len() * 2), |mut hex, octet| {
                // Writing to a String cannot fail.
                let _ = write!(hex, "{octet:02x}");
                hex
            });
        Self {
            lcore,
            connection,
            reject: reject.to_owned(),
            message_bytes,
            hex,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_fabric::connect::Fabric;

    #[test]
    fn a_device_that_was_down_from_the_start_is_said_to_be() {
        let [device] = &mut rpcrdma_memory::MemoryFabric::new().devices()[..] else {
            panic!("one device");
        };
        assert_eq!(Device::new(device).state, DeviceState::Up);
        device.up = false;
        assert_eq!(Device::new(device).state, DeviceState::Down);
    }
}
