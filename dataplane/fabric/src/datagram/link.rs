//! Links of devices: what is known of one, and what changes.

use super::GidOctets;

/// The limited form of a P_Key lacks this bit; the full form has it.
const FULL_MEMBERSHIP: u16 = 0x8000;

/// What is known of a link of a device: a port, in the words of InfiniBand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The device's name.
    pub device: String,
    /// The link's number, from 1.
    pub number: u8,
    /// It is ready.
    pub up: bool,
    /// It is Ethernet: there is no subnet administrator, and groups are joined by
    /// [`Memberships`](super::Memberships).
    pub ethernet: bool,
    /// Its LID; 0 on Ethernet, and where the subnet manager has given none yet.
    pub lid: u16,
    /// The subnet manager's LID, where the administrator is asked too; 0 for none.
    pub sm_lid: u16,
    /// The service level to the subnet manager.
    pub sm_service_level: u8,
    /// Its GIDs by their index; all zero for one that is not there.
    pub gids: Vec<GidOctets>,
    /// Its P_Key table by index; 0 for an empty place, of which none are at the end.
    pub p_keys: Vec<u16>,
    /// Largest payload of a packet now, octets.
    pub mtu: u32,
    /// What its device has for groups.
    pub limits: GroupLimits,
}

/// How much of multicast a device has, for all that use it together. 0 of everything: it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupLimits {
    /// Groups.
    pub groups: u32,
    /// Queue pairs attached to one group.
    pub attachments_each: u32,
    /// Attachments of queue pairs to groups.
    pub attachments: u32,
}

/// What has changed of a link: its facts are to be asked for anew ([`DatagramFabric::link`](super::DatagramFabric::link)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkChange {
    /// It is down.
    Down,
    /// It is up.
    Up,
    /// It has another LID: whoever speaks to it must learn it.
    Lid,
    /// The subnet manager has moved, or another one has come.
    SubnetManager,
    /// The subnet manager asks that everything be joined and subscribed to again (IBA 14.4.11).
    Reregister,
    /// The P_Key table is another one. Pairs stay at their place in it: one whose P_Key is elsewhere
    /// now is of no use any more.
    PKeys,
    /// The GID table is another one. The same goes for pairs and the GIDs they send from.
    Gids,
    /// Its device is gone.
    Gone,
}

/// Which link: the device's name and the link's number, from 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkName {
    /// The device.
    pub device: String,
    /// The link; 0 with [`LinkChange::Gone`]: all of the device's.
    pub number: u8,
}

/// Two P_Keys whose holders hear each other: one partition, and one of them a full member of it
/// (IBA 10.9.3).
#[must_use]
pub fn p_keys_match(one: u16, other: u16) -> bool {
    let partition = |p_key: u16| p_key & !FULL_MEMBERSHIP;
    partition(one) == partition(other)
        && partition(one) != 0
        && (one | other) & FULL_MEMBERSHIP != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limited_members_do_not_hear_each_other() {
        assert!(p_keys_match(0x8006, 0x8006));
        assert!(p_keys_match(0x8006, 0x0006));
        assert!(!p_keys_match(0x0006, 0x0006));
        assert!(!p_keys_match(0x8006, 0x8007));
        assert!(!p_keys_match(0x8000, 0x8000), "partition 0 is none");
    }
}
