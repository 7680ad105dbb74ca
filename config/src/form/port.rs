//! Devices and addresses of ports.

use super::no_host;
use crate::port::PortDevice;
use crate::reading::Refusal;
use ipnet::IpNet;
use rpcrdma_unicast::{is_of_a_host, judge};
use std::net::IpAddr;

/// Octets of the longest device, its arguments with it.
const DEVICE_MAX: usize = 1024;

/// `net_...` with arguments behind commas, or an address on the PCI bus.
pub(crate) fn port_device(text: &str) -> Result<PortDevice, Refusal> {
    let remedy = "write a virtual device such as \"net_memif0,role=server,socket=/run/m.sock\", or an \
                  address on the PCI bus such as \"0000:01:00.0\"";
    let refuse = |what: &str| Err(Refusal::new(what, remedy));
    if text.len() > DEVICE_MAX || text.chars().any(|it| it.is_control() || it == ' ') {
        return refuse("is longer than 1024 octets, or has spaces in it");
    }
    if text.starts_with("net_") {
        let name = text.split(',').next().unwrap_or(text);
        let plain = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'_';
        if !name.bytes().all(plain) || !name.ends_with(|it: char| it.is_ascii_digit()) {
            return refuse("has no name of a driver with a number in front of its arguments");
        }
        return Ok(PortDevice::Virtual(text.to_owned()));
    }
    match pci(text) {
        Some(address) => Ok(PortDevice::Pci(address)),
        None => refuse("is no device of DPDK's"),
    }
}

/// The whole of an address on the PCI bus; the domain may be left out.
fn pci(text: &str) -> Option<String> {
    let whole = match text.matches(':').count() {
        1 => format!("0000:{text}"),
        _ => text.to_owned(),
    };
    let (domain, rest) = whole.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let hexadecimal = |part: &str, len: usize| {
        part.len() == len && part.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    let is_one = hexadecimal(domain, 4)
        && hexadecimal(bus, 2)
        && hexadecimal(device, 2)
        && matches!(function.as_bytes(), [b'0'..=b'7']);
    is_one.then(|| whole.to_ascii_lowercase())
}

/// A host's address with the bits of its network.
pub(crate) fn port_address(text: &str) -> Result<IpNet, Refusal> {
    let remedy = "write an address such as \"10.1.0.5/24\" or \"2001:db8::5/64\"";
    let refuse = |what: &str| Refusal::new(what, remedy);
    if text.parse::<IpAddr>().is_ok() {
        return Err(refuse("does not say how many bits name the network"));
    }
    let network: IpNet = text
        .parse()
        .map_err(|_| refuse("is no IP address with its bits"))?;
    match judge(&network) {
        Ok(()) => Ok(network),
        Err(why) => Err(refuse(no_host(why))),
    }
}

/// One host's address.
pub(crate) fn gateway(text: &str) -> Result<IpAddr, Refusal> {
    let remedy = "write an address such as \"10.1.0.1\"";
    let address: IpAddr = text
        .parse()
        .map_err(|_| Refusal::new("is no IP address", remedy))?;
    if !is_of_a_host(address) {
        return Err(Refusal::new("is no host's address", remedy));
    }
    Ok(address)
}
