//! Why a frame was refused.

crate::rejects::rejects! {
    /// Shorter than its encapsulation header.
    Short = "frame-short",
    /// Neither ARP nor IP.
    Protocol = "frame-protocol",
    /// An ARP message that is too short.
    ArpShort = "arp-short",
    /// An ARP message of hardware that is not InfiniBand, or whose addresses are not 20 octets long.
    ArpHardware = "arp-hardware",
    /// An ARP message about addresses that are not of IPv4.
    ArpProtocol = "arp-protocol",
    /// An ARP message that is neither a request nor a reply.
    ArpOperation = "arp-operation",
    /// An ARP message from an address that is no host's.
    ArpSender = "arp-sender",
    /// A hardware address without a queue pair that datagrams can go to.
    HardwareQueue = "hardware-queue",
    /// A hardware address without a queue pair for datagrams, of a peer that speaks connected mode alone (RFC 4755).
    ConnectedOnly = "hardware-connected-only",
    /// A hardware address whose GID is no port's.
    HardwareGid = "hardware-gid",
    /// An IP header that is too short, or of the other version.
    IpHeader = "ip-header",
    /// An IP packet that reaches beyond its frame.
    IpLength = "ip-length",
    /// An IPv4 header whose checksum is wrong.
    IpSum = "ip-sum",
    /// An IP packet from a multicast or the broadcast address.
    IpSource = "ip-source",
    /// A fragment.
    Fragment = "ip-fragment",
    /// An IPv6 extension header.
    Extension = "ip-extension",
    /// Neither UDP nor neighbour discovery.
    Transport = "ip-transport",
    /// A UDP datagram that is too short, or reaches beyond its packet.
    UdpLength = "udp-length",
    /// A UDP datagram whose checksum is wrong, or missing in IPv6.
    UdpSum = "udp-sum",
    /// A UDP datagram from or to port zero.
    UdpPort = "udp-port",
    /// A message of ICMPv6 whose checksum is wrong.
    IcmpSum = "icmp-sum",
    /// A message of ICMPv6 that is neither a solicitation nor an advertisement of a neighbour.
    IcmpType = "icmp-type",
    /// A message of neighbour discovery that is too short, or with a code.
    DiscoveryShort = "discovery-short",
    /// A message of neighbour discovery that a router may have passed on: its hop limit is not 255.
    DiscoveryHops = "discovery-hops",
    /// A message of neighbour discovery about an address that is no host's.
    DiscoveryTarget = "discovery-target",
    /// A solicitation from nobody that does not look for a duplicate address as RFC 4861 section 7.1.1 wants it, or an
    /// advertisement to all that says it was asked for.
    DiscoverySource = "discovery-source",
    /// An option of neighbour discovery that reaches beyond its message or has no length.
    DiscoveryOption = "discovery-option",
    /// A link-layer address of another length than 20 octets.
    DiscoveryAddress = "discovery-address",
}
