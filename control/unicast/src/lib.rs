//! Addresses of one host: which can be, and which another host can be sent to.
//!
//! The file names addresses, DHCP servers give them, and who is asked by multicast tells them. All of that is judged here, by one rule.
//! What is promised: an address that means everybody, nobody or the asker itself passes nowhere. That a host has it is not known here.
#![forbid(unsafe_code)]

use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// One host can have it: it is not unspecified or of "this network" (RFC 1122 section 3.2.1.3), loopback, multicast, or in the
/// reserved block that ends in the broadcast address (RFC 1112 section 4). IPv4 in its IPv6 form is judged as IPv4.
#[must_use]
pub fn is_of_a_host(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_v4_of_a_host(ip),
        IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast(),
    }
}

/// See [`is_of_a_host`].
#[must_use]
pub const fn is_v4_of_a_host(ip: Ipv4Addr) -> bool {
    !matches!(ip.octets()[0], 0 | 127 | 224..)
}

/// Why no host of a network has an address in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHost {
    /// No host anywhere has it: see [`is_of_a_host`].
    Anywhere,
    /// It is the network's own, or means all hosts in it (RFC 1122 section 3.2.1.3).
    InThisNetwork,
}

/// Judges an address with the network it is in.
///
/// # Errors
///
/// [`NoHost`]. IPv4 networks of one host or two have neither an address of their own nor one of all (RFC 3021), nor has IPv6.
pub fn judge(network: &IpNet) -> Result<(), NoHost> {
    let address = network.addr();
    let of_all = address == network.network() || address == network.broadcast();
    let has_one = address.is_ipv4() && network.prefix_len() < 31;
    match (is_of_a_host(address), has_one && of_all) {
        (false, _) => Err(NoHost::Anywhere),
        (true, true) => Err(NoHost::InThisNetwork),
        (true, false) => Ok(()),
    }
}

/// Another host that is told of this place can connect there: it is [of a host](is_of_a_host), with a port, and no link-local address of
/// IPv6, which says nothing without a link of the one who is told (RFC 4007 section 6).
#[must_use]
pub fn is_reachable(place: SocketAddr) -> bool {
    let of_a_link = matches!(place, SocketAddr::V6(it) if it.ip().is_unicast_link_local());
    place.port() != 0 && is_of_a_host(place.ip()) && !of_a_link
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_HOST: [&str; 14] = [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "127.255.0.1",
        "224.0.0.1",
        "239.192.78.81",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "ff02::1",
        "::ffff:0.0.0.0",
        "::ffff:127.0.0.1",
        "::ffff:239.1.1.1",
    ];

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_of_a_host_is_neither_everybodys_nor_nobodys() {
        for good in ["1.0.0.1", "10.1.0.5", "126.0.0.1", "128.0.0.1", "223.1.1.1"] {
            assert!(is_of_a_host(ip(good)), "{good}");
        }
        for good in ["2001:db8::1", "fe80::1", "fd00::1", "::ffff:10.1.0.5"] {
            assert!(is_of_a_host(ip(good)), "{good}");
        }
        for bad in NO_HOST {
            assert!(!is_of_a_host(ip(bad)), "{bad}");
        }
    }

    #[test]
    fn an_address_in_a_network_is_neither_its_own_nor_everybodys() {
        let judged = |text: &str| judge(&text.parse().unwrap());
        for good in [
            "10.1.0.5/24",
            "10.1.0.0/31",
            "10.1.0.1/31",
            "10.1.0.0/32",
            "10.1.0.255/16",
            "2001:db8::/64",
        ] {
            assert_eq!(judged(good), Ok(()), "{good}");
        }
        for bad in ["10.1.0.0/24", "10.1.0.255/24", "10.1.255.255/16"] {
            assert_eq!(judged(bad), Err(NoHost::InThisNetwork), "{bad}");
        }
        for bad in [
            "255.255.255.255/32",
            "0.1.2.3/24",
            "240.0.0.1/24",
            "::1/128",
        ] {
            assert_eq!(judged(bad), Err(NoHost::Anywhere), "{bad}");
        }
    }

    #[test]
    fn another_host_reaches_a_place_that_says_all() {
        for good in ["10.1.0.5:20049", "[2001:db8::1]:1", "169.254.1.1:20049"] {
            assert!(is_reachable(good.parse().unwrap()), "{good}");
        }
        for bad in ["10.1.0.5:0", "[fe80::1]:20049", "[fe80::1%2]:20049"] {
            assert!(!is_reachable(bad.parse().unwrap()), "{bad}");
        }
        for bad in NO_HOST {
            assert!(!is_reachable(SocketAddr::new(ip(bad), 20049)), "{bad}");
        }
    }
}
