//! What a node's link is like.

use rpcrdma_fabric::datagram::GroupLimits;

/// Settings of the one link of a node. The default is up, takes 4096 octets, and is a full member
/// of the default partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// Whether it carries anything.
    pub up: bool,
    /// Longest datagram, octets; a real link's is one of 256, 512, 1024, 2048 and 4096.
    pub mtu: u32,
    /// Its P_Key table.
    pub p_keys: Vec<u16>,
    /// Where the subnet manager is said to be; 0 for nowhere.
    pub sm_lid: u16,
    /// What it has for groups. `groups` and `attachments` are of the node, `attachments_each` of a
    /// group.
    pub limits: GroupLimits,
}

impl Default for LinkSettings {
    fn default() -> LinkSettings {
        LinkSettings {
            up: true,
            mtu: 4096,
            p_keys: vec![0xFFFF],
            sm_lid: 1,
            limits: GroupLimits {
                groups: 8192,
                attachments_each: 248,
                attachments: 65_536,
            },
        }
    }
}
