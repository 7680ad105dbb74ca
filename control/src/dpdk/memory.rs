//! The arenas of a plan's lcores: from EAL where it runs and has the memory, else mapped.

use super::eal;
use anyhow::{Context, Result};
use rpcrdma_config::{Plan, plan};
use rpcrdma_fabric::arena::{Arena, Hugepages, Tract};

/// Memory for the arenas.
pub(crate) struct Memory {
    bytes: u64,
    hugepages: Hugepages,
    shares: Vec<Share>,
}

/// A tract of EAL's memory, and the processors whose lcores it is for.
pub(super) struct Share {
    pub(super) processors: Vec<usize>,
    pub(super) tract: Tract,
}

impl Memory {
    /// Memory for every lcore of the plan. `node_of` knows the NUMA node of a processor.
    ///
    /// # Errors
    ///
    /// Huge pages are required, and EAL has not as much.
    pub(crate) fn of(plan: &Plan, node_of: impl Fn(usize) -> Option<u32>) -> Result<Self> {
        Ok(Self {
            bytes: plan.runtime.memory_bytes,
            hugepages: match plan.runtime.hugepages {
                plan::Hugepages::Try => Hugepages::Try,
                plan::Hugepages::Require => Hugepages::Require,
                plan::Hugepages::Off => Hugepages::Off,
            },
            shares: eal::shares(plan, node_of)?,
        })
    }

    /// The arena of the lcore on this processor.
    ///
    /// # Errors
    ///
    /// The system has not as much, or not in huge pages where they are required.
    pub(crate) fn arena(&mut self, processor: usize) -> Result<Arena> {
        let mut shares = self.shares.iter_mut();
        let arena = match shares.find(|share| share.processors.contains(&processor)) {
            Some(share) => share.tract.carve(self.bytes),
            None => Arena::map(self.bytes, self.hugepages),
        };
        arena.with_context(|| format!("mapping {} octets of memory", self.bytes))
    }
}
