//! The command line.

use crate::bed::{Place, Wanted};
use crate::nfs::{Export, FileHandle, Procedure, User, Work, find};
use crate::workload::Workload;
use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use rpcrdma_lcore::Idle;
use rpcrdma_wire::Version;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// The name of the service in the memory fabric.
const SERVICE: &str = "rpcrdma-perf";
/// Longest payload: what the responder's limits on one Call and one Reply let through.
const LONGEST: u32 = 4 << 20;

/// Load generator and latency microscope for RPC over RDMA.
#[derive(Debug, Parser)]
#[command(name = "rpcrdma-perf", version, about, arg_required_else_help = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make calls as fast as they are answered, and say how long each took.
    Run(Box<Run>),
    /// Answer the calls of loads elsewhere, until it is killed.
    Serve(Serve),
}

/// Which fabric, and how it is used.
#[derive(Clone, Debug, ClapArgs)]
pub struct OnFabric {
    /// The fabric to run on.
    #[arg(long, value_enum, default_value_t = FabricName::Memory, value_name = "NAME")]
    pub fabric: FabricName,
    /// With verbs: the device to use, by name.
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// An lcore without work polls for so long, then sleeps; without this it polls on. Devices
    /// that are software need processors too: where there are few, 0 is fastest.
    #[arg(long, value_name = "US")]
    pub idle_us: Option<u64>,
    /// With iwarp-sctp: a port of DPDK in place of sockets, and its address:
    /// net_memif0,role=client,socket=/run/m.sock@10.9.0.2/24, or a PCI address before the @.
    /// IP packets have at most 1500 octets; ",mtu=9000" at the end allows others.
    #[cfg(feature = "dpdk")]
    #[arg(long, value_name = "DEVICE@IP/BITS[,mtu=OCTETS]")]
    pub port: Option<crate::port::PortArg>,
    /// With verbs: how memory is exposed.
    #[arg(long, value_enum, default_value_t = ExposeBy::Auto, value_name = "HOW")]
    pub expose: ExposeBy,
}

impl OnFabric {
    /// Whether what is said goes with the fabric.
    ///
    /// # Errors
    ///
    /// It would have no effect.
    pub fn check(&self) -> Result<()> {
        #[cfg(feature = "dpdk")]
        if self.port.is_some() && self.fabric != FabricName::IwarpSctp {
            bail!("--port: --fabric {} does without", self.fabric.name());
        }
        if self.fabric == FabricName::Verbs {
            return Ok(());
        }
        let name = self.fabric.name();
        if self.device.is_some() {
            bail!("--device: --fabric {name} has no devices to choose from");
        }
        if self.expose != ExposeBy::Auto {
            bail!("--expose: --fabric {name} has one way to expose memory");
        }
        Ok(())
    }

    fn idle(&self) -> Idle {
        match self.idle_us.map(Duration::from_micros) {
            None => Idle::Spin,
            Some(spin) => Idle::Adaptive { spin },
        }
    }
}

/// The fabrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FabricName {
    /// Within this process.
    Memory,
    /// RDMA devices.
    Verbs,
    /// Hosts without RDMA devices: RDMA in software, on SCTP in UDP.
    IwarpSctp,
}

impl FabricName {
    /// As reports have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FabricName::Memory => "memory",
            FabricName::Verbs => "verbs",
            FabricName::IwarpSctp => "iwarp-sctp",
        }
    }
}

/// How memory is exposed on RDMA devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExposeBy {
    /// By windows where the device has them, else by regions.
    Auto,
    /// By memory windows.
    Window,
    /// By a region for each call.
    Region,
    /// By the region of all memory: the peer can read and write all of it.
    Arena,
}

/// `rpcrdma-perf run`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  One NULL call at a time, between two processors:
    rpcrdma-perf run --fabric memory --workload null --depth 1 --lcores 2 --seconds 5
  READs of 1 MiB by Write chunk, eight in flight, figures to a file:
    rpcrdma-perf run --workload read --size 1048576 --depth 8 --json read.json
  The same through an RDMA device, both ends here:
    rpcrdma-perf run --fabric verbs --address 192.0.2.1 --workload read --size 1048576 --depth 8
  And to a service elsewhere (rpcrdma-perf serve, or [[service]] of an appliance):
    rpcrdma-perf run --fabric verbs --connect server:20050 --lcores 1
  Without an RDMA device at either end, to rpcrdma-perf serve --fabric iwarp-sctp:
    rpcrdma-perf run --fabric iwarp-sctp --connect server:9899 --lcores 1
  READs from the NFS server of a kernel:
    rpcrdma-perf run --fabric verbs --connect server:20049 --lcores 1 --version 1 \\
      --program nfs --workload read --size 65536 --export /srv
  A histogram for plotting:
    rpcrdma-perf run --workload null --hdr null.hlog

The latency of a call is from handing it to the requester until its reply is there; waiting for
a credit counts. The floor, a raw Send and Receive on the same fabric and a plain memcpy, is
measured right before, because machines differ and drift: quote figures with it. With --connect
there is no raw Send and Receive: the other end is somebody else's.")]
pub struct Run {
    /// The fabric.
    #[command(flatten)]
    pub on: OnFabric,
    /// With verbs or iwarp-sctp: both ends are here, at this address.
    #[arg(long, value_name = "IP", conflicts_with = "connect")]
    pub address: Option<IpAddr>,
    /// With verbs or iwarp-sctp: the service is there, and only the load here.
    #[arg(long, value_name = "HOST:PORT")]
    pub connect: Option<String>,
    /// Whose procedures are called.
    #[arg(long, value_enum, default_value_t = Program::Benchmark, value_name = "NAME")]
    pub program: Program,
    /// What each call does.
    #[arg(long, value_enum, default_value_t = Kind::Null)]
    pub workload: Kind,
    /// Payload of each call, octets (null, getattr: none).
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    pub size: u32,
    /// Calls in flight on each connection.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub depth: u16,
    /// Connections.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub connections: u32,
    /// 1: requester and responder on one lcore; 2: on one each.
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub lcores: u8,
    /// How long to measure.
    #[arg(long, default_value_t = 5.0, value_name = "S")]
    pub seconds: f64,
    /// Version of RPC-over-RDMA to speak.
    #[arg(long, default_value_t = 2, value_name = "V", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub version: u8,
    /// With --program nfs: the path that the server exports.
    #[arg(long, value_name = "PATH")]
    pub export: Option<String>,
    /// With --program nfs: the file in it, which is made where there is none, and long enough.
    #[arg(long, default_value = "rpcrdma-perf.dat", value_name = "NAME")]
    pub file: String,
    /// With --program nfs: the TCP port of MOUNT, instead of asking the server's portmapper.
    #[arg(long, value_name = "PORT")]
    pub mount_port: Option<u16>,
    /// With --program nfs: the TCP port of NFS, by which the file is found.
    #[arg(long, default_value_t = 2049, value_name = "PORT")]
    pub nfs_port: u16,
    /// Write the figures as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the latencies as an HdrHistogram log (V2).
    #[arg(long, value_name = "FILE")]
    pub hdr: Option<PathBuf>,
}

/// `rpcrdma-perf serve`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  rpcrdma-perf serve --fabric verbs --listen [::]:20050
  rpcrdma-perf serve --fabric iwarp-sctp --listen 0.0.0.0:9899

It lets everybody in: for machines among themselves. An appliance's [[service]] has an allow list.")]
pub struct Serve {
    /// The fabric: verbs or iwarp-sctp, for nobody else is in this process.
    #[command(flatten)]
    pub on: OnFabric,
    /// Where to listen.
    #[arg(long, value_name = "IP:PORT")]
    pub listen: SocketAddr,
    /// Calls in flight on each connection, at most.
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub depth: u16,
    /// Connections, at most.
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub connections: u32,
    /// Longest payload of a call, octets.
    #[arg(long, default_value_t = 1 << 20, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=LONGEST as i64))]
    pub size: u32,
    /// Lcores, each with its share of the connections.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub lcores: u8,
    /// Highest version of RPC-over-RDMA to speak.
    #[arg(long, default_value_t = 2, value_name = "V", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub version: u8,
}

/// The programs that can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Program {
    /// The built-in one.
    Benchmark,
    /// NFS version 3, of a server elsewhere.
    Nfs,
}

/// The workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Nothing: the cost of a call itself.
    Null,
    /// NFS alone: a file's attributes.
    Getattr,
    /// The built-in program alone: SIZE octets there and back in the messages.
    Echo,
    /// SIZE octets from the responder, by RDMA Write.
    Read,
    /// SIZE octets to the responder, by RDMA Read.
    Write,
}

fn version(version: u8) -> Version {
    if version == 1 {
        Version::One
    } else {
        Version::Two
    }
}

impl Run {
    /// What to set up for it; looks for the file of NFS.
    ///
    /// # Errors
    ///
    /// A size that does not go with the workload, no time to measure in, or no such file.
    pub fn wanted(&self) -> Result<Wanted> {
        if self.size > LONGEST {
            bail!("--size {}: at most {LONGEST}", self.size);
        }
        if !(self.seconds > 0.0 && self.seconds <= 86_400.0) {
            bail!("--seconds {}: more than 0, at most 86400", self.seconds);
        }
        let workload = match (self.workload, self.size) {
            (Kind::Null | Kind::Getattr, 0) => self.workload(0)?,
            (kind @ (Kind::Null | Kind::Getattr), size) => {
                bail!("--size {size}: a {kind:?} call has no payload")
            }
            (kind, 0) => bail!("--size: a {kind:?} call needs a size of at least 1"),
            (_, size) => self.workload(size)?,
        };
        Ok(Wanted {
            workload,
            depth: self.depth,
            connections: self.connections as usize,
            lcores: self.lcores.into(),
            version: version(self.version),
            idle: self.on.idle(),
        })
    }

    fn workload(&self, size: u32) -> Result<Workload> {
        Ok(match (self.program, self.workload) {
            (Program::Benchmark, Kind::Null) => Workload::Null,
            (Program::Benchmark, Kind::Echo) => Workload::Echo(size),
            (Program::Benchmark, Kind::Read) => Workload::Read(size),
            (Program::Benchmark, Kind::Write) => Workload::Write(size),
            (Program::Benchmark, Kind::Getattr) => {
                bail!("--workload getattr: the benchmark program has no files")
            }
            (Program::Nfs, Kind::Echo) => bail!("--workload echo: NFS has no such procedure"),
            (Program::Nfs, Kind::Null) => self.nfs(Procedure::Null)?,
            (Program::Nfs, Kind::Getattr) => self.nfs(Procedure::Getattr)?,
            (Program::Nfs, Kind::Read) => self.nfs(Procedure::Read(size))?,
            (Program::Nfs, Kind::Write) => self.nfs(Procedure::Write(size))?,
        })
    }

    fn nfs(&self, procedure: Procedure) -> Result<Workload> {
        let Some(connect) = &self.connect else {
            bail!("--program nfs: the server is elsewhere, so it needs --connect HOST:PORT");
        };
        let user = User::own();
        let file = match (procedure, &self.export) {
            (Procedure::Null, _) => FileHandle::new(&[]).context("an empty handle")?,
            (_, None) => bail!("--program nfs: which --export PATH of the server?"),
            (_, Some(path)) => {
                let export = Export {
                    server: resolved(connect)?.ip(),
                    mount_port: self.mount_port,
                    nfs_port: self.nfs_port,
                    path: path.clone(),
                    file: self.file.clone(),
                };
                find(&export, user, u64::from(self.size) * u64::from(self.depth))?
            }
        };
        Ok(Workload::Nfs(Work {
            procedure,
            file,
            user,
        }))
    }

    /// Where the ends meet.
    ///
    /// # Errors
    ///
    /// What is said does not go with the fabric, or a name has no address.
    pub fn place(&self) -> Result<Place> {
        self.on.check()?;
        match (self.on.fabric, &self.connect, self.address) {
            (FabricName::Memory, None, None) => Ok(Place::Here(SERVICE.to_owned())),
            (FabricName::Memory, ..) => {
                bail!("--connect, --address: the memory fabric is within this process")
            }
            (_, Some(name), _) => Ok(Place::There(resolved(name)?.to_string())),
            (FabricName::IwarpSctp, None, Some(_)) if self.lcores > 1 => {
                // Which lcore a peer meets is the kernel's choice.
                bail!(
                    "--fabric iwarp-sctp --address: give --lcores 1, or use two processes: \
                     rpcrdma-perf serve, and --connect"
                )
            }
            // Port 0: one that is free.
            (_, None, Some(ip)) => Ok(Place::Here(SocketAddr::new(ip, 0).to_string())),
            (fabric, None, None) => bail!(
                "--fabric {}: give --address IP of this machine, or --connect HOST:PORT",
                fabric.name()
            ),
        }
    }
}

impl Serve {
    /// What to set up for it.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        Wanted {
            workload: Workload::Read(self.size),
            depth: self.depth,
            connections: self.connections as usize,
            lcores: self.lcores.into(),
            version: version(self.version),
            idle: self.on.idle(),
        }
    }
}

/// The first address of a name.
fn resolved(name: &str) -> Result<SocketAddr> {
    let mut addresses = name
        .to_socket_addrs()
        .with_context(|| format!("--connect {name}: HOST:PORT"))?;
    addresses
        .next()
        .with_context(|| format!("--connect {name}: no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Run {
        let words = ["rpcrdma-perf", "run"].into_iter().chain(line.split(' '));
        match Args::try_parse_from(words).expect("a command line").command {
            Command::Run(run) => *run,
            Command::Serve(_) => panic!("not serve"),
        }
    }

    #[test]
    fn ends_meet_where_the_fabric_can() {
        let place = |line| run(line).place();
        assert_eq!(
            place("--depth 1").expect("memory"),
            Place::Here(SERVICE.into())
        );
        let here = Place::Here("192.0.2.1:0".to_owned());
        assert_eq!(
            place("--fabric verbs --address 192.0.2.1").expect("here"),
            here
        );
        let there = Place::There("[2001:db8::1]:20049".to_owned());
        let line = "--fabric verbs --connect [2001:db8::1]:20049";
        assert_eq!(place(line).expect("there"), there);
        assert!(place("--fabric verbs").is_err());
        assert!(place("--fabric iwarp-sctp").is_err());
        assert!(place("--fabric iwarp-sctp --address 192.0.2.1 --lcores 2").is_err());
        let line = "--fabric iwarp-sctp --address 192.0.2.1 --lcores 1";
        assert_eq!(place(line).expect("here"), here);
        assert!(place("--connect 192.0.2.1:1").is_err());
        assert!(place("--device mlx5_0").is_err());
        assert!(place("--fabric memory --expose arena").is_err());
        assert!(place("--fabric iwarp-sctp --connect 192.0.2.1:1 --device siw0").is_err());
        assert!(place("--fabric verbs --connect 192.0.2.1:1 --device siw0 --expose arena").is_ok());
    }

    #[test]
    fn sizes_go_with_their_workloads() {
        let wanted = |line| run(line).wanted().map(|wanted| wanted.workload);
        assert_eq!(wanted("--workload null").expect("no size"), Workload::Null);
        let read = wanted("--workload read --size 7").expect("a size");
        assert_eq!(read, Workload::Read(7));
        for wrong in [
            "--workload null --size 1",
            "--workload read",
            "--workload getattr",
            "--workload read --size 8388608",
            "--program nfs --workload null",
            "--program nfs --workload getattr --connect 192.0.2.1:20049",
            "--program nfs --workload echo --size 1 --connect 192.0.2.1:20049",
        ] {
            assert!(wanted(wrong).is_err(), "{wrong}");
        }
        let line = "--program nfs --workload null --connect 192.0.2.1:20049";
        assert_eq!(wanted(line).expect("no file").name(), "nfs-null");
    }
}
