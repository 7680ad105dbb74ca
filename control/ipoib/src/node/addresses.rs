//! This node's addresses: set by its owner, looked for, and used when they are found free ([`address`](crate::address)).
//!
//! Whether an address can be looked for is seen at the end of every call, from where its link is: so no way of a link down,
//! or of its queue pair to another, has to think of it.

use super::timers::Timer;
use super::{Key, LinkId, Node, Origin, Output};
use crate::address::{self, Address, Deed, Phase};
use crate::link::{Link, QueuePair};
use crate::neighbour::Station;
use crate::packet::{HardwareAddress, Packet, solicited_node};
use crate::time::Moment;
use crate::trouble::{Ignored, Refusal, Trouble};
use std::net::IpAddr;

/// News of an address of this node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressNews {
    /// Nobody else has it: it is in use, and was announced.
    Used,
    /// It is not used any more, since its link is down: when that is up again it is looked for anew.
    Unused,
    /// Somebody else has it: it is not used. It is tried again, unless it is the link-local address of IPv6: then the link
    /// has no IP until it has been down (RFC 4862 section 5.4.5).
    Taken {
        /// Who says so.
        by: HardwareAddress,
    },
    /// It is in use, and somebody else insists on having it, though it was announced in answer (RFC 5227 section 2.4). Told at
    /// most once in [`DEFEND_INTERVAL_MS`](crate::address::DEFEND_INTERVAL_MS), and it is used on: whose it is decides whether to
    /// take it away.
    Contested {
        /// Who insists.
        by: HardwareAddress,
    },
}

impl Node {
    /// Gives a link an address of this node's, or takes it away. It is looked for when the link is up, and used when nobody else
    /// has it: [`Output::Address`] tells. With one of IPv6 its solicited-node group is joined (RFC 4291 section 2.7.1).
    ///
    /// # Errors
    /// No such link; an address of the other IP, or of a group; [`Refusal::GroupsFull`].
    pub fn set_address(
        &mut self,
        now: Moment,
        id: LinkId,
        address: Option<IpAddr>,
    ) -> Result<(), Refusal> {
        let set = self.try_set_address(now, id, address);
        self.settle(now);
        set.map_err(|refusal| self.ledger.refused(refusal))
    }

    fn try_set_address(
        &mut self,
        now: Moment,
        id: LinkId,
        address: Option<IpAddr>,
    ) -> Result<(), Refusal> {
        let link = self.link(id).ok_or(Refusal::UnknownLink)?;
        let old = link.address.map(|address| address.ip());
        if let Some(address) = address {
            match link.group_of(address) {
                Err(Refusal::NotMulticast) => {}
                Ok(_) => return Err(Refusal::Multicast),
                Err(refusal) => return Err(refusal),
            }
        }
        if old == address {
            return Ok(());
        }
        if let Some(IpAddr::V6(address)) = address {
            self.try_join(now, id, solicited_node(address).into())?;
        }
        if let Some(IpAddr::V6(old)) = old {
            self.try_leave(now, id, solicited_node(old).into())?;
        }
        self.disarm(Timer::Neighbours(id));
        self.disarm(Timer::Address(id));
        if let Some(link) = self.link_mut(id) {
            link.address = address.map(Address::new);
            link.forget_neighbours();
            link.forgive();
        }
        self.tell_state(id);
        Ok(())
    }

    /// Begins to look for the addresses of links that have come up, and has those of links that are not up fall.
    pub(super) fn watch_addresses(&mut self, now: Moment) {
        if self.closing.is_some() {
            return;
        }
        for id in self.link_ids() {
            let Some((link, address)) = self.address(id) else {
                continue;
            };
            match (address.phase(), link.can_look()) {
                (Phase::Waiting, true) if self.hears_claims(id) => self.look_for(now, id),
                (Phase::Waiting, _) | (_, true) => {}
                (_, false) => self.drop_address(id),
            }
        }
    }

    /// A link and its address.
    fn address(&self, id: LinkId) -> Option<(&Link, Address)> {
        let link = self.link(id)?;
        Some((link, link.address?))
    }

    /// Whoever has a link's address would be heard. Of IPv6 that includes others that look for it, who speak to its
    /// solicited-node group (RFC 4862 section 5.4.2); the broadcast group is joined in any case.
    fn hears_claims(&self, id: LinkId) -> bool {
        let Some((link, address)) = self.address(id) else {
            return false;
        };
        let IpAddr::V6(ip) = address.ip() else {
            return true;
        };
        let group = link.group_of(solicited_node(ip).into()).ok().flatten();
        let joined = |mgid| self.groups.get(&Key { link: id, mgid });
        group.and_then(joined).is_some_and(|group| group.announced)
    }

    fn look_for(&mut self, now: Moment, id: LinkId) {
        let earliest = self.link(id).map(|link| link.conflicts.earliest(now));
        if let Some(earliest) = earliest.filter(|earliest| *earliest > now) {
            self.arm(Timer::Address(id), earliest);
            return;
        }
        let spread = self.settings.timing.check_ms / 4;
        let first = now.after(self.chance.below(spread + 1));
        if let Some(address) = self.link_mut(id).and_then(|link| link.address.as_mut()) {
            address.ready(first);
        }
        self.arm_address(id);
    }

    /// A link's address is not looked for and not used any more, as long as it is not begun with anew.
    pub(super) fn drop_address(&mut self, id: LinkId) {
        let Some(link) = self.link_mut(id) else {
            return;
        };
        let Some(address) = &mut link.address else {
            return;
        };
        let (ip, used) = (address.ip(), address.phase() == Phase::Used);
        address.fall();
        link.forget_neighbours();
        self.disarm(Timer::Neighbours(id));
        self.disarm(Timer::Address(id));
        if used {
            self.tell_address(id, ip, AddressNews::Unused);
        }
        self.tell_state(id);
    }

    /// An address that is not in use by now will not be, and one that is is not announced any more: of a node that is being
    /// closed.
    pub(super) fn stop_looking(&mut self) {
        for id in self.link_ids() {
            self.disarm(Timer::Address(id));
            let used = |(_, address): (_, Address)| address.phase() == Phase::Used;
            if !self.address(id).is_some_and(used) {
                self.drop_address(id);
            }
        }
    }

    /// Does what is due about a link's address.
    pub(super) fn pass_address(&mut self, now: Moment, id: LinkId) {
        let timing = self.settings.timing;
        let Some(link) = self.link_mut(id).filter(|link| link.can_look()) else {
            return;
        };
        let deed = link.address.as_mut().and_then(|it| it.pass(now, &timing));
        match (deed, self.station(id)) {
            (Some(Deed::Probe), Some(Station { ip, hardware, .. })) => {
                let (group, frame) = address::probe(ip, hardware);
                self.ask_everybody(now, id, group, frame);
            }
            (Some(Deed::Use), Some(station)) => self.use_address(now, id, station),
            (Some(Deed::Announce), Some(_)) => self.announce_again(now, id),
            (Some(Deed::Contest) | None, _) | (_, None) => {}
        }
        self.arm_address(id);
    }

    fn use_address(&mut self, now: Moment, id: LinkId, station: Station) {
        if let Some(link) = self.link_mut(id) {
            link.conflicts = address::Conflicts::default();
            link.forgive();
        }
        self.meet_neighbours(now, id, station);
        self.tell_address(id, station.ip, AddressNews::Used);
        self.tell_state(id);
    }

    /// A packet came on a link whose address is not in use: perhaps from somebody who has it.
    pub(super) fn heard_before_use(
        &mut self,
        now: Moment,
        id: LinkId,
        from: &Origin,
        packet: &Packet<'_>,
    ) {
        let probing = |(_, address): (_, Address)| address.phase() == Phase::Probing;
        let station = self.station(id);
        let Some(station) = station.filter(|_| self.address(id).is_some_and(probing)) else {
            self.ledger.ignored(Ignored::EarlyFrame);
            return;
        };
        match address::claim(station.ip, station.hardware, packet, from) {
            Ok(by) => self.claimed(now, id, station.ip, by),
            Err(why) => {
                if let Some(link) = self.link_mut(id) {
                    link.before.unheard.add(why);
                }
            }
        }
    }

    fn claimed(&mut self, now: Moment, id: LinkId, ip: IpAddr, by: HardwareAddress) {
        let again_ms = self.settings.timing.again_ms;
        let Some(link) = self.links.get_mut(usize::from(id.0)) else {
            return;
        };
        let again = link.conflicts.add(now, again_ms, &mut self.chance);
        if let Some(address) = &mut link.address {
            address.taken(again);
        }
        link.error = Some(self.ledger.refused(Refusal::AddressTaken));
        self.tell_address(id, ip, AddressNews::Taken { by });
        self.tell_state(id);
        self.arm_address(id);
    }

    /// Another host says that an address in use is its own: told as often as something is done about it.
    pub(super) fn disputed(&mut self, now: Moment, id: LinkId, ip: IpAddr, by: HardwareAddress) {
        let Some(link) = self.link_mut(id) else {
            return;
        };
        let address = link.address.as_mut().filter(|it| it.ip() == ip);
        match address.and_then(|address| address.disputed(now)) {
            Some(Deed::Announce) => {
                if let Some(neighbours) = &mut link.neighbours {
                    neighbours.announce();
                }
            }
            Some(Deed::Contest) => self.tell_address(id, ip, AddressNews::Contested { by }),
            Some(Deed::Probe | Deed::Use) | None => return,
        }
        let (link, hardware) = (id, by);
        self.tell(now, Trouble::Conflict { link, ip, hardware });
    }

    fn tell_address(&mut self, link: LinkId, ip: IpAddr, news: AddressNews) {
        self.outputs.push_back(Output::Address { link, ip, news });
    }

    fn arm_address(&mut self, id: LinkId) {
        self.disarm(Timer::Address(id));
        let due = self.address(id).and_then(|(_, address)| address.due());
        if let Some(due) = due {
            self.arm(Timer::Address(id), due);
        }
    }

    /// Who this node is on a link, or will be when its address is found free.
    fn station(&self, id: LinkId) -> Option<Station> {
        let (link, address) = self.address(id)?;
        let QueuePair::Open(_, qpn) = link.queue else {
            return None;
        };
        Some(Station {
            hardware: HardwareAddress::datagrams(qpn, self.port_gid()?),
            ip: address.ip(),
            p_key: link.spec.p_key,
        })
    }
}
