//! The command line.

use crate::bed::Wanted;
use crate::workload::Workload;
use anyhow::{Result, bail};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use rpcrdma_wire::Version;
use std::path::PathBuf;

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
    Run(Run),
}

/// `rpcrdma-perf run`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  One NULL call at a time, between two processors:
    rpcrdma-perf run --fabric memory --workload null --depth 1 --lcores 2 --seconds 5
  READs of 1 MiB by Write chunk, eight in flight, figures to a file:
    rpcrdma-perf run --workload read --size 1048576 --depth 8 --json read.json
  A histogram for plotting:
    rpcrdma-perf run --workload null --hdr null.hlog

The latency of a call is from handing it to the requester until its reply is there; waiting for
a credit counts. The floor, a raw Send and Receive on the same fabric and a plain memcpy, is
measured right before, because machines differ and drift: quote figures with it.")]
pub struct Run {
    /// The fabric to run on.
    #[arg(long, default_value = "memory", value_name = "NAME")]
    pub fabric: String,
    /// What each call does.
    #[arg(long, value_enum, default_value_t = Kind::Null)]
    pub workload: Kind,
    /// Payload of each call, octets (null: none).
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
    /// Write the figures as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the latencies as an HdrHistogram log (V2).
    #[arg(long, value_name = "FILE")]
    pub hdr: Option<PathBuf>,
}

/// The workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Nothing: the cost of a call itself.
    Null,
    /// SIZE octets there and back in the messages.
    Echo,
    /// SIZE octets from the responder, by RDMA Write.
    Read,
    /// SIZE octets to the responder, by RDMA Read.
    Write,
}

/// Longest payload: what the responder's limits on one Call and one Reply let through.
const LONGEST: u32 = 4 << 20;

impl Run {
    /// What to set up for it.
    ///
    /// # Errors
    ///
    /// A size that does not go with the workload, or no time to measure in.
    pub fn wanted(&self) -> Result<Wanted> {
        if self.size > LONGEST {
            bail!("--size {}: at most {LONGEST}", self.size);
        }
        if !(self.seconds > 0.0 && self.seconds <= 86_400.0) {
            bail!("--seconds {}: more than 0, at most 86400", self.seconds);
        }
        let workload = match (self.workload, self.size) {
            (Kind::Null, 0) => Workload::Null,
            (Kind::Null, size) => bail!("--size {size}: a null call has no payload"),
            (kind, 0) => bail!("--size: a {kind:?} call needs a size of at least 1"),
            (Kind::Echo, size) => Workload::Echo(size),
            (Kind::Read, size) => Workload::Read(size),
            (Kind::Write, size) => Workload::Write(size),
        };
        Ok(Wanted {
            workload,
            depth: self.depth,
            connections: self.connections as usize,
            lcores: self.lcores.into(),
            version: if self.version == 1 {
                Version::One
            } else {
                Version::Two
            },
        })
    }
}
