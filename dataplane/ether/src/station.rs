//! Who a station is: its addresses, and which of all addresses are its neighbours'.

use ipnet::IpNet;
use smoltcp::wire::EthernetAddress;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// An address of Ethernet.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Everybody's.
    pub(crate) const BROADCAST: Mac = Mac([0xff; 6]);

    /// That of a group of IPv6 (RFC 2464 section 7).
    pub(crate) fn of_group(group: Ipv6Addr) -> Mac {
        let [.., a, b, c, d] = group.octets();
        Mac([0x33, 0x33, a, b, c, d])
    }

    /// A group's, or everybody's.
    pub(crate) fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl From<EthernetAddress> for Mac {
    fn from(address: EthernetAddress) -> Mac {
        Mac(address.0)
    }
}

impl From<Mac> for EthernetAddress {
    fn from(mac: Mac) -> EthernetAddress {
        EthernetAddress(mac.0)
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&EthernetAddress(self.0), f)
    }
}

/// A station on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// Its address of Ethernet.
    pub mac: Mac,
    /// Its address of IP, and how many of its bits all neighbours have in common.
    pub address: IpNet,
    /// The neighbour that knows the way to everybody else.
    pub gateway: Option<IpAddr>,
    /// Octets of the longest IP packet.
    pub mtu: u16,
}

/// Why there cannot be such a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The address of Ethernet is a group's, or none.
    Mac,
    /// The address is no host's: a group's, a network's, the loopback.
    Address,
    /// The gateway is no neighbour, or is the station itself.
    Gateway,
    /// Shorter than what every link carries: 576 octets of IPv4, 1280 of IPv6.
    Mtu,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unfit::Mac => "its Ethernet address is a group's, or none",
            Unfit::Address => "its address is no host's",
            Unfit::Gateway => "its gateway is no neighbour",
            Unfit::Mtu => "its MTU is shorter than what every link carries",
        })
    }
}

impl std::error::Error for Unfit {}

impl Station {
    /// Whether there can be such a station.
    ///
    /// # Errors
    ///
    /// [`Unfit`]: why not.
    pub fn check(&self) -> Result<(), Unfit> {
        if self.mac.is_group() || self.mac == Mac([0; 6]) {
            return Err(Unfit::Mac);
        }
        if !self.is_host(self.ip()) {
            return Err(Unfit::Address);
        }
        if let Some(gateway) = self.gateway
            && (gateway == self.ip() || !self.is_host(gateway) || !self.is_neighbour(gateway))
        {
            return Err(Unfit::Gateway);
        }
        let least = if self.ip().is_ipv4() { 576 } else { 1280 };
        if self.mtu < least {
            return Err(Unfit::Mtu);
        }
        Ok(())
    }

    /// Its address of IP.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        self.address.addr()
    }

    /// One host's address, as far as can be known here.
    pub(crate) fn is_host(&self, ip: IpAddr) -> bool {
        if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
            return false;
        }
        let IpAddr::V4(v4) = ip else { return true };
        // A link of two hosts, or of one, has neither (RFC 3021).
        let names_all = self.address.prefix_len() < 31
            && self.address.contains(&ip)
            && (ip == self.address.network() || ip == self.address.broadcast());
        !v4.is_broadcast() && v4.octets()[0] != 0 && !names_all
    }

    /// On this link.
    pub(crate) fn is_neighbour(&self, ip: IpAddr) -> bool {
        match ip {
            IpAddr::V4(_) => self.address.contains(&ip),
            IpAddr::V6(v6) => {
                let local = v6.is_unicast_link_local() && self.ip().is_ipv6();
                local || self.address.contains(&ip)
            }
        }
    }

    /// Who is given a packet for `to`; `None`: nobody is known who could take it.
    pub(crate) fn next_hop(&self, to: IpAddr) -> Option<IpAddr> {
        if !self.is_host(to) || to.is_ipv4() != self.ip().is_ipv4() {
            None
        } else if self.is_neighbour(to) {
            Some(to)
        } else {
            self.gateway
        }
    }

    /// The group in which an address of IPv6 is asked for (RFC 4291 section 2.7.1).
    pub(crate) fn group_of(ip: Ipv6Addr) -> Ipv6Addr {
        let [.., a, b, c] = ip.octets();
        let low = u16::from_be_bytes([b, c]);
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(address: &str, gateway: Option<&str>, mtu: u16) -> Station {
        Station {
            mac: Mac([2, 0, 0, 0, 0, 1]),
            address: address.parse().expect("a prefix"),
            gateway: gateway.map(|it| it.parse().expect("an address")),
            mtu,
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let cases = [
            ("10.9.0.1/24", None, 1500, Ok(())),
            ("10.9.0.1/24", Some("10.9.0.254"), 576, Ok(())),
            ("10.9.0.0/31", Some("10.9.0.1"), 1500, Ok(())),
            ("2001:db8::1/64", Some("fe80::1"), 1280, Ok(())),
            ("10.9.0.0/24", None, 1500, Err(Unfit::Address)),
            ("10.9.0.255/24", None, 1500, Err(Unfit::Address)),
            ("224.0.0.1/24", None, 1500, Err(Unfit::Address)),
            ("0.0.0.0/0", None, 1500, Err(Unfit::Address)),
            ("127.0.0.1/8", None, 1500, Err(Unfit::Address)),
            ("::1/128", None, 1500, Err(Unfit::Address)),
            ("ff02::1/64", None, 1500, Err(Unfit::Address)),
            ("10.9.0.1/24", Some("10.9.1.1"), 1500, Err(Unfit::Gateway)),
            ("10.9.0.1/24", Some("10.9.0.1"), 1500, Err(Unfit::Gateway)),
            ("10.9.0.1/24", Some("fe80::1"), 1500, Err(Unfit::Gateway)),
            ("10.9.0.1/24", None, 575, Err(Unfit::Mtu)),
            ("2001:db8::1/64", None, 1279, Err(Unfit::Mtu)),
        ];
        for (address, gateway, mtu, expected) in cases {
            let found = station(address, gateway, mtu).check();
            assert_eq!(found, expected, "{address} {gateway:?} {mtu}");
        }
        let mut group = station("10.9.0.1/24", None, 1500);
        group.mac = Mac([1, 0, 0, 0, 0, 1]);
        assert_eq!(group.check(), Err(Unfit::Mac));
    }

    #[test]
    fn neighbours_are_met_and_others_by_the_gateway() {
        let cases = [
            (
                "10.9.0.1/24",
                Some("10.9.0.254"),
                "10.9.0.7",
                Some("10.9.0.7"),
            ),
            (
                "10.9.0.1/24",
                Some("10.9.0.254"),
                "10.9.1.7",
                Some("10.9.0.254"),
            ),
            ("10.9.0.1/24", None, "10.9.1.7", None),
            ("10.9.0.1/24", None, "10.9.0.255", None),
            ("10.9.0.1/24", Some("10.9.0.254"), "2001:db8::7", None),
            ("10.9.0.1/24", Some("10.9.0.254"), "255.255.255.255", None),
            ("2001:db8::1/64", None, "fe80::7", Some("fe80::7")),
            ("2001:db8::1/64", None, "2001:db8::7", Some("2001:db8::7")),
            (
                "2001:db8::1/64",
                Some("fe80::1"),
                "2001:db8:1::7",
                Some("fe80::1"),
            ),
            ("2001:db8::1/64", Some("fe80::1"), "10.0.0.1", None),
        ];
        for (address, gateway, to, expected) in cases {
            let hop = station(address, gateway, 1500).next_hop(to.parse().expect("an address"));
            assert_eq!(
                hop,
                expected.map(|it| it.parse().expect("an address")),
                "{to}"
            );
        }
    }

    #[test]
    fn an_address_is_asked_for_in_its_group() {
        let group = Station::group_of("2001:db8::12:3456".parse().expect("an address"));
        assert_eq!(group.to_string(), "ff02::1:ff12:3456");
        assert_eq!(
            Mac::of_group(group),
            Mac([0x33, 0x33, 0xff, 0x12, 0x34, 0x56])
        );
    }
}
