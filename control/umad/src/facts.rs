//! What is known of a port.

use crate::ffi::{Library, RawPort, port_names};
use crate::smp::PortInfo;
use crate::{Absent, Fault};
use rpcrdma_ipoib::gid::{Gid, Guid, Lid};
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::port::PortFacts;
use std::fmt;
use std::str::FromStr;

/// Longest name of a device, in octets: the library's field, less its zero.
const DEVICE_OCTETS: usize = 19;

/// The InfiniBand ports of this machine, in the order of their devices' names.
///
/// # Errors
/// [`Absent`], to be shown as it is.
pub fn ports() -> Result<Vec<PortName>, Absent> {
    Library::load().map(port_names)
}

/// The name of a port: its device, and its number from 1, written `mlx5_0/1`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PortName {
    device: String,
    number: u8,
}

impl PortName {
    /// Of a device's name of 1 to 19 octets without a slash, and a number that is not 0.
    #[must_use]
    pub fn new(device: &str, number: u8) -> Option<Self> {
        let sound = (1..=DEVICE_OCTETS).contains(&device.len()) && !device.contains(['/', '\0']);
        (sound && number != 0).then(|| Self {
            device: device.to_owned(),
            number,
        })
    }

    /// The device's name.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The port's number, from 1.
    #[must_use]
    pub const fn number(&self) -> u8 {
        self.number
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.device, self.number)
    }
}

impl FromStr for PortName {
    type Err = Absent;

    fn from_str(text: &str) -> Result<Self, Absent> {
        let parsed = text
            .rsplit_once('/')
            .and_then(|(device, number)| Self::new(device, number.parse().ok()?));
        parsed.ok_or_else(|| Absent::NoPort { name: text.into() })
    }
}

/// What a port is doing (IBA 14.2.5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortState {
    /// No cable, or nobody at its other end.
    Down,
    /// The link is there; the subnet manager has still to say what it is called.
    Initialize,
    /// Almost ready.
    Armed,
    /// In use.
    Active,
}

impl PortState {
    /// Of its code; what is unknown is down.
    pub(crate) const fn from_code(code: u32) -> Self {
        match code {
            2 => Self::Initialize,
            3 => Self::Armed,
            // 5 is "active, and an error is being looked at".
            4 | 5 => Self::Active,
            _ => Self::Down,
        }
    }
}

/// How long packets may be, payload alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMtu {
    /// With the neighbour that is there now.
    pub active: Mtu,
    /// At most.
    pub most: Mtu,
}

/// What is known of a port; all in host order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What it is doing.
    pub state: PortState,
    /// Its base LID, 0 for none yet.
    pub lid: Lid,
    /// How many low bits of the LID are path bits.
    pub lmc: u8,
    /// The LID of the subnet manager, and of the SA with it; 0 for none.
    pub sm_lid: Lid,
    /// The service level to reach it.
    pub sm_sl: u8,
    /// The subnet's prefix.
    pub gid_prefix: u64,
    /// The port's GUID.
    pub guid: Guid,
    /// Its P_Key table, by index; 0 where there is none.
    pub p_keys: Vec<PKey>,
    /// CapabilityMask of its PortInfo (IBA 14.2.5.6).
    pub capabilities: u32,
    /// Its rate in Mb/s, as the sum of its lanes' signalling.
    pub rate_mbps: u32,
    /// `None` where its own agent does not answer (see the crate's page): a verbs device knows it then.
    pub mtu: Option<PortMtu>,
    /// An InfiniBand port; RoCE and iWARP ports have no subnet administrator.
    pub is_infiniband: bool,
}

impl Facts {
    /// The port's GID of index 0.
    #[must_use]
    pub const fn gid(&self) -> Gid {
        Gid::of_port(self.gid_prefix, self.guid)
    }

    /// Where a P_Key is in the table, with that very membership bit.
    #[must_use]
    pub fn index_of(&self, p_key: PKey) -> Option<u16> {
        let index = self.p_keys.iter().position(|held| *held == p_key)?;
        u16::try_from(index).ok()
    }

    /// The same for the machines of `rpcrdma-ipoib`; `mtu` is what the port can do where nobody has said.
    #[must_use]
    pub fn for_node(&self, mtu: Mtu) -> PortFacts {
        PortFacts {
            gid: self.gid(),
            lid: self.lid,
            sm_lid: self.sm_lid,
            sm_sl: self.sm_sl,
            active: self.state == PortState::Active,
            mtu: self.mtu.map_or(mtu, |known| known.active),
            p_keys: self.p_keys.clone(),
        }
    }

    /// Where the partition of management is in the table, with whatever membership: requests to the SA go by it.
    pub(crate) fn management_index(&self) -> u16 {
        let management = PKey::DEFAULT.partition();
        let index = self
            .p_keys
            .iter()
            .position(|held| held.partition() == management);
        index
            .and_then(|index| u16::try_from(index).ok())
            .unwrap_or(0)
    }

    /// Of what sysfs says. Numbers beyond their fields are cut off.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "fields of 16, 8 and 4 bits"
    )]
    pub(crate) fn from_sysfs(raw: &RawPort) -> Self {
        Self {
            state: PortState::from_code(raw.state),
            lid: Lid(raw.lid as u16),
            lmc: raw.lmc as u8 & 7,
            sm_lid: Lid(raw.sm_lid as u16),
            sm_sl: raw.sm_sl as u8 & 15,
            gid_prefix: raw.gid_prefix,
            guid: Guid(raw.guid),
            p_keys: raw.p_keys.iter().copied().map(PKey).collect(),
            capabilities: raw.capabilities,
            rate_mbps: raw.rate_gbps.saturating_mul(1000),
            mtu: None,
            // Before Linux 2.6.39 there was nothing else, and nothing said so.
            is_infiniband: matches!(raw.link_layer.as_str(), "InfiniBand" | "IB"),
        }
    }

    /// What the port's own agent says wins.
    pub(crate) fn correct(&mut self, info: &PortInfo) {
        self.state = info.state;
        self.lid = info.lid;
        self.lmc = info.lmc;
        self.sm_lid = info.sm_lid;
        self.sm_sl = info.sm_sl;
        self.gid_prefix = info.gid_prefix;
        self.capabilities = info.capabilities;
        self.mtu = info.mtu;
        if let Some(rate) = info.rate_mbps {
            self.rate_mbps = rate;
        }
    }
}

/// Reads what sysfs says.
pub(crate) fn from_sysfs(library: &Library, name: &PortName) -> Result<Facts, Fault> {
    crate::ffi::port_facts(library, name).map(|raw| Facts::from_sysfs(&raw))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A port that is down.
    pub(crate) fn down() -> Facts {
        Facts::from_sysfs(&RawPort {
            p_keys: vec![0xFFFF, 0x8006, 0, 0],
            guid: 0x10_0005,
            link_layer: "IB".into(),
            ..RawPort::default()
        })
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let name: PortName = "mlx5_0/1".parse().expect("a name");
        assert_eq!((name.device(), name.number()), ("mlx5_0", 1));
        assert_eq!(name.to_string(), "mlx5_0/1");
        for wrong in [
            "",
            "mlx5_0",
            "mlx5_0/",
            "mlx5_0/0",
            "mlx5_0/256",
            "/1",
            "a/b/1",
        ] {
            assert!(wrong.parse::<PortName>().is_err(), "{wrong}");
        }
        assert!(PortName::new("twenty_octets_is_more", 1).is_none());
    }

    #[test]
    fn p_keys_are_found_with_their_membership_and_that_of_management_without() {
        let mut facts = down();
        assert_eq!(facts.index_of(PKey(0x8006)), Some(1));
        assert_eq!(facts.index_of(PKey(0x0006)), None);
        facts.p_keys = vec![PKey(0x8006), PKey(0x7FFF)];
        assert_eq!(facts.management_index(), 1);
        facts.p_keys.clear();
        assert_eq!(facts.management_index(), 0);
    }

    #[test]
    fn what_the_port_says_wins_over_sysfs() {
        let mut facts = down();
        let info = PortInfo::parse(&crate::smp::tests::port_info()).expect("an answer");
        facts.correct(&info);
        assert_eq!(facts.state, PortState::Active);
        assert_eq!((facts.lid, facts.sm_lid), (Lid(5), Lid(1)));
        assert_eq!(facts.guid, Guid(0x10_0005), "not in PortInfo");
        assert!(facts.mtu.is_some());
    }
}
