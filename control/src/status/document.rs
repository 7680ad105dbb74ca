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
    /// Its IPoIB links.
    #[serde(default)]
    pub links: Vec<Link>,
    /// The backends that it looks after, since who asks a group is told of those alone that can be reached.
    #[serde(default)]
    pub backends: Vec<Backend>,
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

/// A backend of a front.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backend {
    /// The front.
    pub front: String,
    /// The backend's address, as configured.
    pub address: String,
    /// The last connection to it could be made.
    pub reachable: bool,
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let can = if self.reachable { "can" } else { "cannot" };
        write!(
            f,
            "front {}: backend {} {can} be reached",
            self.front, self.address
        )
    }
}

/// An IPoIB link, and discovery on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its name in the configuration.
    pub name: String,
    /// The device and its port, or `memory`.
    pub port: String,
    /// Its partition.
    pub p_key: u16,
    /// Each IP of it.
    pub ips: Vec<LinkIp>,
    /// Its own addresses in use.
    pub addresses: Vec<String>,
    /// Where its DHCP client is: `bound`, `selecting`, ...
    pub dhcp: Option<String>,
    /// That client's messages, and the replies that did not count by reason.
    #[serde(default)]
    pub dhcp_messages: BTreeMap<String, u64>,
    /// What multicast uses up of the port: `memberships`, `attached_groups`, `attachments`.
    #[serde(default)]
    pub resources: BTreeMap<String, LinkResource>,
    /// Operations on the port that failed.
    pub failures: Vec<LinkFailure>,
    /// Datagrams that were not sent, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Management datagrams, frames and words of the device that were not taken, by reason.
    pub ignored: BTreeMap<String, u64>,
    /// Groups that are known.
    pub groups: Vec<LinkGroup>,
    /// Queries that came, by what became of them.
    pub answers: BTreeMap<String, u64>,
    /// What backs seek on it.
    pub sought: Vec<Sought>,
}

/// Something that there is a limited number of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkResource {
    /// In use.
    pub used: u32,
    /// There is; `null` where the device does not say.
    pub limit: Option<u32>,
}

impl LinkResource {
    /// Four fifths of it are in use.
    #[must_use]
    pub fn is_scarce(&self) -> bool {
        let of = |limit| u64::from(self.used) * 5 >= u64::from(limit) * 4;
        self.limit.is_some_and(of)
    }
}

/// One IP of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkIp {
    /// 4 or 6.
    pub version: u8,
    /// `down`, `joining`, `up` or `degraded`.
    pub state: String,
    /// Why it is not up, or what last troubled it.
    pub error: Option<String>,
    /// Its address, in use or not yet; `null` on Ethernet, where it is the operating system's.
    #[serde(default)]
    pub address: Option<LinkAddress>,
    /// The longest IP packet.
    pub mtu: u16,
    /// Frames that came and went, by what they were.
    pub frames: BTreeMap<String, u64>,
    /// Frames to neighbours that were not sent, by reason.
    #[serde(default)]
    pub neighbours_lost: BTreeMap<String, u64>,
    /// What neighbours said and was not taken, by reason.
    #[serde(default)]
    pub neighbours_unheard: BTreeMap<String, u64>,
}

/// An address of an IP of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkAddress {
    /// The address.
    pub address: String,
    /// `waiting` for the link, `probing` whether somebody has it, `used`, or `taken` by somebody else.
    pub phase: String,
}

/// How often an operation on a port failed for a cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFailure {
    /// What was tried.
    pub operation: String,
    /// Why it failed.
    pub cause: String,
    /// So often.
    pub count: u64,
}

/// A multicast group of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkGroup {
    /// Its MGID; on Ethernet its IP address.
    pub group: String,
    /// Its LID; 0 where it has none.
    pub mlid: u16,
    /// As what it is joined; empty where it is not.
    pub joined: String,
    /// What is sent to it comes here.
    pub attached: bool,
}

/// An upstream that is sought.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sought {
    /// The back.
    pub back: String,
    /// The group that is asked.
    pub group: String,
    /// Who has answered.
    pub known: Vec<String>,
    /// Queries.
    pub asked: u64,
    /// Answers.
    pub heard: u64,
    /// Times that another place came into use.
    pub moved: u64,
    /// Datagrams that were not taken as answers, by reason.
    #[serde(default)]
    pub unheard: BTreeMap<String, u64>,
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
    /// What stands behind the handles that peers are given: `window`, `region`, or `arena`, by
    /// which each of them has all memory of the lcore.
    #[serde(default)]
    pub exposure: String,
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
