//! The MTU of the way to a peer, as the kernel knows it.

use super::octets_of;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Octets of the longest IP packet on the route to a peer, from that local address. Learned from
/// the interface, the routing table and ICMP.
pub(crate) fn route_mtu(from: SocketAddr, to: SocketAddr) -> io::Result<u32> {
    let socket = UdpSocket::bind((from.ip(), 0))?;
    socket.connect(to)?;
    let (level, option) = if to.is_ipv4() {
        (libc::IPPROTO_IP, libc::IP_MTU)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU)
    };
    let mut mtu: libc::c_int = 0;
    let mut len = octets_of::<libc::c_int>();
    // SAFETY: value and length are ours and live through the call.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw mut mtu).cast(),
            &raw mut len,
        )
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::try_from(mtu).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_one() {
        let here: SocketAddr = ([127, 0, 0, 1], 0).into();
        let mtu = route_mtu(here, ([127, 0, 0, 1], 9).into()).expect("a loopback interface");
        assert!((68..=65_536).contains(&mtu), "{mtu}");
    }
}
