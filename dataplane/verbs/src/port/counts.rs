//! What a port counts besides what the engine does.

use rpcrdma_fabric::WorkError;

/// Counters of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Completions that named a queue pair that is no more.
    pub stale: u64,
    /// Requests that failed, those that were flushed excepted: by remote access.
    pub remote_access: u64,
    /// By a peer that took no such message.
    pub remote_invalid: u64,
    /// By their own length.
    pub local_length: u64,
    /// By memory or a window of our own.
    pub local_protection: u64,
    /// For want of a receive.
    pub not_ready: u64,
    /// By the transport.
    pub transport: u64,
}

impl Counts {
    /// Counts a failure.
    #[cold]
    pub(super) fn count(&mut self, error: WorkError) {
        let counter = match error {
            WorkError::RemoteAccess => &mut self.remote_access,
            WorkError::RemoteInvalid => &mut self.remote_invalid,
            WorkError::LocalLength => &mut self.local_length,
            WorkError::LocalProtection => &mut self.local_protection,
            WorkError::NotReady => &mut self.not_ready,
            WorkError::Transport => &mut self.transport,
            WorkError::Flushed => return,
        };
        *counter = counter.wrapping_add(1);
    }
}
