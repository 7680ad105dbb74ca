//! Frames of an IPoIB link, by RFC 4391, 826, 791, 8200, 768 and 4861.

use super::{Refusal, or_nothing, said};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Octets that are taken off the front.
struct Reader {
    rest: Vec<u8>,
}

impl Reader {
    fn take(&mut self, bytes: usize, otherwise: Refusal) -> Result<Vec<u8>, Refusal> {
        if self.rest.len() < bytes {
            return Err(otherwise);
        }
        let rest = self.rest.split_off(bytes);
        Ok(std::mem::replace(&mut self.rest, rest))
    }

    fn number(&mut self, bytes: usize, otherwise: Refusal) -> Result<u32, Refusal> {
        Ok(number(&self.take(bytes, otherwise)?))
    }
}

fn number(octets: &[u8]) -> u32 {
    octets
        .iter()
        .fold(0, |sum, octet| sum << 8 | u32::from(*octet))
}

/// Everything about a frame.
pub(crate) fn describe(frame: &[u8]) -> String {
    said(judge(frame))
}

fn judge(frame: &[u8]) -> Result<String, Refusal> {
    let mut reader = Reader {
        rest: frame.to_vec(),
    };
    let head = reader.take(4, "frame-short")?;
    match number(&head[..2]) {
        0x0806 => arp(reader),
        0x0800 => ipv4(&reader.rest),
        0x86DD => ipv6(&reader.rest),
        _ => Err("frame-protocol"),
    }
}

/// One's complement sum, complemented: by dividing, which is what folding does.
fn sum(octets: &[u8]) -> u32 {
    let mut even = octets.to_vec();
    even.resize(octets.len().next_multiple_of(2), 0);
    let total: u64 = even.chunks(2).map(|pair| u64::from(number(pair))).sum();
    let folded = if total > 0 && total.is_multiple_of(0xFFFF) {
        0xFFFF
    } else {
        total % 0xFFFF
    };
    0xFFFF - folded as u32
}

fn hardware(octets: &[u8]) -> String {
    let flags = octets[0] & 0xC0;
    let gid = u128::from_be_bytes(octets[4..20].try_into().unwrap());
    format!("{flags:#x}/{:#x}/{gid:#x}", number(&octets[1..4]))
}

/// A hardware address that datagrams can go to.
fn reachable(octets: &[u8]) -> Result<String, Refusal> {
    let queue = number(&octets[1..4]);
    if queue < 2 || queue == 0xFF_FFFF {
        return Err(if octets[0] < 0x40 {
            "hardware-queue"
        } else {
            "hardware-connected-only"
        });
    }
    if octets[4] == 0xFF || octets[12..20] == [0; 8] {
        return Err("hardware-gid");
    }
    Ok(hardware(octets))
}

fn v4(octets: &[u8]) -> Ipv4Addr {
    Ipv4Addr::from(number(octets))
}

/// 0/8, 127/8, 224/4 and 240/4 are nobody's.
fn is_host(ip: Ipv4Addr) -> bool {
    let number = u32::from(ip);
    number >> 24 != 0 && number >> 24 != 127 && number >> 29 != 7
}

fn arp(mut reader: Reader) -> Result<String, Refusal> {
    let message = reader.take(56, "arp-short")?;
    if message[..2] != [0, 32] || message[4] != 20 {
        return Err("arp-hardware");
    }
    if message[2..4] != [8, 0] || message[5] != 4 {
        return Err("arp-protocol");
    }
    let kind = match message[6..8] {
        [0, 1] => "request",
        [0, 2] => "reply",
        _ => return Err("arp-operation"),
    };
    let (sender_ip, target_ip) = (v4(&message[28..32]), v4(&message[52..56]));
    let probe = kind == "request" && u32::from(sender_ip) == 0;
    if !probe && !is_host(sender_ip) {
        return Err("arp-sender");
    }
    let sender = reachable(&message[8..28])?;
    let target = hardware(&message[32..52]);
    Ok(format!(
        "arp {kind} {sender_ip} at {sender} to {target_ip} at {target}"
    ))
}

fn ipv4(octets: &[u8]) -> Result<String, Refusal> {
    if octets.len() < 20 || octets[0] / 16 != 4 {
        return Err("ip-header");
    }
    let (head, total) = (
        usize::from(octets[0] % 16) * 4,
        number(&octets[2..4]) as usize,
    );
    if head > octets.len() || head > total || total > octets.len() {
        return Err("ip-length");
    }
    if head < 20 {
        return Err("ip-header");
    }
    if sum(&octets[..head]) != 0 {
        return Err("ip-sum");
    }
    let (source, destination) = (v4(&octets[12..16]), v4(&octets[16..20]));
    if !is_host(source) && u32::from(source) != 0 {
        return Err("ip-source");
    }
    if number(&octets[6..8]) & 0x3FFF != 0 {
        return Err("ip-fragment");
    }
    let ends = (IpAddr::from(source), IpAddr::from(destination));
    upper(octets[9], octets[8], ends, &octets[head..total])
}

fn v6(octets: &[u8]) -> Ipv6Addr {
    Ipv6Addr::from(<[u8; 16]>::try_from(octets).unwrap())
}

fn ipv6(octets: &[u8]) -> Result<String, Refusal> {
    if octets.len() < 40 || octets[0] / 16 != 6 {
        return Err("ip-header");
    }
    let payload = octets[40..].get(..number(&octets[4..6]) as usize);
    let payload = payload.ok_or("ip-length")?;
    let (source, destination) = (v6(&octets[8..24]), v6(&octets[24..40]));
    if octets[8] == 0xFF || u128::from(source) == 1 {
        return Err("ip-source");
    }
    match octets[6] {
        44 => return Err("ip-fragment"),
        0 | 43 | 60 => return Err("ip-extension"),
        _ => {}
    }
    let ends = (IpAddr::from(source), IpAddr::from(destination));
    upper(octets[6], octets[7], ends, payload)
}

/// The message with the pseudo header before it.
fn pseudo(protocol: u8, ends: (IpAddr, IpAddr), message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let octets = |ip| match ip {
        IpAddr::V4(ip) => Ipv4Addr::octets(&ip).to_vec(),
        IpAddr::V6(ip) => Ipv6Addr::octets(&ip).to_vec(),
    };
    let head = [
        octets(ends.0),
        octets(ends.1),
        length.to_vec(),
        vec![0, 0, 0, protocol],
    ];
    [head.concat(), message.to_vec()].concat()
}

fn upper(
    protocol: u8,
    hops: u8,
    ends: (IpAddr, IpAddr),
    message: &[u8],
) -> Result<String, Refusal> {
    match protocol {
        17 => udp(hops, ends, message),
        58 => discovery(hops, ends, message),
        _ => Err("ip-transport"),
    }
}

fn udp(hops: u8, ends: (IpAddr, IpAddr), message: &[u8]) -> Result<String, Refusal> {
    let mut reader = Reader {
        rest: message.to_vec(),
    };
    let [from, to, length, checksum] = [(); 4].map(|()| reader.number(2, "udp-length"));
    let (from, to, length, checksum) = (from?, to?, length? as usize, checksum?);
    if length < 8 || length > message.len() {
        return Err("udp-length");
    }
    let wrong = match (checksum, ends.0) {
        (0, IpAddr::V4(_)) => false,
        (0, IpAddr::V6(_)) => true,
        _ => sum(&pseudo(17, ends, &message[..length])) != 0,
    };
    if wrong {
        return Err("udp-sum");
    }
    if from == 0 || to == 0 {
        return Err("udp-port");
    }
    let from = SocketAddr::new(ends.0, from as u16);
    let to = SocketAddr::new(ends.1, to as u16);
    let payload = or_nothing(hex::encode(&message[8..length]));
    Ok(format!("udp {from} to {to} hops {hops} payload {payload}"))
}

fn discovery(hops: u8, ends: (IpAddr, IpAddr), message: &[u8]) -> Result<String, Refusal> {
    let (IpAddr::V6(source), IpAddr::V6(destination)) = ends else {
        return Err("ip-transport");
    };
    let kind = message.first().copied();
    if kind != Some(135) && kind != Some(136) {
        return Err("icmp-type");
    }
    if sum(&pseudo(58, ends, message)) != 0 {
        return Err("icmp-sum");
    }
    if hops != 255 {
        return Err("discovery-hops");
    }
    let asks = kind == Some(135);
    let mut reader = Reader {
        rest: message.to_vec(),
    };
    let head = reader.take(24, "discovery-short")?;
    if head[1] != 0 {
        return Err("discovery-short");
    }
    let target = v6(&head[8..24]);
    if head[8] == 0xFF || u128::from(target) < 2 {
        return Err("discovery-target");
    }
    let at = options(reader, if asks { 1 } else { 2 })?;
    let nobody = u128::from(source) == 0;
    let said = at.clone().unwrap_or("-".to_owned());
    if asks {
        let group = format!("ff02::1:ff{:02x}:{:x}", head[21], number(&head[22..24]));
        let probe = destination == group.parse::<Ipv6Addr>().unwrap() && at.is_none();
        if nobody && !probe {
            return Err("discovery-source");
        }
        return Ok(format!(
            "solicitation {source} at {said} to {destination} of {target}"
        ));
    }
    let flags = [0x80, 0x40, 0x20].map(|bit| if head[4] & bit == 0 { '0' } else { '1' });
    if nobody || destination.octets()[0] == 0xFF && flags[1] == '1' {
        return Err("discovery-source");
    }
    let flags = String::from_iter(flags);
    Ok(format!(
        "advertisement {flags} {source} at {said} to {destination} of {target}"
    ))
}

fn options(mut reader: Reader, wanted: u8) -> Result<Option<String>, Refusal> {
    let mut found = None;
    while !reader.rest.is_empty() {
        let head = reader.take(2, "discovery-option")?;
        let bytes = (usize::from(head[1]) * 8)
            .checked_sub(2)
            .ok_or("discovery-option")?;
        let option = reader.take(bytes, "discovery-option")?;
        if head[0] == wanted && found.is_none() {
            if option.len() != 22 {
                return Err("discovery-address");
            }
            found = Some(reachable(&option[2..])?);
        }
    }
    Ok(found)
}
