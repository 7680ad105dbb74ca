//! One port with its links and groups, told what to do by a script: the machines of `rpcrdma-ipoib` on a real subnet manager.
//!
//! ```text
//! node [verify_ms=1000] [pause_ms=1000] [reply_ms=200] ...      times of `Timing`, where they are to be others
//!
//! link P_KEY v4|v6 [create|create=Q_KEY|router]...    link 0
//! join LINK ADDRESS, leave LINK ADDRESS
//! send LINK ADDRESS                      a datagram to a group: what became of it
//! state                                  everything, as one line of JSON
//! close                                  leaves everything: closed, once that is done
//! end
//! ```
//!
//! Each command is answered by a line. There are no queue pairs where the subnet is simulated: they are played, and so are
//! their attachments, which `state` lists.

#[path = "../kit/mod.rs"]
mod kit;
mod seat;
mod state;

use anyhow::{Context, Result, bail};
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::node::{LinkId, Node};
use rpcrdma_ipoib::packet::{Udp, emit_udp};
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::qkey::QKey;
use rpcrdma_ipoib::settings::{Creation, LinkSpec, Settings, Timing};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use seat::Seat;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

/// What a port can do where nobody has said: what every port can.
const LEAST_MTU: Mtu = Mtu::M2048;
/// Datagrams go from and to this UDP port: rpcbind's.
const UDP_PORT: u16 = 111;

fn main() -> ExitCode {
    kit::report(run())
}

fn run() -> Result<()> {
    let timing = timing(std::env::args().skip(1))?;
    let settings = Settings {
        timing,
        send_only_full: true,
        ..Settings::default()
    };
    let mut seat = Seat::take(kit::open()?, Node::new(settings, std::process::id().into()));
    let mut commands = Commands::default();
    loop {
        let next = seat.turn()?;
        if commands.closing && seat.node.is_closed() {
            commands.closing = false;
            say("closed")?;
        }
        wait(&seat, next)?;
        while let Some(line) = commands.next()? {
            match line.as_str() {
                "end" => return Ok(()),
                "close" => {
                    let now = seat.now();
                    seat.node.close(now);
                    commands.closing = true;
                }
                line => {
                    let said = obey(&mut seat, line);
                    say(&said.unwrap_or_else(|error| format!("no: {error:#}")))?;
                }
            }
        }
    }
}

/// Times from the command line.
fn timing(arguments: impl Iterator<Item = String>) -> Result<Timing> {
    let mut timing = Timing::default();
    for argument in arguments {
        let (key, value) = argument
            .split_once('=')
            .context("times are KEY=MILLISECONDS")?;
        let value = value.parse()?;
        match key {
            "reply_ms" => timing.reply_ms = value,
            "pause_ms" => timing.pause_ms = value,
            "verify_ms" => timing.verify_ms = value,
            "cache_ms" => timing.cache_ms = value,
            "idle_ms" => timing.idle_ms = value,
            "linger_ms" => timing.linger_ms = value,
            "close_ms" => timing.close_ms = value,
            _ => bail!("there is no time {key}"),
        }
    }
    Ok(timing)
}

/// Until a command, news of the port, or a time that was given.
fn wait(seat: &Seat, next: Option<Duration>) -> Result<()> {
    let stdin = std::io::stdin();
    let mut polled = [
        PollFd::new(&stdin, PollFlags::IN),
        PollFd::new(&seat.port, PollFlags::IN),
    ];
    let next = next.map(Timespec::try_from).transpose()?;
    poll(&mut polled, next.as_ref())?;
    Ok(())
}

/// Lines of standard input, without waiting for any.
#[derive(Default)]
struct Commands {
    read: Vec<u8>,
    closing: bool,
}

impl Commands {
    fn next(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(end) = self.read.iter().position(|octet| *octet == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Ok(Some(String::from_utf8(line)?.trim().to_owned()));
            }
            let stdin = std::io::stdin();
            let now = Timespec::default();
            if poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&now))? == 0 {
                return Ok(None);
            }
            let mut piece = [0; 512];
            match rustix::io::read(&stdin, &mut piece)? {
                0 => return Ok(Some("end".into())),
                more => self.read.extend_from_slice(&piece[..more]),
            }
        }
    }
}

fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

fn obey(seat: &mut Seat, line: &str) -> Result<String> {
    let now = seat.now();
    let words: Vec<&str> = line.split_whitespace().collect();
    match *words.as_slice() {
        ["link", key, family, ref kinds @ ..] => {
            let LinkId(number) = seat
                .node
                .add_link(now, spec(key, family, kinds)?)
                .map_err(|refusal| anyhow::anyhow!(refusal.name()))?;
            Ok(format!("link {number}"))
        }
        ["join", link, address] => {
            let joined = seat.node.join(now, LinkId(link.parse()?), address.parse()?);
            Ok(joined.map_or_else(|refusal| refusal.name().into(), |()| "joining".into()))
        }
        ["leave", link, address] => {
            let left = seat
                .node
                .leave(now, LinkId(link.parse()?), address.parse()?);
            Ok(left.map_or_else(|refusal| refusal.name().into(), |()| "leaving".into()))
        }
        ["send", link, address] => {
            let address: IpAddr = address.parse()?;
            let frame = datagram(address).context("too long")?;
            let sent = seat.node.send(now, LinkId(link.parse()?), address, frame);
            Ok(sent.map_or_else(|refusal| refusal.name().into(), |fate| format!("{fate:?}")))
        }
        ["state"] => Ok(state::of(seat).to_string()),
        _ => bail!("there is no such command: {line}"),
    }
}

fn spec(key: &str, family: &str, kinds: &[&str]) -> Result<LinkSpec> {
    let mut spec = LinkSpec {
        p_key: PKey(u16::try_from(hexadecimal(key)?)?),
        family: match family {
            "v4" => Family::V4,
            "v6" => Family::V6,
            _ => bail!("links are v4 or v6"),
        },
        create: None,
        router: kinds.contains(&"router"),
    };
    for kind in kinds {
        match kind.split_once('=') {
            None if *kind == "create" => spec.create = Some(Creation::default()),
            Some(("create", q_key)) => {
                let q_key = QKey(hexadecimal(q_key)?);
                spec.create = Some(Creation {
                    q_key,
                    ..Creation::default()
                });
            }
            _ if *kind == "router" => {}
            _ => bail!("there is no kind of link {kind}"),
        }
    }
    Ok(spec)
}

fn hexadecimal(text: &str) -> Result<u32> {
    let digits = text.strip_prefix("0x").context("keys are hexadecimal")?;
    Ok(u32::from_str_radix(digits, 16)?)
}

/// The frame of a datagram to a group.
fn datagram(group: IpAddr) -> Option<Vec<u8>> {
    let from: IpAddr = match group {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 1).into(),
    };
    let mut frame = Vec::new();
    let datagram = Udp {
        from: SocketAddr::new(from, UDP_PORT),
        to: SocketAddr::new(group, UDP_PORT),
        hop_limit: 1,
        payload: b"who serves?",
    };
    emit_udp(&mut frame, &datagram).then_some(frame)
}
