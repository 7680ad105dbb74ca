//! Addresses: where to listen, and whom to reach.

use super::name;
use crate::plan::{BackendAddress, Fabric, Upstream};
use crate::reading::Refusal;
use std::net::{IpAddr, SocketAddr};

/// The longest name of a network interface, in octets: IFNAMSIZ without its final zero.
const INTERFACE_MAX: usize = 15;
/// What is wrong with a link-local address that does not say of which link.
const NO_LINK: &str = "is a link-local address, and does not say on which link";

/// `IP:port`. A host name is refused: what is listened at must not depend on a resolver.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, Refusal> {
    let address = text.parse().map_err(|_| {
        let remedy = "write \"IP:port\", such as \"127.0.0.1:2049\" or \"[::1]:2049\"";
        let what = match text.parse::<IpAddr>() {
            Ok(_) => "has no port",
            Err(_) if text.starts_with("localhost") => "is a host name, not an IP address",
            Err(_) => "is no IP address with a port",
        };
        Refusal::new(what, remedy)
    })?;
    scoped(address)
}

/// A link-local address is one of many links (RFC 4007): without saying which, the system takes
/// it for none of them.
fn scoped(address: SocketAddr) -> Result<SocketAddr, Refusal> {
    match address {
        SocketAddr::V6(it) if it.ip().is_unicast_link_local() && it.scope_id() == 0 => {
            let (ip, port) = (it.ip(), it.port());
            let remedy = format!(
                "give the number of the interface, such as \"[{ip}%2]:{port}\" (`ip link` lists them)"
            );
            Err(Refusal::new(NO_LINK, remedy))
        }
        _ => Ok(address),
    }
}

/// `host:port`, `[IPv6]:port` or `export`.
pub(crate) fn backend(text: &str) -> Result<BackendAddress, Refusal> {
    if text == "export" {
        return Ok(BackendAddress::Export);
    }
    let remedy = "write \"host:port\", such as \"nfs.example.net:2049\" or \"[::1]:2049\", \
                  or \"export\"";
    let (host, port) = host_port(text, remedy)?;
    Ok(BackendAddress::Tcp { host, port })
}

/// Where the upstream of a back is, in the form of its fabric.
pub(crate) fn upstream(text: &str, fabric: Fabric) -> Result<Upstream, Refusal> {
    let remedy =
        "write \"host:port\", such as \"nfs.example.net:20049\" or \"[2001:db8::1]:20049\"";
    match fabric {
        Fabric::Memory => name(text).map(Upstream::Memory),
        Fabric::Verbs | Fabric::IwarpSctp => {
            let (host, port) = host_port(text, remedy)?;
            Ok(Upstream::Host { host, port })
        }
    }
}

/// Where peers arrive, in the form of the fabric.
pub(crate) fn door(text: &str, fabric: Fabric) -> Result<String, Refusal> {
    match fabric {
        Fabric::Memory => name(text),
        Fabric::Verbs | Fabric::IwarpSctp => {
            let address = text.parse::<SocketAddr>().map_err(|_| {
                let remedy = "write \"IP:port\", such as \"[::]:20049\" for all devices";
                Refusal::new("is no IP address with a port", remedy)
            })?;
            scoped(address).map(|address| address.to_string())
        }
    }
}

/// Whether the brackets of a host hold an IPv6 address, and, where that is link-local and only
/// there, the interface it is at: by name or number, as the system's resolver takes it.
fn is_bracketed(inner: &str) -> Result<(), &'static str> {
    let (ip, zone) = match inner.split_once('%') {
        Some((ip, zone)) => (ip, Some(zone)),
        None => (inner, None),
    };
    let Ok(ip) = ip.parse::<std::net::Ipv6Addr>() else {
        return Err("has no IPv6 address in its brackets");
    };
    let named = |zone: &str| {
        let letter = |c: char| c.is_ascii_graphic() && !"%/[]".contains(c);
        (1..=INTERFACE_MAX).contains(&zone.len()) && zone.chars().all(letter)
    };
    match zone {
        None if ip.is_unicast_link_local() => Err(NO_LINK),
        Some(_) if !ip.is_unicast_link_local() => {
            Err("names an interface for an address that is not link-local")
        }
        Some(zone) if !named(zone) => Err("has no interface behind the percent sign"),
        _ => Ok(()),
    }
}

/// `host:port` or `[IPv6]:port`.
fn host_port(text: &str, remedy: &str) -> Result<(String, u16), Refusal> {
    let refuse = |what: &str| Refusal::new(what, remedy);
    let (host, port) = text.rsplit_once(':').ok_or_else(|| refuse("has no port"))?;
    let port = port
        .parse::<u16>()
        .ok()
        .filter(|_| port.bytes().all(|b| b.is_ascii_digit()));
    let port = port
        .filter(|&port| port != 0)
        .ok_or_else(|| refuse("has no port of 1 to 65535"))?;
    let bare = match host
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
    {
        Some(inner) => {
            return match is_bracketed(inner) {
                Ok(()) => Ok((inner.to_owned(), port)),
                Err(NO_LINK) => {
                    let remedy = format!("name the interface, such as \"[{inner}%eth0]:{port}\"");
                    Err(Refusal::new(NO_LINK, remedy))
                }
                Err(what) => Err(refuse(what)),
            };
        }
        None if host.contains(':') => return Err(refuse("has an IPv6 address without brackets")),
        None => host,
    };
    let label = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if bare.is_empty() || bare.len() > 253 || !bare.chars().all(label) {
        return Err(refuse("has no host name or address before the port"));
    }
    Ok((bare.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_read_in_each_form() {
        let tcp = |host: &str, port| {
            Ok(BackendAddress::Tcp {
                host: host.to_owned(),
                port,
            })
        };
        assert_eq!(backend("nfs:2049"), tcp("nfs", 2049));
        assert_eq!(backend("192.0.2.1:1"), tcp("192.0.2.1", 1));
        assert_eq!(backend("[2001:db8::1]:2049"), tcp("2001:db8::1", 2049));
        assert_eq!(backend("export"), Ok(BackendAddress::Export));
        for bad in [
            "",
            ":1",
            "nfs",
            "nfs:",
            "nfs:0",
            "nfs:+1",
            "nfs:65536",
            "::1:2049",
            "a b:1",
        ] {
            assert!(backend(bad).is_err(), "{bad}");
        }
        assert_eq!(backend("[fe80::1%eth0]:2049"), tcp("fe80::1%eth0", 2049));
        for bad in [
            "[]:1",
            "[nfs]:1",
            "[::1:1",
            "nfs/x:1",
            "[fe80::1]:1",
            "[fe80::1%]:1",
            "[fe80::1%a/b]:1",
            "[fe80::1%an-interface-too-long]:1",
            "[2001:db8::1%eth0]:1",
        ] {
            assert!(backend(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn link_local_listeners_say_of_which_link() {
        assert!(listen("[fe80::1]:2049").is_err());
        assert!(door("[fe80::1]:20049", Fabric::Verbs).is_err());
        let two = "[fe80::1%2]:2049";
        assert_eq!(listen(two).map(|it| it.to_string()).as_deref(), Ok(two));
        assert_eq!(door(two, Fabric::Verbs).as_deref(), Ok(two));
    }
}
