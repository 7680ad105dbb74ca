//! Stands between SCTP in UDP and its peers, and does to datagrams what bad networks do.
//!
//!     relay HERE SERVER SEED
//!
//! A line `LOST DELAYED DOUBLED` on standard input, each in datagrams of a thousand, says what
//! becomes of datagrams from now on; the answer is a line of what became of those before: `SEEN
//! LOST DELAYED DOUBLED`. It ends when its input does.

#[path = "../tests/support/relay.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the tests of this crate use the rest"
)]
mod relay;

use relay::{Faults, Relay};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use std::error::Error;
use std::io::{Read, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// No line of orders is longer.
const LINE: usize = 256;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [here, server, seed] = &arguments[..] else {
        return Err("usage: relay HERE SERVER SEED".into());
    };
    let faults = Faults::default();
    let mut relay = Relay::at(here.parse()?, server.parse()?, faults, seed.parse()?)?;
    let mut line = Vec::new();
    loop {
        let now = Instant::now();
        relay.turn(now);
        if wait(&relay, now)? && !order(&mut relay, &mut line)? {
            return Ok(());
        }
    }
}

/// Sleeps until there is something to do; whether there is something to read on standard input.
fn wait(relay: &Relay, now: Instant) -> Result<bool> {
    let input = stdin();
    let mut all = vec![PollFd::new(&input, PollFlags::IN)];
    all.extend(
        relay
            .sockets()
            .map(|it| PollFd::from_borrowed_fd(it.as_fd(), PollFlags::IN)),
    );
    let left = relay.due().map(|due| due.saturating_duration_since(now));
    let left = left.map(|left| Timespec::try_from(left.max(Duration::from_micros(50))));
    poll(&mut all, left.transpose()?.as_ref())?;
    Ok(!all[0].revents().is_empty())
}

/// Takes what was written to standard input; false at its end.
fn order(relay: &mut Relay, line: &mut Vec<u8>) -> Result<bool> {
    let mut octets = [0; LINE];
    let len = stdin().lock().read(&mut octets)?;
    line.extend_from_slice(&octets[..len]);
    while let Some(end) = line.iter().position(|octet| *octet == b'\n') {
        let text: Vec<u8> = line.drain(..=end).collect();
        let before = relay.change(faults(std::str::from_utf8(&text)?)?);
        let (seen, lost) = (before.seen, before.lost);
        println!("{seen} {lost} {} {}", before.delayed, before.doubled);
        stdout().flush()?;
    }
    if line.len() > LINE {
        return Err("a line too long".into());
    }
    Ok(len > 0)
}

fn faults(line: &str) -> Result<Faults> {
    let numbers: Vec<u32> = line
        .split_whitespace()
        .map(str::parse)
        .collect::<std::result::Result<_, _>>()?;
    match numbers[..] {
        [lost, delayed, doubled] => Ok(Faults {
            lost,
            delayed,
            doubled,
        }),
        _ => Err("an order is LOST DELAYED DOUBLED".into()),
    }
}
