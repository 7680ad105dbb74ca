//! The IP of one link: its own addresses, the questions for them, and the datagrams that are for it. Pure.
//!
//! Whoever asks for an address of ours (ARP, neighbour discovery) is answered at the queue pair that asked: where a frame came
//! from is known better than what it says. A datagram is taken that is to one of our addresses, to the broadcast address, or to
//! a group; which groups come is the queue pair's affair. What is wrong is counted by name.

use rpcrdma_fabric::datagram::Arrival;
use rpcrdma_ipoib::packet::{
    Advertisement, Arp, HardwareAddress, Operation, Packet, Reject, Solicitation, Udp,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// All nodes of a link (RFC 4291 section 2.7.1).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1);

/// What a frame means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard<'b> {
    /// A datagram for us.
    Datagram(Udp<'b>),
    /// This frame is to be sent back to where the heard one came from.
    Answer(Vec<u8>),
    /// This frame is to be sent to all nodes of the link.
    AnswerAll(Vec<u8>),
    /// Somebody else has, or says it has, this address.
    Claimed(IpAddr),
    /// Nothing that concerns us.
    Nothing,
}

/// What came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Datagrams for us.
    pub datagrams: u64,
    /// Questions for our addresses, answered.
    pub questions: u64,
    /// Frames for others.
    pub others: u64,
    /// Frames refused, by [`Reject`].
    pub rejected: [u64; Reject::COUNT],
}

/// One link's IP.
#[derive(Debug, Default)]
pub(crate) struct Host {
    addresses: Vec<IpAddr>,
    /// An address that is not used before it is known that nobody has it.
    checked: Option<IpAddr>,
    hardware: Option<HardwareAddress>,
    counts: HostCounts,
}

impl Host {
    /// The addresses in use.
    pub(crate) fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    pub(crate) const fn counts(&self) -> &HostCounts {
        &self.counts
    }

    /// Where it can be reached; `None` while there is no queue pair.
    pub(crate) fn reach(&mut self, hardware: Option<HardwareAddress>) {
        self.hardware = hardware;
    }

    pub(crate) const fn hardware(&self) -> Option<HardwareAddress> {
        self.hardware
    }

    /// Uses an address from now on.
    pub(crate) fn add(&mut self, address: IpAddr) {
        self.checked = self.checked.filter(|&checked| checked != address);
        if !self.addresses.contains(&address) {
            self.addresses.push(address);
        }
    }

    /// Uses it no more.
    pub(crate) fn remove(&mut self, address: IpAddr) {
        self.addresses.retain(|&it| it != address);
    }

    /// The frame that asks all nodes whether one has this address (RFC 5227 section 2.1.1): to be sent to the broadcast
    /// group. Whoever answers is told of as [`Heard::Claimed`].
    pub(crate) fn probe(&mut self, address: Ipv4Addr) -> Option<Vec<u8>> {
        self.checked = Some(IpAddr::V4(address));
        let probe = Arp {
            operation: Operation::Request,
            sender: self.hardware?,
            sender_ip: Ipv4Addr::UNSPECIFIED,
            target: HardwareAddress::ZERO,
            target_ip: address,
        };
        Some(probe.frame())
    }

    /// The frame that tells all nodes that we have it.
    pub(crate) fn announce(&self, address: IpAddr) -> Option<Vec<u8>> {
        let hardware = self.hardware?;
        Some(match address {
            IpAddr::V4(v4) => Arp {
                operation: Operation::Request,
                sender: hardware,
                sender_ip: v4,
                target: HardwareAddress::ZERO,
                target_ip: v4,
            }
            .frame(),
            IpAddr::V6(v6) => advertisement(v6, ALL_NODES, hardware, false).frame(),
        })
    }

    /// What a frame means, from its encapsulation header on.
    pub(crate) fn hear<'b>(&mut self, frame: &'b [u8], from: &Arrival) -> Heard<'b> {
        let heard = match Packet::parse(frame) {
            Ok(Packet::Arp(arp)) => self.hear_arp(&arp),
            Ok(Packet::Solicitation(asked)) => self.hear_solicitation(&asked),
            Ok(Packet::Advertisement(told)) => self.claimed(IpAddr::V6(told.target)),
            Ok(Packet::Udp(udp)) if self.is_for_us(udp.to.ip(), from) => Heard::Datagram(udp),
            Ok(Packet::Udp(_)) => Heard::Nothing,
            Err(reject) => {
                self.counts.rejected[reject.index()] += 1;
                return Heard::Nothing;
            }
        };
        let counter = match heard {
            Heard::Datagram(_) => &mut self.counts.datagrams,
            Heard::Answer(_) | Heard::AnswerAll(_) => &mut self.counts.questions,
            Heard::Claimed(_) | Heard::Nothing => &mut self.counts.others,
        };
        *counter += 1;
        heard
    }

    fn is_for_us(&self, to: IpAddr, from: &Arrival) -> bool {
        let all = to == IpAddr::V4(Ipv4Addr::BROADCAST) || to.is_multicast();
        // What came by a group is to a group: an address of one host in it is somebody's trick.
        if from.is_multicast() {
            all
        } else {
            self.addresses.contains(&to) || all
        }
    }

    fn hear_arp(&self, arp: &Arp) -> Heard<'static> {
        let own = self.hardware.filter(|own| !own.is_same(&arp.sender));
        let Some(hardware) = own else {
            // Our own, come back.
            return Heard::Nothing;
        };
        let asked = IpAddr::V4(arp.target_ip);
        let claims = IpAddr::V4(arp.sender_ip);
        if self.is_ours(claims) {
            return Heard::Claimed(claims);
        }
        // Two that look for the same free address at once both leave it (RFC 5227 section 2.1.1).
        if arp.sender_ip.is_unspecified() && self.checked == Some(asked) {
            return Heard::Claimed(asked);
        }
        if arp.operation == Operation::Request && self.addresses.contains(&asked) {
            let reply = Arp {
                operation: Operation::Reply,
                sender: hardware,
                sender_ip: arp.target_ip,
                target: arp.sender,
                target_ip: arp.sender_ip,
            };
            return Heard::Answer(reply.frame());
        }
        Heard::Nothing
    }

    fn hear_solicitation(&self, asked: &Solicitation) -> Heard<'static> {
        let (Some(hardware), target) = (self.hardware, IpAddr::V6(asked.target)) else {
            return Heard::Nothing;
        };
        if !self.addresses.contains(&target) || self.is_ours(IpAddr::V6(asked.source)) {
            return Heard::Nothing;
        }
        match asked.source.is_unspecified() {
            // Somebody wants our address: all are told whose it is (RFC 4862 section 5.4.3).
            true => {
                let told = advertisement(asked.target, ALL_NODES, hardware, false);
                Heard::AnswerAll(told.frame())
            }
            false => {
                let told = advertisement(asked.target, asked.source, hardware, true);
                Heard::Answer(told.frame())
            }
        }
    }

    fn claimed(&self, address: IpAddr) -> Heard<'static> {
        match self.is_ours(address) {
            true => Heard::Claimed(address),
            false => Heard::Nothing,
        }
    }

    /// In use, or to be.
    fn is_ours(&self, address: IpAddr) -> bool {
        self.checked == Some(address) || self.addresses.contains(&address)
    }
}

fn advertisement(
    target: Ipv6Addr,
    destination: Ipv6Addr,
    hardware: HardwareAddress,
    solicited: bool,
) -> Advertisement {
    Advertisement {
        source: target,
        destination,
        target,
        hardware: Some(hardware),
        router: false,
        solicited,
        overrides: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_ipoib::gid::{Gid, Guid};
    use rpcrdma_ipoib::packet::{emit_udp, link_local, solicited_node};
    use std::net::SocketAddr;

    const V4: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 5);
    const OTHER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 9);

    fn at(number: u32) -> HardwareAddress {
        let gid = Gid::of_port(0xFE80 << 48, Guid(number.into()));
        HardwareAddress::datagrams(number, gid)
    }

    fn v6() -> Ipv6Addr {
        link_local(Guid(17))
    }

    fn host() -> Host {
        let mut host = Host::default();
        host.reach(Some(at(17)));
        host.add(V4.into());
        host.add(v6().into());
        host
    }

    fn alone() -> Arrival {
        Arrival {
            lid: 9,
            gid: None,
            to: None,
            queue_pair: 18,
            service_level: 0,
        }
    }

    fn by_group() -> Arrival {
        Arrival {
            to: Some([0xFF; 16]),
            ..alone()
        }
    }

    fn request(sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Arp {
        Arp {
            operation: Operation::Request,
            sender: at(18),
            sender_ip,
            target: HardwareAddress::ZERO,
            target_ip,
        }
    }

    #[test]
    fn rfc4391_9_2_a_question_for_our_address_is_answered() {
        let mut host = host();
        let frame = request(OTHER, V4).frame();
        let Heard::Answer(answer) = host.hear(&frame, &by_group()) else {
            panic!("no answer");
        };
        let Ok(Packet::Arp(reply)) = Packet::parse(&answer) else {
            panic!("no ARP");
        };
        assert_eq!(reply.operation, Operation::Reply);
        assert_eq!((reply.sender, reply.sender_ip), (at(17), V4));
        assert_eq!((reply.target, reply.target_ip), (at(18), OTHER));
        assert_eq!(host.counts().questions, 1);
    }

    #[test]
    fn questions_for_others_and_our_own_are_not() {
        let mut host = host();
        for arp in [
            request(OTHER, OTHER),
            Arp {
                sender: at(17),
                ..request(V4, V4)
            },
        ] {
            assert_eq!(host.hear(&arp.frame(), &by_group()), Heard::Nothing);
        }
        assert_eq!(host.counts().others, 2);
    }

    #[test]
    fn rfc5227_2_1_1_an_address_that_somebody_has_is_found_out() {
        let mut host = host();
        let probe = host.probe(OTHER).unwrap();
        let Ok(Packet::Arp(asked)) = Packet::parse(&probe) else {
            panic!("no ARP");
        };
        assert_eq!(
            (asked.sender_ip, asked.target_ip),
            (Ipv4Addr::UNSPECIFIED, OTHER)
        );
        let taken = Heard::Claimed(OTHER.into());
        let reply = Arp {
            operation: Operation::Reply,
            ..request(OTHER, Ipv4Addr::UNSPECIFIED)
        };
        assert_eq!(host.hear(&reply.frame(), &alone()), taken);
        let same = request(Ipv4Addr::UNSPECIFIED, OTHER);
        assert_eq!(host.hear(&same.frame(), &by_group()), taken);
        assert!(
            !host.addresses().contains(&OTHER.into()),
            "not used meanwhile"
        );
    }

    #[test]
    fn rfc4861_7_2_4_a_solicitation_is_answered() {
        let mut host = host();
        let asker = link_local(Guid(18));
        let asked = Solicitation {
            source: asker,
            destination: solicited_node(v6()),
            target: v6(),
            hardware: Some(at(18)),
        };
        let frame = asked.frame();
        let Heard::Answer(answer) = host.hear(&frame, &by_group()) else {
            panic!("no answer");
        };
        let Ok(Packet::Advertisement(told)) = Packet::parse(&answer) else {
            panic!("no advertisement");
        };
        assert_eq!((told.target, told.destination), (v6(), asker));
        assert_eq!((told.hardware, told.solicited), (Some(at(17)), true));
    }

    #[test]
    fn rfc4862_5_4_3_who_wants_our_address_is_told_with_all() {
        let mut host = host();
        let wants = Solicitation {
            source: Ipv6Addr::UNSPECIFIED,
            destination: solicited_node(v6()),
            target: v6(),
            hardware: None,
        };
        let frame = wants.frame();
        let Heard::AnswerAll(answer) = host.hear(&frame, &by_group()) else {
            panic!("no answer");
        };
        let Ok(Packet::Advertisement(told)) = Packet::parse(&answer) else {
            panic!("no advertisement");
        };
        assert_eq!((told.destination, told.solicited), (ALL_NODES, false));
    }

    fn datagram(to: &str) -> Vec<u8> {
        let mut frame = Vec::new();
        let udp = Udp {
            from: SocketAddr::new(OTHER.into(), 700),
            to: to.parse().unwrap(),
            hop_limit: 1,
            payload: b"who?",
        };
        assert!(emit_udp(&mut frame, &udp));
        frame
    }

    #[test]
    fn datagrams_are_taken_that_are_for_us() {
        let mut host = host();
        for (to, arrival, ours) in [
            ("10.1.0.5:111", alone(), true),
            ("10.1.0.6:111", alone(), false),
            ("239.1.1.1:111", by_group(), true),
            ("255.255.255.255:68", by_group(), true),
            ("10.1.0.5:111", by_group(), false),
        ] {
            let frame = datagram(to);
            let heard = host.hear(&frame, &arrival);
            assert_eq!(matches!(heard, Heard::Datagram(_)), ours, "{to}");
        }
        assert_eq!((host.counts().datagrams, host.counts().others), (3, 2));
    }

    #[test]
    fn what_is_wrong_is_counted_by_name() {
        let mut host = host();
        assert_eq!(host.hear(&[8], &alone()), Heard::Nothing);
        assert_eq!(host.counts().rejected[Reject::Short.index()], 1);
    }
}
