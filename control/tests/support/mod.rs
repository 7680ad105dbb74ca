//! What the tests of the whole appliance share: an appliance in this process, raw peers in its
//! memory fabric, RPC servers and clients by TCP, and octets made by hand.
//!
//! Nothing here uses the wire crate: what it reads and says is judged, so it is written down a
//! second time, from the specifications.
#![allow(dead_code, reason = "each test program uses its part")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "lengths of messages made here are small"
)]

pub(crate) mod appliance;
pub(crate) mod bystander;
pub(crate) mod memory;
pub(crate) mod octets;
pub(crate) mod peer;
pub(crate) mod tcp;
pub(crate) mod twisted;

use std::time::{Duration, Instant};

/// How long anything may take before it counts as stalled. Generous: machines are slow and
/// shared, and nothing is measured by it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Asks `look` until it has something.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::yield_now();
    }
}
