//! Values with a form of their own: names, addresses, paths, lists.

mod address;
mod lcores;
mod link;
mod port;

pub(crate) use address::*;
pub(crate) use lcores::*;
pub(crate) use link::*;
pub(crate) use port::*;

use crate::allow::{self, Networks, NotBlock, Peer, Peers};
use crate::plan::{Devices, Fabric, Programs};
use crate::reading::{Elements, NO_WORD, Reading, Refusal, number};
use ipnet::IpNet;
use std::path::PathBuf;
use toml::de::DeValue;

/// The longest name, in octets.
const NAME_MAX: usize = 64;
/// The longest path of a unix-domain socket, in octets: `sun_path` with its final zero is 108.
const SOCKET_PATH_MAX: usize = 107;

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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_socket_path_fits_its_address() {
        let longest = format!("/{}", "x".repeat(SOCKET_PATH_MAX - 1));
        assert_eq!(socket(&longest), Ok(Some(PathBuf::from(&longest))));
        assert!(socket(&format!("{longest}x")).is_err());
        assert_eq!(socket("off"), Ok(None));
        assert!(socket("run/x").is_err());
    }
}
