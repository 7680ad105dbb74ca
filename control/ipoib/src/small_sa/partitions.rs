//! Partitions: who may talk to whom.

use super::SmallSa;
use crate::gid::Gid;
use crate::pkey::PKey;
use std::collections::BTreeSet;

/// A partition of the subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its key, whichever form.
    pub p_key: PKey,
    /// Every port is in it; otherwise those of `full` and `limited`.
    pub everybody: bool,
    /// Full members.
    pub full: BTreeSet<Gid>,
    /// Limited members.
    pub limited: BTreeSet<Gid>,
}

impl Partition {
    /// One that every port is a full member of.
    #[must_use]
    pub const fn of_all(p_key: PKey) -> Self {
        Self {
            p_key,
            everybody: true,
            full: BTreeSet::new(),
            limited: BTreeSet::new(),
        }
    }
}

impl SmallSa {
    /// Adds a partition, or replaces it.
    pub fn set_partition(&mut self, partition: Partition) {
        let key = partition.p_key.partition();
        self.partitions.retain(|it| it.p_key.partition() != key);
        self.partitions.push(partition);
    }

    /// The P_Key table that a port is given, in the order in which partitions were added.
    #[must_use]
    pub fn p_keys(&self, port: Gid) -> Vec<PKey> {
        let key = |partition: &Partition| {
            if partition.everybody || partition.full.contains(&port) {
                Some(partition.p_key.full())
            } else if partition.limited.contains(&port) {
                Some(PKey(partition.p_key.partition()))
            } else {
                None
            }
        };
        self.partitions.iter().filter_map(key).collect()
    }

    /// The port is a member of a partition, full or limited.
    pub(super) fn in_partition(&self, port: Gid, p_key: PKey) -> bool {
        let same = |own: &PKey| own.partition() == p_key.partition();
        self.p_keys(port).iter().any(same)
    }
}
