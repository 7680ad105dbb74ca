//! TCP keepalive, the same for clients and backends.

use rustix::fd::AsFd;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::time::Duration;

/// Between probes.
const INTERVAL: Duration = Duration::from_secs(5);
/// How many may stay without an answer before the connection is given up.
const PROBES: u32 = 3;

/// Probes the peer after it has been silent for `idle`; `None`: never.
pub(crate) fn set(socket: &impl AsFd, idle: Option<Duration>) -> io::Result<()> {
    let Some(idle) = idle else { return Ok(()) };
    let probes = TcpKeepalive::new()
        .with_time(idle)
        .with_interval(INTERVAL)
        .with_retries(PROBES);
    SockRef::from(socket).set_tcp_keepalive(&probes)
}
