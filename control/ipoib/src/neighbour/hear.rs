//! What others ask and say.

use super::Neighbours;
use super::kinds::Unheard;
use super::state::Event;
use crate::packet::{Advertisement, Arp, HardwareAddress, Operation, Packet, Solicitation};
use crate::time::Moment;
use std::net::{IpAddr, Ipv6Addr};

impl Neighbours {
    /// Takes a packet of ARP or neighbour discovery; `from` is the queue pair that its headers say it is from, where it had a
    /// global route header.
    pub fn heard(&mut self, now: Moment, packet: &Packet<'_>, from: Option<HardwareAddress>) {
        let taken = match (packet, self.station.ip) {
            (Packet::Arp(arp), IpAddr::V4(_)) => self.heard_arp(now, arp, from),
            (Packet::Solicitation(it), IpAddr::V6(own)) => {
                self.heard_solicitation(now, own, it, from)
            }
            (Packet::Advertisement(it), IpAddr::V6(own)) => {
                self.heard_advertisement(now, own, it, from)
            }
            _ => Err(Unheard::OtherKind),
        };
        match taken {
            Ok(()) => {}
            // Counted and told by who found it.
            Err(Unheard::Conflict) => {}
            Err(why) => self.counts.unheard.add(why),
        }
    }

    /// Who speaks is who it says it is, and not this station.
    fn check(
        &mut self,
        ip: IpAddr,
        hardware: HardwareAddress,
        from: Option<HardwareAddress>,
    ) -> Result<(), Unheard> {
        if from.is_some_and(|sender| sender.gid != hardware.gid) {
            return Err(Unheard::Impostor);
        }
        if hardware.is_same(&self.station.hardware) {
            return Err(Unheard::Own);
        }
        if ip == self.station.ip {
            self.conflict(hardware);
            return Err(Unheard::Conflict);
        }
        Ok(())
    }

    fn heard_arp(
        &mut self,
        now: Moment,
        arp: &Arp,
        from: Option<HardwareAddress>,
    ) -> Result<(), Unheard> {
        let (ip, hardware) = (IpAddr::from(arp.sender_ip), arp.sender);
        self.check(ip, hardware, from)?;
        let ours = IpAddr::from(arp.target_ip) == self.station.ip;
        let answered = self.bounds.answers || arp.operation == Operation::Reply;
        match (arp.operation, ours && answered) {
            (Operation::Request, true) if ip.is_unspecified() => {
                if self.may_answer(now) {
                    self.answer_everybody(hardware);
                }
                Ok(())
            }
            (Operation::Request, true) => {
                let reply = self.arp_reply(hardware, arp.sender_ip);
                self.answer(now, ip, hardware, reply);
                Ok(())
            }
            (Operation::Reply, true) => self.learn(now, ip, Event::Told(hardware)),
            (Operation::Request | Operation::Reply, false) => {
                self.learn(now, ip, Event::Hinted(hardware, true))
            }
        }
    }

    fn heard_solicitation(
        &mut self,
        now: Moment,
        own: Ipv6Addr,
        asked: &Solicitation,
        from: Option<HardwareAddress>,
    ) -> Result<(), Unheard> {
        let ip = IpAddr::from(asked.source);
        if let Some(hardware) = asked.hardware {
            self.check(ip, hardware, from)?;
        }
        let nobody = asked.source.is_unspecified();
        // A probe for this station's address that this station itself has sent comes back by the group.
        if nobody && from.is_some_and(|it| it.is_same(&self.station.hardware)) {
            return Err(Unheard::Own);
        }
        if asked.target != own || !self.bounds.answers {
            let hint = asked.hardware.filter(|_| !nobody);
            let hint = hint.ok_or(Unheard::NotAsked)?;
            return self.learn(now, ip, Event::Hinted(hint, true));
        }
        if nobody {
            if self.may_answer(now) {
                self.answer_everybody(HardwareAddress::ZERO);
            }
            return Ok(());
        }
        let known = self
            .entries
            .peek(ip)
            .and_then(|entry| entry.state.hardware());
        // Who does not say where it is has to be known, or is asked like any other.
        let reply = self.advertisement(own, asked.source, true);
        match asked.hardware.or(known) {
            Some(hardware) => self.answer(now, ip, hardware, reply),
            None if self.may_answer(now) => {
                self.forward(now, ip, reply, false);
            }
            None => {}
        }
        Ok(())
    }

    fn heard_advertisement(
        &mut self,
        now: Moment,
        own: Ipv6Addr,
        said: &Advertisement,
        from: Option<HardwareAddress>,
    ) -> Result<(), Unheard> {
        let ip = IpAddr::from(said.target);
        let known = self
            .entries
            .peek(ip)
            .and_then(|entry| entry.state.hardware());
        // Whoever says that it is at this station's address claims that (RFC 4862 section 5.4.4), and need not say where it is.
        let (otherwise, unless) = match ip == self.station.ip {
            true => (from, Unheard::Impostor),
            false => (known, Unheard::NotAsked),
        };
        let hardware = said.hardware.or(otherwise).ok_or(unless)?;
        self.check(ip, hardware, from)?;
        let to_us = said.solicited && said.destination == own;
        let replaces = said.overrides || known.is_none_or(|known| known.is_same(&hardware));
        self.learn(
            now,
            ip,
            match to_us && replaces {
                true => Event::Told(hardware),
                false => Event::Hinted(hardware, said.overrides),
            },
        )
    }

    /// What is said of a neighbour that somebody wants to know of; of others nothing is kept.
    fn learn(&mut self, now: Moment, ip: IpAddr, event: Event) -> Result<(), Unheard> {
        self.entries.peek(ip).ok_or(Unheard::NotAsked)?;
        self.on(now, ip, event);
        Ok(())
    }

    /// Answers who has asked: it is a neighbour that matters, and says itself where it is.
    fn answer(&mut self, now: Moment, ip: IpAddr, hardware: HardwareAddress, reply: Vec<u8>) {
        if !self.may_answer(now) {
            return;
        }
        let (_, _, evicted) = self.entries.find(ip, now, false);
        self.lose(super::Lost::Evicted, evicted);
        self.on(now, ip, Event::Hinted(hardware, true));
        self.forward(now, ip, reply, false);
    }
}
