//! Why a frame is not taken, and how often that was.

rpcrdma_listed::listed! {
    /// Why a frame is not taken. None of these is answered.
    pub Refused {
        /// It ends before what it says it holds.
        Short => "short",
        /// It is of a VLAN, and this station is of none.
        Tagged => "tagged",
        /// It is neither ARP nor IP of this station's version.
        Kind => "kind",
        /// It is for another station, or another address than this one's.
        NotOurs => "not_ours",
        /// Nobody can have that source: a group, no host, this station's own.
        Source => "source",
        /// A header whose fields contradict one another.
        Header => "header",
        /// The checksum of the IPv4 header is wrong.
        HeaderSum => "header_sum",
        /// A fragment of an IP packet.
        Fragment => "fragment",
        /// The packet is of another protocol, or has options of IPv6 in front.
        Protocol => "protocol",
        /// The checksum of UDP is wrong, or there is none in IPv6.
        DatagramSum => "datagram_sum",
        /// An ARP message that is none.
        Arp => "arp",
        /// A message of neighbour discovery or an echo request that is none, or none to be believed
        /// (RFC 4861 section 7.1).
        Icmp => "icmp",
    }
}

/// What a link has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams taken.
    pub datagrams: u64,
    /// Frames refused, by reason.
    refused: [u64; Refused::COUNT],
    /// Requests answered: ARP, neighbour discovery, echo.
    pub answers: u64,
    /// Requests sent for the address of a neighbour.
    pub requests: u64,
    /// Packets dropped: no way to their destination is known.
    pub no_way: u64,
    /// Packets dropped: their neighbour does not answer or had to give way to others, or too many
    /// waited for it.
    pub unanswered: u64,
}

impl Counts {
    /// Frames refused for this reason.
    #[must_use]
    pub fn refused(&self, why: Refused) -> u64 {
        self.refused.get(why.index()).copied().unwrap_or(0)
    }

    pub(crate) fn refuse(&mut self, why: Refused) {
        if let Some(count) = self.refused.get_mut(why.index()) {
            *count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_counter_of_its_own() {
        let mut counts = Counts::default();
        for (times, why) in (1..).zip(Refused::ALL.iter().copied()) {
            (0..times).for_each(|_| counts.refuse(why));
        }
        for (times, why) in (1..).zip(Refused::ALL.iter().copied()) {
            assert_eq!(counts.refused(why), times, "{}", why.name());
        }
    }
}
