//! What is decided about a port before it is opened.

use crate::ring;
use crate::window::MOST_WINDOWS;
use rpcrdma_fabric::connect::PortWanted;

/// The deepest send or receive queue.
pub(crate) const DEPTH_MAX: u32 = 65_536;

/// Settings of one port. `Settings::default()` suits an lcore of up to a thousand connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Queue pairs that can be there at once; 1 to 2^22.
    pub queue_pairs: u32,
    /// Work of one queue pair that can wait for a receive or for room; 1 to 65,536.
    pub send_depth: u32,
    /// Receives of one queue pair; 1 to 65,536.
    pub receive_depth: u32,
    /// Memory windows of the port; 1 to 2^20. More windows leave fewer random bits in a handle.
    pub windows: u32,
    /// Longest message that can be sent, octets. Less than half a ring.
    pub message_bytes: u32,
    /// Size of the ring from this port to each other port it has connections with, octets,
    /// rounded up to a power of two.
    pub ring_bytes: u32,
    /// Memory for copies of messages that wait, octets. One queue pair takes at most an eighth
    /// of it, or one message.
    pub parking_bytes: u32,
    /// How often a message without a receive is tried again (once a [`reap`]) before it fails
    /// with `NotReady`; `None`, as the value 7 of an adapter, tries for ever.
    ///
    /// [`reap`]: rpcrdma_fabric::Port::reap
    pub rnr_retries: Option<u32>,
    /// Whether Send With Invalidate is offered.
    pub remote_invalidate: bool,
    /// Seed of the handles; `None` (always, outside tests) takes it from the system.
    pub seed: Option<u64>,
    /// What goes wrong on purpose.
    pub faults: Option<Faults>,
}

/// Faults that a port injects, drawn from a seed. Probabilities are in parts per 65,536 of the
/// operations that they can happen to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Where the draws begin: the same seed and the same calls give the same faults.
    pub seed: u64,
    /// A completion is held back.
    pub delay: u16,
    /// For at most so many reaps.
    pub delay_reaps: u16,
    /// A Send, Read or Write ends the connection instead.
    pub drop: u16,
    /// An exposure is refused as [`Busy`](rpcrdma_fabric::Refused::Busy).
    pub refuse_window: u16,
    /// A Send finds no receive at its first attempt.
    pub not_ready: u16,
    /// Completions of different queue pairs change places.
    pub reorder: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            queue_pairs: 1024,
            send_depth: 64,
            receive_depth: 256,
            windows: 4096,
            message_bytes: 64 << 10,
            ring_bytes: 256 << 10,
            parking_bytes: 1 << 20,
            rnr_retries: None,
            remote_invalidate: true,
            seed: None,
            faults: None,
        }
    }
}

impl Settings {
    /// What suits a port that somebody wants.
    pub(crate) fn wanted(wanted: &PortWanted) -> Settings {
        let default = Settings::default();
        // A message has to be shorter than half a ring, and to be parked twice.
        let longest = wanted.message_bytes.max(default.message_bytes);
        Settings {
            queue_pairs: wanted.queue_pairs,
            send_depth: wanted.send_depth.clamp(1, DEPTH_MAX),
            receive_depth: wanted.receive_depth.clamp(1, DEPTH_MAX),
            windows: wanted.windows.clamp(1, MOST_WINDOWS),
            message_bytes: longest,
            ring_bytes: default.ring_bytes.max(longest.saturating_mul(4)),
            parking_bytes: default.parking_bytes.max(longest.saturating_mul(2)),
            ..default
        }
    }

    /// What cannot be, if anything.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        let depth = 1..=DEPTH_MAX;
        if !(1..=ring::MOST_QUEUE_PAIRS).contains(&self.queue_pairs) {
            Some("queue_pairs: 1 to 4194304")
        } else if !depth.contains(&self.send_depth) || !depth.contains(&self.receive_depth) {
            Some("send_depth and receive_depth: 1 to 65536")
        } else if !(1..=MOST_WINDOWS).contains(&self.windows) {
            Some("windows: 1 to 1048576")
        } else if !(1024..=16 << 20).contains(&self.ring_bytes) {
            Some("ring_bytes: 1024 to 16777216")
        } else if self.message_bytes > ring::longest(self.ring_bytes.next_power_of_two()) {
            Some("message_bytes: less than half of ring_bytes")
        } else if self.parking_bytes / 2 < self.message_bytes {
            Some("parking_bytes: at least twice message_bytes")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_possible() {
        assert_eq!(Settings::default().refusal(), None);
    }

    #[test]
    fn each_impossible_setting_is_named() {
        let default = Settings::default();
        for (settings, key) in [
            (
                Settings {
                    queue_pairs: 0,
                    ..default.clone()
                },
                "queue_pairs",
            ),
            (
                Settings {
                    queue_pairs: u32::MAX,
                    ..default.clone()
                },
                "queue_pairs",
            ),
            (
                Settings {
                    send_depth: 0,
                    ..default.clone()
                },
                "send_depth",
            ),
            (
                Settings {
                    receive_depth: 1 << 20,
                    ..default.clone()
                },
                "receive_depth",
            ),
            (
                Settings {
                    windows: 0,
                    ..default.clone()
                },
                "windows",
            ),
            (
                Settings {
                    ring_bytes: 64,
                    ..default.clone()
                },
                "ring_bytes",
            ),
            (
                Settings {
                    message_bytes: 128 << 10,
                    ..default.clone()
                },
                "message_bytes",
            ),
            (
                Settings {
                    parking_bytes: 1024,
                    ..default.clone()
                },
                "parking_bytes",
            ),
        ] {
            assert!(
                settings.refusal().is_some_and(|why| why.contains(key)),
                "{key}"
            );
        }
    }
}
