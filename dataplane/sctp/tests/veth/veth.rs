//! A cable between two network interfaces of Linux: one for a port, one for sockets.

use std::net::IpAddr;
use std::process::Command;

/// Gone when dropped.
#[derive(Debug)]
pub struct Veth {
    here: String,
    there: IpAddr,
}

impl Veth {
    /// With that address, and its prefix, at the end of the sockets.
    ///
    /// # Errors
    ///
    /// In one line, why there can be none: no rights, most of all.
    pub fn new(address: &str) -> Result<Veth, String> {
        let id = std::process::id();
        let (here, there) = (format!("dp{id}"), format!("dq{id}"));
        let ip = |line: &str| run("ip", line);
        ip(&format!("link add {here} type veth peer name {there}"))?;
        let veth = Veth {
            here,
            there: address
                .split('/')
                .next()
                .and_then(|it| it.parse().ok())
                .ok_or("no address")?,
        };
        ip(&format!("link set {} up", veth.here))?;
        ip(&format!("link set {there} up"))?;
        ip(&format!("addr add {address} dev {there}"))?;
        // Otherwise it leaves checksums to an adapter that is not there.
        run("ethtool", &format!("-K {there} tx off"))?;
        Ok(veth)
    }

    /// The interface of the port's end.
    pub fn here(&self) -> &str {
        &self.here
    }

    /// The address of the sockets' end.
    pub fn there(&self) -> IpAddr {
        self.there
    }
}

impl Drop for Veth {
    fn drop(&mut self) {
        let _ = run("ip", &format!("link del {}", self.here));
    }
}

fn run(program: &str, line: &str) -> Result<(), String> {
    let output = Command::new(program)
        .args(line.split_whitespace())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {line}: {}", said.trim()))
}
