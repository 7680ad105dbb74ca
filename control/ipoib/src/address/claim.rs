//! Who says that an address is his.

use crate::neighbour::Unheard;
use crate::node::Origin;
use crate::packet::{Advertisement, Arp, HardwareAddress, Packet, Solicitation};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The claim that a packet makes to an address that this node looks for; `own` is where this node is.
///
/// | | |
/// |---|---|
/// | ARP, question or answer | whose sender is the address (RFC 5227 section 2.1.1) |
/// | ARP probe | for the address: two that look for it at once both leave it (the same section) |
/// | solicitation from nobody | for the address: likewise (RFC 4862 section 5.4.3) |
/// | advertisement | of the address (RFC 4862 section 5.4.4) |
///
/// # Errors
/// Why it is none: it is about another address, or only asks where this one is; it is this node's own, come back by the group
/// ([`Unheard::Own`]); its sender is not who it says ([`Unheard::Impostor`]).
pub fn claim(
    ip: IpAddr,
    own: HardwareAddress,
    packet: &Packet<'_>,
    from: &Origin,
) -> Result<HardwareAddress, Unheard> {
    let by = match (packet, ip) {
        (Packet::Arp(arp), IpAddr::V4(ip)) => of_arp(ip, arp),
        (Packet::Solicitation(it), IpAddr::V6(ip)) => of_solicitation(ip, it, from),
        (Packet::Advertisement(it), IpAddr::V6(ip)) => of_advertisement(ip, it, from),
        _ => Err(Unheard::OtherKind),
    }?;
    if from.gid.is_some_and(|gid| gid != by.gid) {
        return Err(Unheard::Impostor);
    }
    if by.is_same(&own) {
        return Err(Unheard::Own);
    }
    Ok(by)
}

fn of_arp(ip: Ipv4Addr, arp: &Arp) -> Result<HardwareAddress, Unheard> {
    let probe = arp.sender_ip.is_unspecified() && arp.target_ip == ip;
    match arp.sender_ip == ip || probe {
        true => Ok(arp.sender),
        false => Err(Unheard::NotAsked),
    }
}

/// Who asks with an address of his own wants to know where the address is, and does not say that he has it (RFC 4862 section
/// 5.4.3).
fn of_solicitation(
    ip: Ipv6Addr,
    it: &Solicitation,
    from: &Origin,
) -> Result<HardwareAddress, Unheard> {
    match it.target == ip && it.source.is_unspecified() {
        true => sender(from),
        false => Err(Unheard::NotAsked),
    }
}

fn of_advertisement(
    ip: Ipv6Addr,
    it: &Advertisement,
    from: &Origin,
) -> Result<HardwareAddress, Unheard> {
    match (it.target == ip, it.hardware) {
        (false, _) => Err(Unheard::NotAsked),
        (true, Some(hardware)) => Ok(hardware),
        (true, None) => sender(from),
    }
}

/// Who sent it, by its headers alone.
fn sender(from: &Origin) -> Result<HardwareAddress, Unheard> {
    // Whatever goes to a group has a global route header: without one it may be this node's own as well as anybody's.
    from.sender().ok_or(Unheard::Impostor)
}
