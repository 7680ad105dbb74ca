//! Links of devices, and what a pair on one is made of.

use super::core::{Core, Parts};
use super::kind::{failure, of_error};
use super::pair::Keys;
use super::way::Origin;
use super::{ManagedDatagrams, ManagedWanted, VerbsDatagrams};
use crate::cm::{Channel, Identifier};
use crate::device::{self, GidKind};
use crate::fabric::{Known, VerbsFabric};
use crate::object::Device;
use rdma_core_sys as rdma;
use rpcrdma_fabric::datagram::{
    DatagramFabric, Failure, FailureKind, GidOctets, GroupLimits, Link, LinkChange, LinkName,
    PairFacts, PairWanted,
};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

/// Most of either queue's entries.
const DEPTH_MOST: u32 = 4096;
/// Q_Keys with this bit are controlled.
const CONTROLLED: u32 = 0x8000_0000;

impl DatagramFabric for VerbsFabric {
    type Pair = VerbsDatagrams;

    fn link(&self, device: Option<&str>, number: u8) -> Result<Link, Failure> {
        let known = self.named(device)?;
        read_link(self, known, number)
    }

    fn open_pair(&mut self, wanted: &PairWanted) -> Result<VerbsDatagrams, Failure> {
        let known = self.named(wanted.device.as_deref())?;
        let link = read_link(self, known, wanted.link)?;
        let p_key_index = p_key_index(&known.device, wanted.link, wanted.p_key)?;
        let gid_index = match wanted.gid_index {
            Some(index) => index,
            None => self.gid_index(known, wanted.link)?,
        };
        let keys = Keys {
            link: wanted.link,
            p_key_index,
            q_key: wanted.q_key,
        };
        let depths = (wanted.receives, wanted.sends);
        let parts = parts(known, &link, gid_index, depths, wanted.p_key)?;
        let core = Core::new(parts, None, Some(keys)).map_err(|fault| {
            let privilege = fault.errno == libc::EPERM && wanted.q_key & CONTROLLED != 0;
            match privilege {
                true => FailureKind::Forbidden.because(format!(
                    "Q_Key {:#010x} is controlled: it takes CAP_NET_RAW: {fault}",
                    wanted.q_key
                )),
                false => failure(fault),
            }
        })?;
        Ok(VerbsDatagrams {
            core,
            attached: BTreeSet::new(),
        })
    }

    fn link_change(&mut self) -> Option<(LinkName, LinkChange)> {
        self.next_link_change()
    }
}

impl VerbsFabric {
    /// Makes a queue pair on an address of an interface, whose groups the connection manager joins.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Absent`] where no device has the address, and those of
    /// [`DatagramFabric::open_pair`].
    pub fn open_managed(&mut self, wanted: &ManagedWanted) -> Result<ManagedDatagrams, Failure> {
        let channel = Channel::open(self.library()).map_err(of_error)?;
        let id = Identifier::for_datagrams(&channel, wanted.space.raw()).map_err(failure)?;
        let at = SocketAddr::new(wanted.address.ip(), 0);
        let at = match (at, wanted.address) {
            (SocketAddr::V6(mut at), SocketAddr::V6(with)) => {
                at.set_scope_id(with.scope_id());
                SocketAddr::V6(at)
            }
            (at, _) => at,
        };
        let nowhere = || FailureKind::Absent.because(format!("no RDMA device has {}", at.ip()));
        id.bind(at).map_err(|fault| match fault.errno {
            libc::ENODEV | libc::EADDRNOTAVAIL => nowhere(),
            _ => failure(fault),
        })?;
        let context = id.context().ok_or_else(nowhere)?;
        let number = id.link();
        let device = self.device_of(context).ok_or_else(nowhere)?;
        let known = self.named(Some(device.name()))?;
        let link = read_link(self, known, number)?;
        let gid_index = self.gid_index_of(known, number, at)?;
        let depths = (wanted.receives, wanted.sends);
        let parts = parts(known, &link, gid_index, depths, 0)?;
        let mut core = Core::new(parts, Some(id), None).map_err(failure)?;
        core.facts.p_key = p_key_at(&device, number, core.p_key_index()).unwrap_or(0);
        ManagedDatagrams::new(core, channel, at)
    }

    fn named(&self, device: Option<&str>) -> Result<&Known, Failure> {
        self.choose_device(device, None).map_err(of_error)
    }

    /// The GID that the configuration, or the rule, has a link speak from.
    fn gid_index(&self, known: &Known, number: u8) -> Result<u32, Failure> {
        let links = self.links(known);
        let link = links.iter().find(|link| link.number == number);
        let chosen = link.and_then(|link| link.chosen[0].or(link.chosen[1]));
        let chosen = chosen.ok_or_else(|| FailureKind::Absent.because("the link has no GID"))?;
        Ok(chosen.index)
    }

    /// The GID that an address of a link is.
    fn gid_index_of(&self, known: &Known, number: u8, at: SocketAddr) -> Result<u32, Failure> {
        let links = self.links(known);
        let link = links.iter().find(|link| link.number == number);
        let gids = link.map(|link| link.gids.as_slice()).unwrap_or_default();
        let of_address = gids.iter().filter(|gid| gid.ip() == Some(at.ip()));
        let best = of_address.max_by_key(|gid| gid.kind);
        // On InfiniBand addresses are not in the table, and there is one GID to speak from.
        let of_subnet = || gids.iter().find(|gid| gid.kind == GidKind::InfiniBand);
        best.or_else(of_subnet)
            .map(|gid| gid.index)
            .ok_or_else(|| FailureKind::Absent.because(format!("{} has no GID", at.ip())))
    }
}

fn parts(
    known: &Known,
    link: &Link,
    gid_index: u32,
    (receives, sends): (u32, u32),
    p_key: u16,
) -> Result<Parts, Failure> {
    let gid = usize::try_from(gid_index).ok();
    let gid = gid.and_then(|index| link.gids.get(index).copied());
    let absent = || FailureKind::Absent.because(format!("the link has no GID {gid_index}"));
    let gid = gid.filter(|gid| *gid != [0; 16]).ok_or_else(absent)?;
    let deepest = known.limits.depth.clamp(1, DEPTH_MOST);
    Ok(Parts {
        device: Arc::clone(&known.device),
        facts: PairFacts {
            device: link.device.clone(),
            link: link.number,
            queue_pair: 0,
            p_key,
            q_key: 0,
            gid,
            payload_bytes: link.mtu,
        },
        ethernet: link.ethernet,
        origin: Origin {
            link: link.number,
            gid_index: u8::try_from(gid_index).map_err(|_| absent())?,
        },
        receives: receives.clamp(1, deepest),
        sends: sends.clamp(1, deepest),
    })
}

fn read_link(fabric: &VerbsFabric, known: &Known, number: u8) -> Result<Link, Failure> {
    let context = known.device.context();
    let name = known.device.name();
    if context.transport() == rdma::IBV_TRANSPORT_IWARP {
        let why = format!("{name} speaks TCP: it has no datagrams");
        return Err(FailureKind::Unsupported.because(why));
    }
    let links = fabric.links(known);
    let link = links.iter().find(|link| link.number == number);
    let absent = || FailureKind::Absent.because(format!("{name} has no link {number}"));
    let link = link.ok_or_else(absent)?;
    let now = device::link(context, number).map_err(failure)?;
    let all = device::attributes(known.device.library(), context).map_err(failure)?;
    let positive = |n: libc::c_int| u32::try_from(n).unwrap_or(0);
    Ok(Link {
        device: name.to_owned(),
        number,
        up: link.state == device::LinkState::Active,
        ethernet: link.ethernet,
        lid: now.lid,
        sm_lid: now.sm_lid,
        sm_service_level: now.sm_sl,
        gids: by_index(link.gids.iter().map(|gid| (gid.index, gid.octets))),
        p_keys: p_keys(&known.device, number, now.pkey_tbl_len),
        mtu: link.mtu,
        limits: GroupLimits {
            groups: positive(all.max_mcast_grp),
            attachments_each: positive(all.max_mcast_qp_attach),
            attachments: positive(all.max_total_mcast_qp_attach),
        },
    })
}

/// A table without gaps.
fn by_index(gids: impl Iterator<Item = (u32, GidOctets)>) -> Vec<GidOctets> {
    let mut table = Vec::new();
    for (index, gid) in gids {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if index >= table.len() {
            table.resize(
                index.saturating_add(1).min(usize::from(u8::MAX) + 1),
                [0; 16],
            );
        }
        if let Some(place) = table.get_mut(index) {
            *place = gid;
        }
    }
    table
}

fn p_key_at(device: &Device, link: u8, index: u16) -> Option<u16> {
    device::p_key(device.library(), device.context(), link, index)
}

fn p_keys(device: &Device, link: u8, entries: u16) -> Vec<u16> {
    let table = (0..entries).map_while(|index| p_key_at(device, link, index));
    to_the_last(table.collect())
}

/// A table up to its last place that is not empty.
fn to_the_last(mut table: Vec<u16>) -> Vec<u16> {
    let last = table.iter().rposition(|p_key| p_key & 0x7FFF != 0);
    table.truncate(last.map_or(0, |last| last + 1));
    table
}

fn p_key_index(device: &Device, link: u8, p_key: u16) -> Result<u16, Failure> {
    let now = device::link(device.context(), link).map_err(failure)?;
    let is_it = |index: &u16| p_key_at(device, link, *index) == Some(p_key);
    (0..now.pkey_tbl_len).find(is_it).ok_or_else(|| {
        FailureKind::NoPartition.because(format!(
            "P_Key {p_key:#06x} is not in the table of {} link {link}",
            device.name()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_each_gid_at_its_index() {
        let table = by_index([(2, [2; 16]), (0, [1; 16])].into_iter());
        assert_eq!(table, [[1; 16], [0; 16], [2; 16]]);
        assert_eq!(
            to_the_last(vec![0xFFFF, 0, 0x8006, 0, 0x8000]),
            [0xFFFF, 0, 0x8006]
        );
        assert_eq!(to_the_last(vec![0, 0]), []);
        assert_eq!(by_index([(u32::MAX, [2; 16])].into_iter()).len(), 256);
    }
}
