//! Counting what failed.

use rpcrdma_fabric::{PortCounts, WorkError};

/// Counts a failure. What was flushed has not failed itself.
#[cold]
pub(super) fn count(counts: &mut PortCounts, error: WorkError) {
    let counter = match error {
        WorkError::RemoteAccess => &mut counts.remote_access,
        WorkError::RemoteInvalid => &mut counts.remote_invalid,
        WorkError::LocalLength => &mut counts.local_length,
        WorkError::LocalProtection => &mut counts.local_protection,
        WorkError::NotReady => &mut counts.not_ready,
        WorkError::Transport => &mut counts.transport,
        WorkError::Flushed => return,
    };
    *counter = counter.wrapping_add(1);
}
