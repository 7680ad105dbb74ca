//! Devices, addresses and groups of links.

use super::name;
use crate::link::{DevicePort, Ipv4};
use crate::reading::{Elements, Reading, Refusal};
use ipnet::Ipv4Net;
use rpcrdma_unicast::{NoHost, judge};
use std::net::{IpAddr, Ipv4Addr};
use toml::de::DeValue;

/// `device` or `device/port`.
pub(crate) fn device_port(text: &str) -> Result<DevicePort, Refusal> {
    let (device, port) = text.split_once('/').unwrap_or((text, "1"));
    let remedy = "write \"device\" or \"device/port\", as `ibstat -l` lists them";
    if port.contains('/') {
        return Err(Refusal::new("has more than one slash", remedy));
    }
    // Devices are folders of the system, where these mean others.
    if matches!(device, "." | "..") {
        return Err(Refusal::new("is no name of a device", remedy));
    }
    let device = name(device)?;
    let digits = port.bytes().all(|digit| digit.is_ascii_digit());
    let port = port.parse().ok().filter(|&port: &u8| digits && port > 0);
    let port = port.ok_or_else(|| {
        Refusal::new(
            "has no port of 1 to 255 behind the slash",
            format!("write \"{device}/1\""),
        )
    })?;
    Ok(DevicePort { device, port })
}

/// `off`, `dhcp` or `address/bits`.
pub(crate) fn link_ipv4(text: &str) -> Result<Ipv4, Refusal> {
    match text {
        "off" => return Ok(Ipv4::Off),
        "dhcp" => return Ok(Ipv4::Dhcp),
        _ => {}
    }
    let remedy = "write \"off\", \"dhcp\", or an address such as \"10.1.0.5/24\"";
    let refuse = |what: &str| Refusal::new(what, remedy);
    if text.parse::<Ipv4Addr>().is_ok() {
        return Err(refuse("does not say how many bits name the network"));
    }
    let network: Ipv4Net = text
        .parse()
        .map_err(|_| refuse("is no IPv4 address with its bits"))?;
    match judge(&network.into()) {
        Ok(()) => Ok(Ipv4::Is(network)),
        Err(why) => Err(refuse(no_host(why))),
    }
}

/// What is wrong with an address on a link.
pub(super) const fn no_host(why: NoHost) -> &'static str {
    match why {
        NoHost::Anywhere => "is no address that a host can have on a link",
        NoHost::InThisNetwork => "is the address of the network or of all hosts in it",
    }
}

/// One group.
pub(crate) fn group(text: &str) -> Result<IpAddr, Refusal> {
    let remedy = "give one such as \"239.192.78.81\" or \"ff15::4e51\"";
    let address: IpAddr = text
        .parse()
        .map_err(|_| Refusal::new("is no IP address", remedy))?;
    let what = match (address.is_multicast(), scope(address)) {
        (false, _) => "is no multicast address",
        (_, Some(0x0 | 0xF)) => "is in a reserved scope (RFC 4291 section 2.7)",
        (_, Some(0x1)) => "is interface-local, and never on a link (RFC 4291 section 2.7)",
        _ => return Ok(address),
    };
    Err(Refusal::new(what, remedy))
}

/// The scope of an IPv6 multicast address.
fn scope(address: IpAddr) -> Option<u8> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(address.octets()[1] & 0xF),
    }
}

/// A list of groups.
pub(crate) fn groups(value: &DeValue<'_>, elements: &Elements<'_>) -> Reading<Vec<IpAddr>> {
    let Some(list) = value.as_array() else {
        return Reading::WrongType;
    };
    elements.read(list, "a string", |entry| entry.as_str().map(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_a_port() {
        let read = |text| device_port(text).map(|it| it.to_string());
        assert_eq!(read("mlx5_0").as_deref(), Ok("mlx5_0/1"));
        assert_eq!(read("mlx5_0/2").as_deref(), Ok("mlx5_0/2"));
        for bad in [
            "",
            "/1",
            "mlx5_0/",
            "mlx5_0/0",
            "mlx5_0/+1",
            "mlx5_0/256",
            "a b",
            ".",
            "../1",
            "../x/1",
            "mlx5_0/1/1",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_of_links_are_those_of_hosts() {
        for good in ["10.1.0.5/24", "10.1.0.0/31", "10.1.0.1/32"] {
            assert_eq!(link_ipv4(good), Ok(Ipv4::Is(good.parse().unwrap())));
        }
        assert_eq!(link_ipv4("off"), Ok(Ipv4::Off));
        assert_eq!(link_ipv4("dhcp"), Ok(Ipv4::Dhcp));
        for bad in [
            "",
            "10.1.0.5",
            "10.1.0.0/24",
            "10.1.0.255/24",
            "224.0.0.1/24",
            "127.0.0.1/8",
            "0.0.0.0/0",
            "0.1.2.3/24",
            "240.0.0.1/24",
            "255.255.255.255/32",
            "10.1.0.5/33",
            "fe80::1/64",
        ] {
            assert!(link_ipv4(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn groups_are_multicast() {
        assert!(group("239.192.78.81").is_ok() && group("ff15::4e51").is_ok());
        assert!(group("10.1.0.5").is_err() && group("nfs").is_err());
    }

    #[test]
    fn groups_are_of_scopes_that_leave_the_host() {
        for good in ["ff02::1", "ff12::1", "ff05::1", "ff1e::1"] {
            assert!(group(good).is_ok(), "{good}");
        }
        for bad in ["ff00::1", "ff01::1", "ff11::1", "ff0f::1", "ff1f::1"] {
            assert!(group(bad).is_err(), "{bad}");
        }
    }
}
