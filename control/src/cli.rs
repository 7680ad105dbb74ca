//! The command line.

use crate::version;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;
use tracing_subscriber::filter::LevelFilter;

/// A user-space RPC-over-RDMA appliance: an RDMA front door for any ONC RPC service, NFS first
/// of all, and an RDMA back road for any TCP client.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "rpcrdmad",
    version = version::VERSION,
    long_version = version::long(),
    after_help = "\
Examples:
  rpcrdmad run --self-test             does it work here? Files in and out, checked octet by octet
  rpcrdmad run --export ~/shared       serve a directory, and be told how to reach it
  rpcrdmad check appliance.toml        is this file right, and what would it do?
  rpcrdmad run --config appliance.toml
  rpcrdmad status                      how is the one that runs?
  rpcrdmad devices                     is there RDMA here?"
)]
pub struct Cli {
    /// Least severe events to log on standard error [default: what runtime.log says, or info]
    #[arg(long, global = true, value_enum, value_name = "LEVEL")]
    pub log: Option<Level>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Run the appliance until SIGTERM or Ctrl-C
    Run(Run),
    /// Say whether a configuration is right; if not, all that is wrong with it
    Check(Check),
    /// Ask a running appliance how it is
    Status(Status),
    /// Say what RPC-over-RDMA headers mean, or why they are refused and how
    Decode(Decode),
    /// List the RDMA devices of this machine, and what they can do
    #[command(after_help = "\
Exits with 1 where there is none, and says why: no library, no device, or none that answers.

Examples:
  rpcrdmad devices")]
    Devices,
}

/// `rpcrdmad run`.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = "\
Without --config the appliance is complete in itself: an NFSv3 server for a directory, a front before
it, a back before that, joined by the memory fabric. It prints the address to point an NFS client at.

The first SIGTERM or Ctrl-C drains: calls in flight are answered, new ones are not taken. A second one
ends it at once. SIGHUP has the configuration file read again: what can change without a restart does, the
rest is named in the log, and a file with a problem changes nothing.

Examples:
  rpcrdmad run                               an empty scratch directory, removed at the end
  rpcrdmad run --export /srv/files --nfs-port 20049
  rpcrdmad run --config /etc/rpcrdmad.toml
  rpcrdmad run --self-test                   exits with 0 if all was well, with 1 if not
  rpcrdmad run --print                       the effective plan and the memory it takes, nothing else")]
pub struct Run {
    /// Read the configuration from this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["export", "nfs_port"])]
    pub config: Option<PathBuf>,
    /// Show what would run, and end
    #[arg(long, conflicts_with = "self_test")]
    pub print: bool,
    /// Copy files in and out through the appliance, report, and end
    #[arg(long)]
    pub self_test: bool,
    /// With --self-test: report as JSON
    #[arg(long, requires = "self_test")]
    pub json: bool,
    /// Serve this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub export: Option<PathBuf>,
    /// Take NFS clients at this TCP port of 127.0.0.1, instead of any that is free
    #[arg(long, value_name = "PORT")]
    pub nfs_port: Option<u16>,
    /// Answer `rpcrdmad status` at this path
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,
}

/// `rpcrdmad check`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Prints one line for each problem: file:line:column, what is wrong, what to do about it. Exits with 0 if
there is none, with 1 otherwise.

Examples:
  rpcrdmad check appliance.toml
  rpcrdmad check --print appliance.toml      all defaults filled in, memory in total, RLIMIT_MEMLOCK")]
pub struct Check {
    /// The file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Show the effective plan
    #[arg(long)]
    pub print: bool,
}

/// `rpcrdmad status`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Without --socket it looks where an appliance of this user answers, then where the system's does.

Examples:
  rpcrdmad status
  rpcrdmad status --json | jq '.lcores[].counters.remote_invalidations'
  rpcrdmad status --json | jq -r '.refused[].hex' | rpcrdmad decode")]
pub struct Status {
    /// The document as it came, for programs
    #[arg(long)]
    pub json: bool,
    /// Ask at this path
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,
}

/// `rpcrdmad decode`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Reads standard input: one message a line in hexadecimal, the header alone or with what follows it, of
either version. Blank lines, and lines that begin with #, are passed over.

Examples:
  echo 00000001 00000001 00000020 00000000 00000000 00000000 00000000 | rpcrdmad decode
  rpcrdmad decode --json <captured.hex")]
pub struct Decode {
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Whom the message was sent to [default: a requester if it says it is a reply, else a responder]
    #[arg(long, value_enum, value_name = "ROLE")]
    pub role: Option<Role>,
}

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Takes calls.
    Responder,
    /// Takes replies.
    Requester,
}

/// Least severe events logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// What went wrong.
    Error,
    /// What may go wrong.
    Warn,
    /// What happens.
    Info,
    /// Each connection.
    Debug,
}

impl From<Level> for LevelFilter {
    fn from(level: Level) -> Self {
        match level {
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_example_of_the_help_is_a_command_line() {
        let mut commands = vec![Cli::command()];
        commands.extend(Cli::command().get_subcommands().cloned());
        let mut examples = 0;
        for command in commands {
            let help = command
                .get_after_help()
                .expect("every command has examples")
                .to_string();
            let (_, lines) = help.split_once("Examples:\n").expect("introduced as such");
            for line in lines.lines() {
                let start = line.find("rpcrdmad").expect("one command a line");
                let end = line[start..]
                    .find("   ")
                    .map_or(line.len(), |at| start + at);
                let alone = line[start..end]
                    .split([' ', '|'])
                    .take_while(|word| !word.starts_with('<'));
                let words = alone.take_while(|word| *word != "jq" && !word.is_empty());
                if let Err(error) = Cli::try_parse_from(words) {
                    panic!("{line}: {error}");
                }
                examples += 1;
            }
        }
        assert!(examples > 10, "{examples}");
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for line in [
            "rpcrdmad run --config a.toml --export /srv",
            "rpcrdmad run --config a.toml --nfs-port 1",
            "rpcrdmad run --print --self-test",
            "rpcrdmad run --json",
            "rpcrdmad run --nfs-port 65536",
            "rpcrdmad decode --role both",
            "rpcrdmad check",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_version_names_commit_and_fabrics() {
        let error = parse("rpcrdmad --version").unwrap_err().to_string();
        assert!(error.contains(env!("RPCRDMAD_COMMIT")) && error.contains("fabrics: memory"));
    }
}
