//! Universal addresses: an IP address and a port as text (RFC 5665 section 5.2.3).

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Most octets of a universal address: 39 of IPv6 text and two octets of port in decimal.
pub const UNIVERSAL_BYTES: u32 = 48;

/// The text of an address: `192.0.2.1.78.81`, `2001:db8::1.78.81`.
#[must_use]
pub fn emit(address: SocketAddr) -> String {
    let [high, low] = address.port().to_be_bytes();
    let mut text = address.ip().to_string();
    // Writing into a String cannot fail.
    let _ = write!(text, ".{high}.{low}");
    text
}

/// Reads such a text; `None` for anything else. A scope (`%eth0`) is refused: it means nothing to another host.
#[must_use]
pub fn parse(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let (rest, low) = text.rsplit_once('.')?;
    let (ip, high) = rest.rsplit_once('.')?;
    let port = u16::from_be_bytes([octet(high)?, octet(low)?]);
    let ip = match ip.parse::<Ipv4Addr>() {
        Ok(v4) => IpAddr::V4(v4),
        Err(_) => IpAddr::V6(ip.parse::<Ipv6Addr>().ok()?),
    };
    Some(SocketAddr::new(ip, port))
}

/// A decimal number of one octet, digits alone: `u8::from_str` takes a plus sign.
fn octet(text: &str) -> Option<u8> {
    text.bytes()
        .all(|digit| digit.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// The netid of RPC-over-RDMA to such an address (RFC 8166 section 9, RFC 5665 section 5.1.1).
#[must_use]
pub fn netid(address: SocketAddr) -> &'static str {
    match address.ip() {
        IpAddr::V4(_) => "rdma",
        IpAddr::V6(_) => "rdma6",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc5665_5_2_3_both_families_go_and_come_back() {
        for (address, text) in [
            ("192.0.2.1:20049", "192.0.2.1.78.81"),
            ("[2001:db8::1]:2049", "2001:db8::1.8.1"),
            ("[::ffff:192.0.2.1]:256", "::ffff:192.0.2.1.1.0"),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(emit(address), text);
            assert_eq!(parse(text.as_bytes()), Some(address));
            assert!(text.len() <= UNIVERSAL_BYTES as usize);
        }
    }

    #[test]
    fn what_is_no_universal_address_is_refused() {
        for text in [
            "",
            ".",
            "1.2",
            "192.0.2.1",
            "192.0.2.1.256.1",
            "192.0.2.1.+1.1",
            "192.0.2.1.1.",
            "192.0.2.1.1.1.1",
            "fe80::1%eth0.8.1",
            "host.8.1",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse(&[0xFF, b'.', b'1', b'.', b'1']), None);
    }
}
