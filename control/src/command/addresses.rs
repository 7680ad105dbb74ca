//! Where clients find what the appliance serves, and what to type to try it.

use crate::export::EXPORT_PATH;
use rpcrdma_config::Plan;
use rpcrdma_config::plan::{Back, BackendAddress, Upstream};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// RPC program numbers (RFC 1813).
const NFS: u32 = 100_003;
const MOUNT: u32 = 100_005;

/// A door for NFS clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Door {
    /// Where it is, for clients on this machine.
    pub(super) address: SocketAddr,
    /// MOUNT is served there, too.
    pub(super) mount: bool,
    /// The path to mount: the embedded server's, or `/` where the server is somebody else's.
    pub(super) path: &'static str,
}

impl Door {
    /// The door that a back is, if NFS is served behind it.
    pub(super) fn of(plan: &Plan, back: &Back, listening: SocketAddr) -> Option<Self> {
        let front = plan
            .fronts
            .iter()
            .find(|front| leads_to(&back.upstream, &front.listen))?;
        let server = &front.backends.get(front.backend_of(NFS)?)?.address;
        let path = if *server == BackendAddress::Export {
            EXPORT_PATH
        } else {
            "/"
        };
        let mount = front.backend_of(MOUNT).is_some();
        Some(Self {
            address: reachable(listening),
            mount,
            path,
        })
    }

    /// The address as libnfs wants it; `file` is relative to the export.
    pub(super) fn url(&self, file: &str) -> String {
        let Self { address, path, .. } = self;
        let path = path.trim_end_matches('/');
        let slash = if file.is_empty() && !path.is_empty() {
            ""
        } else {
            "/"
        };
        let port = address.port();
        let host = match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let mount = if self.mount {
            format!("&mountport={port}")
        } else {
            String::new()
        };
        format!("nfs://{host}{path}{slash}{file}?version=3&nfsport={port}{mount}")
    }

    /// The command that has the kernel mount it. Locking is another program, which is not served.
    pub(super) fn mount_line(&self) -> String {
        let Self { address, path, .. } = self;
        let port = address.port();
        let (host, family) = match address.ip() {
            IpAddr::V4(ip) => (ip.to_string(), ""),
            IpAddr::V6(ip) => (format!("[{ip}]"), "6"),
        };
        let mount = if self.mount {
            format!(",mountproto=tcp{family},mountport={port}")
        } else {
            String::new()
        };
        format!(
            "mount -t nfs -o vers=3,proto=tcp{family},port={port}{mount},nolock {host}:{path} /mnt"
        )
    }

    /// All that there is to say, for a person.
    pub(super) fn advice(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {}", self.url(""));
        let _ = writeln!(text, "try:");
        let _ = writeln!(text, "  nfs-cp /etc/services '{}'", self.url("services"));
        let _ = writeln!(text, "  nfs-ls '{}'", self.url(""));
        let _ = writeln!(text, "  nfs-cat '{}'", self.url("services"));
        let _ = writeln!(text, "or, as root:");
        let _ = writeln!(text, "  {}", self.mount_line());
        text
    }
}

/// Whether connections to this upstream come to the front that listens at `listen`.
fn leads_to(upstream: &Upstream, listen: &str) -> bool {
    match upstream {
        Upstream::Memory(name) => name == listen,
        // Nobody knows before somebody answers.
        Upstream::Discover(_) => false,
        Upstream::Host { host, port } => {
            let (Ok(ip), Ok(listen)) = (host.parse::<IpAddr>(), listen.parse::<SocketAddr>())
            else {
                return false;
            };
            let here = listen.ip() == ip || listen.ip().is_unspecified();
            *port == listen.port() && here
        }
    }
}

/// Where to reach a listener from this machine: one for all addresses is at loopback, too.
fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    SocketAddr::new(ip, listening.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_config::Machine;

    fn plan(text: &str) -> Plan {
        let machine = Machine {
            cores: vec![0, 1],
            status_socket: "/run/status".into(),
        };
        rpcrdma_config::parse("test.toml", text, &machine).unwrap()
    }

    fn door(plan: &Plan, listening: &str) -> Option<Door> {
        Door::of(plan, &plan.backs[0], listening.parse().unwrap())
    }

    #[test]
    fn the_embedded_door_is_told_in_full() {
        let plan = plan(rpcrdma_config::EMBEDDED);
        let door = door(&plan, "0.0.0.0:4711").unwrap();
        assert_eq!(
            door.url(""),
            "nfs://127.0.0.1/export?version=3&nfsport=4711&mountport=4711"
        );
        assert_eq!(
            door.url("a/b"),
            "nfs://127.0.0.1/export/a/b?version=3&nfsport=4711&mountport=4711"
        );
        assert_eq!(
            door.mount_line(),
            "mount -t nfs -o vers=3,proto=tcp,port=4711,mountproto=tcp,mountport=4711,nolock \
             127.0.0.1:/export /mnt"
        );
        assert!(door.advice().starts_with("  nfs://127.0.0.1/export?"));
    }

    const OTHER: &str = "\
        [[back]]\nname = 'back'\nlisten = '[::1]:0'\nupstream = 'there'\n\
        [[front]]\nname = 'front'\nlisten = 'there'\n\
        [[front.backend]]\nprograms = [PROGRAM]\naddress = '192.0.2.1:2049'\n";

    #[test]
    fn another_servers_path_is_not_known() {
        let plan = plan(&OTHER.replace("PROGRAM", "100003"));
        let door = door(&plan, "[::1]:4711").unwrap();
        assert_eq!(door.url(""), "nfs://[::1]/?version=3&nfsport=4711");
        assert_eq!(door.url("a"), "nfs://[::1]/a?version=3&nfsport=4711");
        let mount = "mount -t nfs -o vers=3,proto=tcp6,port=4711,nolock [::1]:/ /mnt";
        assert_eq!(door.mount_line(), mount);
    }

    #[test]
    fn an_upstream_leads_to_a_front_of_its_address() {
        let upstream = |host: &str| Upstream::Host {
            host: host.to_owned(),
            port: 20049,
        };
        assert!(leads_to(&upstream("192.0.2.1"), "192.0.2.1:20049"));
        assert!(leads_to(&upstream("192.0.2.1"), "[::]:20049"));
        assert!(!leads_to(&upstream("192.0.2.1"), "192.0.2.2:20049"));
        assert!(!leads_to(&upstream("192.0.2.1"), "[::]:20050"));
        assert!(!leads_to(&upstream("nfs.example.net"), "[::]:20049"));
        assert!(leads_to(&Upstream::Memory("a".into()), "a"));
    }

    #[test]
    fn a_back_without_nfs_is_no_door_for_its_clients() {
        assert_eq!(
            door(&plan(&OTHER.replace("PROGRAM", "300000")), "[::1]:4711"),
            None
        );
    }
}
