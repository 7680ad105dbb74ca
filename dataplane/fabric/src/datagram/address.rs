//! Where datagrams go, and where they came from.

/// A GID, network order: of a port, or of a multicast group. IPv4 addresses of RoCE are mapped
/// (`::ffff:192.0.2.1`).
pub type GidOctets = [u8; 16];

/// The queue pair number that stands for all receivers of a multicast group (IBA 3.5.3).
pub const MULTICAST_QUEUE_PAIR: u32 = 0x00FF_FFFF;

/// A multicast group as a queue pair is attached to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// The group's GID.
    pub mgid: GidOctets,
    /// The group's LID on this subnet, 0xC000 to 0xFFFE; without meaning on Ethernet, and 0 there.
    pub mlid: u16,
}

/// Where a datagram goes, and how (IBA 11.2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressVector {
    /// The receiver's LID, or the group's MLID; without meaning on Ethernet, and 0 there.
    pub lid: u16,
    /// The receiver's or the group's GID. `None`: without a global route header, which only a
    /// receiver on this subnet of InfiniBand can do without.
    pub gid: Option<GidOctets>,
    /// The receiver's queue pair, or [`MULTICAST_QUEUE_PAIR`].
    pub queue_pair: u32,
    /// The Q_Key that the receiver expects. With its top bit set, the sending pair's own is sent
    /// instead, whatever it is (IBA 10.2.5): a pair that is to send with a controlled Q_Key has it.
    pub q_key: u32,
    /// SL, 4 bits.
    pub service_level: u8,
    /// TClass.
    pub traffic_class: u8,
    /// FlowLabel, 20 bits.
    pub flow_label: u32,
    /// HopLimit: 0 and 1 do not leave the subnet.
    pub hop_limit: u8,
    /// Static rate by its code on the wire (IBA 9.11.1, PathRecord's); 0 or that of the link: no
    /// limit.
    pub rate: u8,
}

impl AddressVector {
    /// To all of a group, with everything that its record leaves open at 0.
    #[must_use]
    pub fn of_group(group: Group, q_key: u32) -> AddressVector {
        AddressVector {
            lid: group.mlid,
            gid: Some(group.mgid),
            queue_pair: MULTICAST_QUEUE_PAIR,
            q_key,
            service_level: 0,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 0,
            rate: 0,
        }
    }

    /// Back to whoever sent a datagram, at the same service level.
    #[must_use]
    pub fn reply(arrival: &Arrival, q_key: u32) -> AddressVector {
        AddressVector {
            lid: arrival.lid,
            gid: arrival.gid,
            queue_pair: arrival.queue_pair,
            q_key,
            service_level: arrival.service_level,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            rate: 0,
        }
    }
}

/// Where a datagram came from. The header it stood in is not among its octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The sender's LID; 0 on Ethernet.
    pub lid: u16,
    /// The sender's GID, where the datagram had a global route header.
    pub gid: Option<GidOctets>,
    /// The GID it was sent to, a group's or ours, where it had one.
    pub to: Option<GidOctets>,
    /// The sender's queue pair.
    pub queue_pair: u32,
    /// The SL it came with.
    pub service_level: u8,
}

impl Arrival {
    /// It came by a multicast group.
    #[must_use]
    pub fn is_multicast(&self) -> bool {
        self.to.is_some_and(is_multicast)
    }
}

/// A GID of a group: FF at its start, or a mapped IPv4 multicast address.
#[must_use]
pub fn is_multicast(gid: GidOctets) -> bool {
    let mapped = |v6: std::net::Ipv6Addr| v6.to_ipv4_mapped().is_some_and(|ip| ip.is_multicast());
    gid[0] == 0xFF || mapped(gid.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn groups_are_known_by_their_gid() {
        for (text, expected) in [
            ("ff12:401b:ffff::1", true),
            ("::ffff:239.1.2.3", true),
            ("::ffff:192.0.2.1", false),
            ("fe80::1", false),
        ] {
            let gid: Ipv6Addr = text.parse().expect(text);
            assert_eq!(is_multicast(gid.octets()), expected, "{text}");
        }
    }

    #[test]
    fn a_reply_goes_where_the_datagram_came_from() {
        let arrival = Arrival {
            lid: 7,
            gid: Some([1; 16]),
            to: Some([0xFF; 16]),
            queue_pair: 18,
            service_level: 2,
        };
        assert!(arrival.is_multicast());
        let reply = AddressVector::reply(&arrival, 0x0b1b);
        assert_eq!(
            (reply.lid, reply.gid, reply.queue_pair),
            (7, Some([1; 16]), 18)
        );
        assert_eq!((reply.q_key, reply.service_level), (0x0b1b, 2));
    }
}
