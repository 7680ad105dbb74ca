//! What this station asks and says.

use super::Neighbours;
use super::kinds::{Output, Unheard};
use super::state::Ask;
use crate::packet::{Advertisement, Arp, HardwareAddress, Operation, Solicitation, solicited_node};
use crate::time::Moment;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The group of all nodes on a link, which is its broadcast group too.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1);

impl Neighbours {
    /// Says to everybody where this station is: to be called when it has come up, when it has moved, and when another one says
    /// that it is there.
    pub fn announce(&mut self) {
        let output = match self.station.ip {
            IpAddr::V4(own) => Output::Everybody {
                group: Ipv4Addr::BROADCAST.into(),
                frame: self.arp(own, own),
            },
            IpAddr::V6(own) => Output::Everybody {
                group: ALL_NODES.into(),
                frame: self.advertisement(own, ALL_NODES, false),
            },
        };
        self.outputs.push_back(output);
    }

    /// Asks what is to be asked.
    pub(super) fn ask(&mut self, now: Moment, ip: IpAddr, ask: Ask) {
        let at = self.station.hardware;
        match ask {
            Ask::Everybody => self.ask_everybody(now, ip),
            Ask::Itself(way) => {
                let frame = match (self.station.ip, ip) {
                    (IpAddr::V6(own), IpAddr::V6(ip)) => solicitation(at, (own, ip), ip),
                    (_, IpAddr::V4(ip)) => self.arp(self.own_v4(), ip),
                    _ => return,
                };
                self.outputs.push_back(Output::One { way, frame });
            }
            Ask::Path(gid) => {
                // One question for one path: whoever else waits for it gets the answer too.
                if self
                    .entries
                    .on_the_way_to(gid)
                    .iter()
                    .all(|other| *other == ip)
                {
                    self.outputs.push_back(Output::path(&self.station, gid));
                }
            }
        }
    }

    fn ask_everybody(&mut self, now: Moment, ip: IpAddr) {
        if !self.asked.take(now) {
            self.counts.unheard.add(Unheard::NotAskedInTime);
            return;
        }
        let at = self.station.hardware;
        let output = match (self.station.ip, ip) {
            (IpAddr::V6(own), IpAddr::V6(ip)) => {
                let group = solicited_node(ip);
                Output::Everybody {
                    group: group.into(),
                    frame: solicitation(at, (own, group), ip),
                }
            }
            (_, IpAddr::V4(ip)) => Output::Everybody {
                group: Ipv4Addr::BROADCAST.into(),
                frame: self.arp(self.own_v4(), ip),
            },
            _ => return,
        };
        self.outputs.push_back(output);
    }

    fn own_v4(&self) -> Ipv4Addr {
        match self.station.ip {
            IpAddr::V4(own) => own,
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        }
    }

    /// A question: who has `target_ip`?
    fn arp(&self, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Vec<u8> {
        let request = Arp {
            operation: Operation::Request,
            sender: self.station.hardware,
            sender_ip,
            target: HardwareAddress::ZERO,
            target_ip,
        };
        request.frame()
    }

    pub(super) fn arp_reply(&self, target: HardwareAddress, target_ip: Ipv4Addr) -> Vec<u8> {
        let reply = Arp {
            operation: Operation::Reply,
            sender: self.station.hardware,
            sender_ip: self.own_v4(),
            target,
            target_ip,
        };
        reply.frame()
    }

    pub(super) fn advertisement(
        &self,
        own: Ipv6Addr,
        destination: Ipv6Addr,
        solicited: bool,
    ) -> Vec<u8> {
        let advertisement = Advertisement {
            source: own,
            destination,
            target: own,
            hardware: Some(self.station.hardware),
            router: false,
            solicited,
            overrides: true,
        };
        advertisement.frame()
    }

    /// Answers one that has no address to be answered at: everybody hears it.
    pub(super) fn answer_everybody(&mut self, asker: HardwareAddress) {
        let output = match self.station.ip {
            IpAddr::V4(_) => Output::Everybody {
                group: Ipv4Addr::BROADCAST.into(),
                frame: self.arp_reply(asker, Ipv4Addr::UNSPECIFIED),
            },
            IpAddr::V6(own) => Output::Everybody {
                group: ALL_NODES.into(),
                frame: self.advertisement(own, ALL_NODES, false),
            },
        };
        self.outputs.push_back(output);
    }

    /// Whether somebody may be answered now.
    pub(super) fn may_answer(&mut self, now: Moment) -> bool {
        let may = self.answered.take(now);
        if !may {
            self.counts.unheard.add(Unheard::TooManyQuestions);
        }
        may
    }

    /// Somebody else has this station's address.
    pub(super) fn conflict(&mut self, hardware: HardwareAddress) {
        self.counts.unheard.add(Unheard::Conflict);
        let ip = self.station.ip;
        self.outputs.push_back(Output::Conflict { ip, hardware });
    }
}

/// A question: who has `target`? Said by one who tells where it is.
fn solicitation(
    hardware: HardwareAddress,
    (source, destination): (Ipv6Addr, Ipv6Addr),
    target: Ipv6Addr,
) -> Vec<u8> {
    let solicitation = Solicitation {
        source,
        destination,
        target,
        hardware: Some(hardware),
    };
    solicitation.frame()
}
