//! This node's own address on a link: looked for before it is used, so that it is nobody else's (RFC 5227 section 2.1, RFC
//! 4862 section 5.4).
//!
//! ```text
//!              link up, groups joined          silence
//!   ─► Waiting ─────────────────────► Probing ─────────► Used ─► Neighbours
//!         ▲                            │   ▲
//!         │                      claim ▼   │ pause
//!         └── link down, from all      Taken
//! ```
//!
//! **Before it is used** nothing is answered for it and nothing is sent from it: an address that is not in use has no
//! [`Neighbours`](crate::neighbour::Neighbours), which are what answers and asks. Looking for it says no more than that: an ARP
//! probe has the unspecified address as its sender, and so has a solicitation of IPv6.
//!
//! **How it is looked for.** An address of IPv4 by [`probes`](crate::settings::Timing::probes) ARP probes, evenly over
//! [`check_ms`](crate::settings::Timing::check_ms). RFC 5227 section 1.1 has three of them too, over 4 to 7 seconds, for networks of
//! which nothing is known; a subnet forwards at once, and the broadcast group is joined before the link counts as up. One of
//! IPv6 by one solicitation, when the address's solicited-node group is joined and attached, and then RetransTimer, which is
//! the same `check_ms` (RFC 4862 sections 5.1 and 5.4.2). The first goes after a random wait, so that nodes that start
//! together do not speak together.
//!
//! **When it is used** it is announced, and once more after [`ANNOUNCE_INTERVAL_MS`] for those that did not hear the first: who
//! has an old hardware address of it must not keep that (RFC 5227 section 2.3: `ANNOUNCE_NUM`, 2; RFC 4861 section 7.2.6: up to
//! three).
//!
//! **What is a claim** is in [`claim`]. Who claims an address in use is counted and told of, as a
//! [`Conflict`](crate::trouble::Trouble::Conflict), and answered as [`Defence`] has it. It is used until its owner takes it away.
//!
//! **When it is taken** it is tried again after a pause that doubles up to a minute, as [`Conflicts`] has it. Not so the
//! link-local address of IPv6, which is made of the port's GUID and so nobody else's unless something is badly wrong: then the
//! link's IP is disabled until the link has been down (RFC 4862 section 5.4.5).

mod claim;
mod conflicts;
mod defence;
mod phase;

pub use claim::claim;
pub use conflicts::{Conflicts, MAX_CONFLICTS, RATE_LIMIT_INTERVAL_MS};
pub use defence::{DEFEND_INTERVAL_MS, Defence, Dispute};
pub use phase::{Event, Phase};

use crate::packet::{Arp, HardwareAddress, Operation, Solicitation, solicited_node};
use crate::settings::Timing;
use crate::time::Moment;
use rpcrdma_listed::Illegal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Between the two announcements of an address, in milliseconds (RFC 5227 section 1.1: `ANNOUNCE_INTERVAL`).
pub const ANNOUNCE_INTERVAL_MS: u64 = 2_000;

/// An address, and how far it is known to be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    ip: IpAddr,
    phase: Phase,
    /// Probes sent since it was last begun to be looked for.
    probes: u8,
    /// When [`Address::pass`] has something to do.
    due: Option<Moment>,
    defence: Defence,
    /// When it was last defended.
    defended: Moment,
}

/// What is to be done about an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Send a [`probe`].
    Probe,
    /// Use it from now on, and announce it.
    Use,
    /// Announce it once more, or because somebody else says that he has it.
    Announce,
    /// Tell whose it is that somebody insists on having it.
    Contest,
}

impl Address {
    /// One on a link that is not up.
    #[must_use]
    pub const fn new(ip: IpAddr) -> Self {
        Self {
            ip,
            phase: Phase::Waiting,
            probes: 0,
            due: None,
            defence: Defence::Calm,
            defended: Moment(0),
        }
    }

    /// The address.
    #[must_use]
    pub const fn ip(&self) -> IpAddr {
        self.ip
    }

    /// Where it is.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// When [`Address::pass`] is to be called next; `None` while nothing depends on time.
    #[must_use]
    pub const fn due(&self) -> Option<Moment> {
        self.due
    }

    /// It is nobody else's by what it is made of (RFC 4862 section 5.4.5).
    const fn is_of_the_port(&self) -> bool {
        matches!(self.ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
    }

    /// It is taken, and its link has no IP without it.
    #[must_use]
    pub const fn disables_ip(&self) -> bool {
        matches!(self.phase, Phase::Taken) && self.is_of_the_port()
    }

    /// Begins to look for it: the first probe goes at `first`.
    pub fn ready(&mut self, first: Moment) {
        self.step(Event::Ready);
        self.probes = 0;
        self.due = Some(first);
    }

    /// Its link is not up any more, or its station another one.
    pub fn fall(&mut self) {
        self.step(Event::Fall);
        self.due = None;
    }

    /// Somebody else has it; it is tried again at `again`, if at all.
    pub fn taken(&mut self, again: Moment) {
        self.step(Event::Claim);
        self.due = Some(again).filter(|_| !self.is_of_the_port());
    }

    /// What is due, if anything is.
    pub fn pass(&mut self, now: Moment, timing: &Timing) -> Option<Deed> {
        self.due.filter(|due| *due <= now)?;
        if self.phase == Phase::Used {
            self.due = None;
            return Some(Deed::Announce);
        }
        if self.phase == Phase::Taken {
            self.step(Event::Retry);
            self.probes = 0;
        }
        let probes = match self.ip {
            IpAddr::V4(_) => timing.probes.max(1),
            IpAddr::V6(_) => 1,
        };
        if self.probes < probes {
            self.probes += 1;
            self.due = Some(now.after(timing.check_ms / u64::from(probes)));
            return Some(Deed::Probe);
        }
        self.step(Event::Silence);
        self.due = Some(now.after(ANNOUNCE_INTERVAL_MS));
        self.defence = Defence::Calm;
        Some(Deed::Use)
    }

    /// Another host says that it has the address, which is in use (RFC 5227 section 2.4): what is to be done, if anything is.
    pub fn disputed(&mut self, now: Moment) -> Option<Deed> {
        let over = now.since(self.defended) >= DEFEND_INTERVAL_MS;
        if self.defence != Defence::Calm && over {
            self.dispute(Dispute::Lull);
        }
        let before = self.defence;
        self.dispute(Dispute::Claim);
        match (before, self.defence) {
            (_, Defence::Defended) => {
                self.defended = now;
                Some(Deed::Announce)
            }
            (Defence::Defended, Defence::Contested) => Some(Deed::Contest),
            (_, Defence::Calm | Defence::Contested) => None,
        }
    }

    fn dispute(&mut self, event: Dispute) {
        match self.defence.next(event) {
            Ok(next) => self.defence = next,
            Err(Illegal) => debug_assert!(false, "{:?} on {event:?}", self.defence),
        }
    }

    /// Moves it; a step that is none is our own mistake, which a release survives.
    fn step(&mut self, event: Event) {
        match self.phase.next(event) {
            Ok(next) => self.phase = next,
            Err(Illegal) => debug_assert!(false, "{:?} on {event:?}", self.phase),
        }
    }
}

/// What asks everybody whether somebody has an address: a group, and a frame from its encapsulation header on (RFC 5227
/// section 2.1.1, RFC 4862 section 5.4.2).
#[must_use]
pub fn probe(ip: IpAddr, own: HardwareAddress) -> (IpAddr, Vec<u8>) {
    match ip {
        IpAddr::V4(ip) => {
            let probe = Arp {
                operation: Operation::Request,
                sender: own,
                sender_ip: Ipv4Addr::UNSPECIFIED,
                target: HardwareAddress::ZERO,
                target_ip: ip,
            };
            (Ipv4Addr::BROADCAST.into(), probe.frame())
        }
        IpAddr::V6(ip) => {
            let group = solicited_node(ip);
            let probe = Solicitation {
                source: Ipv6Addr::UNSPECIFIED,
                destination: group,
                target: ip,
                hardware: None,
            };
            (group.into(), probe.frame())
        }
    }
}

#[cfg(test)]
mod tests;
