//! What stands for DPDK in builds without it.

use super::memory::Share;
use crate::supervise::Board;
use anyhow::Result;
use rpcrdma_config::Plan;
use std::sync::Arc;
use tracing::warn;

/// DPDK, which is not here.
#[derive(Debug)]
pub struct Dpdk(());

impl Dpdk {
    /// Starts nothing, and says so where the plan wants something.
    ///
    /// # Errors
    ///
    /// None: the signature is that of builds with DPDK.
    pub fn enter(plan: &Plan, _processors: &[usize]) -> Result<Dpdk> {
        if plan.dpdk.as_ref().is_some_and(|dpdk| dpdk.enabled) {
            warn!(
                "[dpdk] has no effect: this build has no DPDK; lcores are plain threads (cargo build \
                 --features dpdk builds it in)"
            );
        }
        Ok(Dpdk(()))
    }

    /// Does nothing.
    ///
    /// # Errors
    ///
    /// None: as above.
    pub fn publish(&self, _board: &Arc<Board>) -> Result<()> {
        Ok(())
    }
}

pub(super) fn version() -> Option<String> {
    None
}

pub(super) fn shares(_: &Plan, _: impl Fn(usize) -> Option<u32>) -> Result<Vec<Share>> {
    Ok(Vec::new())
}
