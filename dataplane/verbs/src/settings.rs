//! What is decided about the fabric before it is made.

use crate::cm::Most;

/// How memory is exposed to peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expose {
    /// By memory windows where the device has them, else by short-lived regions.
    #[default]
    Auto,
    /// By memory windows of type 2: a device without them is refused.
    Window,
    /// By short-lived regions.
    Region,
    /// By the region of all of an lcore's memory: **every connected peer can read and write all
    /// of it**, other clients' data included. For benchmarks among friends.
    Arena,
}

/// Settings of the fabric. `Settings::default()` suits kernel clients and servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Devices that are used, by name; empty for all there are.
    pub devices: Vec<String>,
    /// The GID that connections begun here come from, by its index in the device's table.
    /// `None`: the kernel's choice, by the route to the peer, of RoCE version 2 where it can be.
    pub gid_index: Option<u32>,
    /// How memory is exposed.
    pub expose: Expose,
    /// RDMA Reads outstanding at once on a connection, each way, at most; 1 to 255.
    pub read_depth: u8,
    /// How often what is not acknowledged is sent again before the connection is given up; 0 to 7.
    pub retry_count: u8,
    /// How often a message that met no receive is sent again; 7 is for ever.
    pub rnr_retry: u8,
    /// How long the peer waits before that: an exponent of the table of `ibv_modify_qp(3)`, 1
    /// (0.01 ms) to 31 (491 ms), and 0 for 655 ms; 12 is 0.64 ms.
    pub min_rnr_timer: u8,
    /// How long an acknowledgement is waited for: 4.096 us times two to this power, 1 to 31;
    /// 16 is 0.27 s.
    pub acknowledge_timeout: u8,
    /// How long an address or a path is looked for at a time, milliseconds.
    pub resolve_timeout_ms: u32,
    /// How many times.
    pub resolve_tries: u8,
    /// Connections of this process's own that may be on their way at once.
    pub begun_max: usize,
    /// Requests of peers that may wait for an answer at once, on each listener.
    pub requests_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            devices: Vec::new(),
            gid_index: None,
            expose: Expose::Auto,
            read_depth: 16,
            retry_count: 7,
            rnr_retry: 7,
            min_rnr_timer: 12,
            acknowledge_timeout: 16,
            resolve_timeout_ms: 2000,
            resolve_tries: 3,
            begun_max: 1024,
            requests_max: 128,
        }
    }
}

impl Settings {
    /// Whether a device of this name is used.
    pub(crate) fn allows(&self, device: &str) -> bool {
        self.devices.is_empty() || self.devices.iter().any(|name| name == device)
    }

    /// What a device of these limits does at most.
    pub(crate) fn most(&self, limits: &crate::Limits) -> Most {
        Most {
            serves: limits.reads_served,
            issues: limits.reads_issued,
            read_depth: self.read_depth,
        }
    }
}
