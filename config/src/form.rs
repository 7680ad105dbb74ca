//! Values with a form of their own: names, addresses, paths, lists.

mod link;
mod port;

pub(crate) use link::*;
pub(crate) use port::*;

use crate::allow::{self, Networks, NotBlock, Peer, Peers};
use crate::plan::{BackendAddress, Devices, Fabric, Programs, Upstream};
use crate::reading::{Elements, NO_WORD, Reading, Refusal, number};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use toml::de::{DeInteger, DeValue};

/// The longest name, in octets.
const NAME_MAX: usize = 64;
/// The longest path of a unix-domain socket, in octets: `sun_path` with its final zero is 108.
const SOCKET_PATH_MAX: usize = 107;

/// The longest name of a network interface, in octets: IFNAMSIZ without its final zero.
const INTERFACE_MAX: usize = 15;
/// What is wrong with a link-local address that does not say of which link.
const NO_LINK: &str = "is a link-local address, and does not say on which link";

/// A name: of an endpoint, or an address in the memory fabric.
pub(crate) fn name(text: &str) -> Result<String, Refusal> {
    let remedy = format!("use 1 to {NAME_MAX} of a-z A-Z 0-9 - _ .");
    if text.is_empty() {
        return Err(Refusal::new("is empty", remedy));
    }
    if text.len() > NAME_MAX {
        return Err(Refusal::new(
            format!("is longer than {NAME_MAX} octets"),
            remedy,
        ));
    }
    match text
        .chars()
        .find(|&c| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
    {
        Some(other) => Err(Refusal::new(format!("has {other:?} in it"), remedy)),
        None => Ok(text.to_owned()),
    }
}

/// A fabric of this build.
pub(crate) fn fabric(text: &str) -> Result<Fabric, Refusal> {
    if let Some(&fabric) = Fabric::ALL.iter().find(|fabric| fabric.name() == text) {
        return Ok(fabric);
    }
    let names: Vec<_> = Fabric::ALL
        .iter()
        .map(|f| format!("\"{}\"", f.name()))
        .collect();
    let remedy = format!("this build has {}", names.join(", "));
    Err(Refusal::new("no fabric of this name", remedy))
}

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

/// `verbs.devices`.
pub(crate) fn devices(value: &DeValue<'_>, elements: &Elements<'_>) -> Reading<Devices> {
    match value {
        DeValue::String(text) if text == "all" => Reading::Value(Devices::All),
        DeValue::String(_) => {
            let remedy = "give \"all\", or a list of device names";
            Reading::Refused(Refusal::new(NO_WORD, remedy))
        }
        DeValue::Array(list) if list.is_empty() => {
            Reading::Refused(Refusal::new("is empty", "list at least one device"))
        }
        DeValue::Array(list) => elements
            .read(list, "a string", |entry| entry.as_str().map(name))
            .map(Devices::Named),
        _ => Reading::WrongType,
    }
}

/// `verbs.gid_index`; `None`: by rule.
pub(crate) fn gid_index(value: &DeValue<'_>, _: &Elements<'_>) -> Reading<Option<u8>> {
    match value {
        DeValue::String(text) if text == "auto" => Reading::Value(None),
        DeValue::String(_) => {
            let remedy = "give \"auto\", or a number of 0 to 255";
            Reading::Refused(Refusal::new(NO_WORD, remedy))
        }
        DeValue::Integer(written) => {
            let index = number(written).and_then(|number| u8::try_from(number).ok());
            let refused = || Refusal::new("out of range", "give 0 to 255, or \"auto\"");
            index.map(Some).ok_or_else(refused).into()
        }
        _ => Reading::WrongType,
    }
}

/// An absolute path: a service has no working directory worth the name.
pub(crate) fn directory(text: &str) -> Result<PathBuf, Refusal> {
    let path = PathBuf::from(text);
    if text.contains('\0') {
        return Err(Refusal::new("has a zero octet in it", "remove it"));
    }
    if !path.is_absolute() {
        return Err(Refusal::new(
            "is not an absolute path",
            "begin with a slash",
        ));
    }
    Ok(path)
}

/// The path of the status socket; `None`: off.
pub(crate) fn socket(text: &str) -> Result<Option<PathBuf>, Refusal> {
    if text == "off" {
        return Ok(None);
    }
    if text.len() > SOCKET_PATH_MAX {
        let what = format!("is longer than the {SOCKET_PATH_MAX} octets of a socket's path");
        return Err(Refusal::new(what, "choose a shorter one"));
    }
    let path = directory(text).map_err(|refusal| Refusal {
        remedy: format!("{}, or write \"off\"", refusal.remedy),
        ..refusal
    })?;
    Ok(Some(path))
}

/// One CIDR block.
fn block(text: &str) -> Result<IpNet, Refusal> {
    allow::block(text).map_err(|reason| match reason {
        NotBlock::Address { slash } => Refusal::new(
            match slash {
                true => "has no IP address before the slash",
                false => "is no IP address",
            },
            "write a block such as \"192.0.2.0/24\" or \"2001:db8::/32\"",
        ),
        NotBlock::Prefix { max } => {
            let what = format!("has no prefix length of 0 to {max} behind the slash");
            Refusal::new(what, format!("end it in /0 to /{max}"))
        }
        NotBlock::Mapped { meant } => Refusal::new(
            "is IPv4 in its IPv6 form, and peers are compared as IPv4",
            format!("write \"{meant}\""),
        ),
        NotBlock::HostBits { meant } => Refusal::new(
            "has address bits set beyond its prefix",
            format!("write \"{meant}\", or the address alone"),
        ),
    })
}

/// The clients of a back.
pub(crate) fn networks(value: &DeValue<'_>, elements: &Elements<'_>) -> Reading<Networks> {
    let Some(list) = value.as_array() else {
        return Reading::WrongType;
    };
    elements
        .read(list, "a string", |entry| entry.as_str().map(block))
        .map(Networks)
}

/// The peers of a front or a service.
pub(crate) fn peers(value: &DeValue<'_>, elements: &Elements<'_>) -> Reading<Peers> {
    let Some(list) = value.as_array() else {
        return Reading::WrongType;
    };
    let peer = |text: &str| match text {
        "memory" => Ok(Peer::Memory),
        _ => block(text).map(Peer::Network),
    };
    elements
        .read(list, "a string", |entry| entry.as_str().map(peer))
        .map(Peers)
}

/// The programs of a backend.
pub(crate) fn programs(value: &DeValue<'_>, elements: &Elements<'_>) -> Reading<Programs> {
    match value {
        DeValue::String(text) if text == "others" => Reading::Value(Programs::Others),
        DeValue::String(_) => {
            let remedy = "give a list of program numbers, or \"others\"";
            Reading::Refused(Refusal::new(NO_WORD, remedy))
        }
        DeValue::Array(list) if list.is_empty() => {
            let remedy = "list its programs: NFS 100003, NFSACL 100227, MOUNT 100005";
            Reading::Refused(Refusal::new("is empty", remedy))
        }
        DeValue::Array(list) => elements
            .read(list, "a whole number", program)
            .map(Programs::Listed),
        _ => Reading::WrongType,
    }
}

fn program(entry: &DeValue<'_>) -> Option<Result<u32, Refusal>> {
    let number = number(entry.as_integer()?).and_then(|number| u32::try_from(number).ok());
    Some(
        number
            .filter(|&number| number != 0)
            .ok_or_else(|| Refusal::new("no program number", format!("give 1 to {}", u32::MAX))),
    )
}

/// Arguments of EAL that the appliance gives itself: which lcores there are.
const DERIVED: [&str; 8] = [
    "-c",
    "-l",
    "-s",
    "-S",
    "--lcores",
    "--main-lcore",
    "--master-lcore",
    "--service-corelist",
];
/// The longest argument of EAL, in octets.
const ARGUMENT_MAX: usize = 1024;

/// The arguments of EAL. They may repeat: `-a` does for each device.
pub(crate) fn eal_args(value: &DeValue<'_>, elements: &Elements<'_>) -> Reading<Vec<String>> {
    let Some(list) = value.as_array() else {
        return Reading::WrongType;
    };
    elements.each(list, "a string", |entry, _| entry.as_str().map(eal_arg))
}

fn eal_arg(text: &str) -> Result<String, Refusal> {
    if text.is_empty() || text.len() > ARGUMENT_MAX || text.contains('\0') {
        let what = format!("is not 1 to {ARGUMENT_MAX} octets without a zero among them");
        return Err(Refusal::new(what, "remove it"));
    }
    let derived = DERIVED.iter().find(|name| match text.strip_prefix(**name) {
        None => false,
        // Short ones may have their value behind them without a gap.
        Some(rest) => rest.is_empty() || rest.starts_with('=') || !name.starts_with("--"),
    });
    match derived {
        None => Ok(text.to_owned()),
        Some(_) => Err(Refusal::new(
            "says which lcores there are",
            "remove it, and say so in runtime.lcores",
        )),
    }
}

/// `runtime.lcores`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lcores {
    Auto,
    Count(usize),
    Processors(Vec<usize>),
}

/// The lcores, against the processors that there are.
pub(crate) fn lcores(
    value: &DeValue<'_>,
    elements: &Elements<'_>,
    cores: &[usize],
) -> Reading<Lcores> {
    match value {
        DeValue::String(text) if text == "auto" => Reading::Value(Lcores::Auto),
        DeValue::String(_) => {
            let remedy = "give \"auto\", a count or a list of processor numbers";
            Reading::Refused(Refusal::new(NO_WORD, remedy))
        }
        DeValue::Integer(count) => lcore_count(count, cores.len()).map(Lcores::Count).into(),
        DeValue::Array(list) if list.is_empty() => {
            Reading::Refused(Refusal::new("is empty", "list at least one processor"))
        }
        DeValue::Array(list) => elements
            .read(list, "a whole number", |entry| processor(entry, cores))
            .map(Lcores::Processors),
        _ => Reading::WrongType,
    }
}

fn lcore_count(written: &DeInteger<'_>, have: usize) -> Result<usize, Refusal> {
    let count = number(written).and_then(|number| usize::try_from(number).ok());
    count
        .filter(|count| (1..=have).contains(count))
        .ok_or_else(|| {
            let what = format!("out of range: this process may use {have} processors");
            Refusal::new(what, format!("give 1 to {have}, or \"auto\""))
        })
}

fn processor(entry: &DeValue<'_>, cores: &[usize]) -> Option<Result<usize, Refusal>> {
    let number = number(entry.as_integer()?);
    let core = number.and_then(|number| usize::try_from(number).ok());
    Some(core.filter(|core| cores.contains(core)).ok_or_else(|| {
        let what = "no processor that this process may use";
        Refusal::new(what, format!("choose among {}", ranges(cores)))
    }))
}

/// Numbers in ascending order, neighbours joined: `0-3, 8`.
pub(crate) fn ranges(numbers: &[usize]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let texts: Vec<_> = runs
        .map(|run| match run {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect();
    texts.join(", ")
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

    #[test]
    fn arguments_of_eal_name_no_lcores() {
        for good in [
            "-m",
            "512",
            "--no-huge",
            "--log-level=debug",
            "--lcores-not",
            "-a",
        ] {
            assert_eq!(eal_arg(good).as_deref(), Ok(good));
        }
        let derived = ["-l", "-l0-3", "-c", "-cff", "--lcores=0@1", "--main-lcore"];
        for bad in derived.into_iter().chain(["", "a\0b"]) {
            assert!(eal_arg(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_are_joined_in_ranges() {
        assert_eq!(ranges(&[3, 0, 1, 2, 8]), "0-3, 8");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn a_socket_path_fits_its_address() {
        let longest = format!("/{}", "x".repeat(SOCKET_PATH_MAX - 1));
        assert_eq!(socket(&longest), Ok(Some(PathBuf::from(&longest))));
        assert!(socket(&format!("{longest}x")).is_err());
        assert_eq!(socket("off"), Ok(None));
        assert!(socket("run/x").is_err());
    }
}
