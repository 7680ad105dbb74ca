//! What SCTP in UDP costs with nothing above it: the floor that RPC-over-RDMA on it stands on.
//!
//!     cargo run --release -p rpcrdma-sctp --example floor -- raw|llp ping|stream [OCTETS] [COUNT] [MTU]
//!
//! Two processes on the loopback. `raw` is libusrsctp with ordinary `send` and `recv` of one packet
//! each, and the least around them that works; `llp` is the same library as lcores drive it.
//! `ping` bounces one message and tells the median round trip; `stream` sends one way and tells
//! octets a second. Each tells the processor time of a message at the asking end, the library's
//! included. The last argument of `llp` may be `pieces`.
//!
//! Each process keeps to a processor of its own: the asking end to the last of those that the
//! program may use, the other to the first.

mod layer;
#[expect(unsafe_code, reason = "calls of a foreign interface")]
mod raw;

use layer::Layer;
use raw::Raw;
use rpcrdma_sctp::Settings;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// An end of one association.
trait End {
    /// Sends a message of so many octets; false when there is no room now.
    fn send(&mut self, octets: usize) -> Result<bool>;

    /// Looks once at what has come; how many messages that was.
    fn turn(&mut self) -> Result<u64>;
}

/// What is to be measured.
struct Plan {
    /// Of the library as lcores drive it, else the library alone.
    llp: bool,
    echo: bool,
    octets: usize,
    count: u64,
    settings: Settings,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).map_or("", String::as_str);
    let number = |index, usual: u64| match argument(index) {
        "" => Ok(usual),
        text => text.parse::<u64>(),
    };
    let plan = Plan {
        llp: argument(0) == "llp",
        echo: argument(1) != "stream",
        octets: usize::try_from(number(2, 96)?)?,
        count: number(3, 100_000)?,
        settings: Settings {
            path_mtu: u32::try_from(number(4, 65_535)?)?,
            in_pieces: argument(5) == "pieces",
            ..Settings::default()
        },
    };
    if std::env::var_os(SERVING).is_some() {
        return serve(&plan);
    }
    let (child, server) = spawn(&arguments)?;
    let _child = Killed(child);
    pin(true)?;
    if plan.llp {
        measure(&plan, Layer::ask(server, plan.settings)?)
    } else {
        measure(&plan, Raw::ask(server, &plan.settings)?)
    }
}

/// Set in the environment of the other end.
const SERVING: &str = "FLOOR_SERVING";

/// Ends the other end with the program.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn(arguments: &[String]) -> Result<(Child, SocketAddr)> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments)
        .env(SERVING, "1")
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let output = child.stdout.take().ok_or("no output")?;
    BufReader::new(output).read_line(&mut line)?;
    Ok((child, line.trim().parse()?))
}

fn serve(plan: &Plan) -> Result<()> {
    pin(false)?;
    if plan.llp {
        let end = Layer::serve(plan.settings, |at| println!("{at}"))?;
        answer(plan, end)
    } else {
        let end = Raw::serve(&plan.settings, |at| println!("{at}"))?;
        answer(plan, end)
    }
}

/// Answers each message, or all of them with one.
fn answer(plan: &Plan, mut end: impl End) -> Result<()> {
    let each = if plan.echo { 1 } else { plan.count };
    let mut due = 0;
    loop {
        due += end.turn()?;
        while due >= each {
            while !end.send(plan.octets)? {
                due += end.turn()?;
            }
            due -= each;
        }
        std::hint::spin_loop();
    }
}

fn measure(plan: &Plan, mut end: impl End) -> Result<()> {
    if plan.echo {
        let warming = (plan.count / 10).max(1);
        bounce(plan.octets, warming, &mut end)?;
        ping(plan, &mut end)
    } else {
        stream(plan, &mut end)
    }
}

/// The time of each round trip.
fn bounce(octets: usize, count: u64, end: &mut impl End) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(usize::try_from(count)?);
    for _ in 0..count {
        let start = Instant::now();
        while !end.send(octets)? {
            end.turn()?;
        }
        while end.turn()? == 0 {}
        times.push(start.elapsed());
    }
    Ok(times)
}

fn ping(plan: &Plan, end: &mut impl End) -> Result<()> {
    let used = processor_time()?;
    let mut times = bounce(plan.octets, plan.count, end)?;
    let used = processor_time()? - used;
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 1000];
    println!(
        "round trip: median {:.2} us, 99 % {:.2} us; {:.0} a second; {:.2} us of processor each",
        micros(at(500)),
        micros(at(990)),
        plan.count as f64 / times.iter().sum::<Duration>().as_secs_f64(),
        micros(used) / plan.count as f64,
    );
    Ok(())
}

fn stream(plan: &Plan, end: &mut impl End) -> Result<()> {
    let (start, used) = (Instant::now(), processor_time()?);
    let (mut sent, mut answered) = (0, 0);
    while answered == 0 {
        while sent < plan.count && end.send(plan.octets)? {
            sent += 1;
        }
        answered += end.turn()?;
    }
    let (took, used) = (start.elapsed(), processor_time()? - used);
    println!(
        "{:.0} MB a second, {:.0} messages a second; {:.0} ns of processor each",
        plan.octets as f64 * plan.count as f64 / took.as_secs_f64() / 1e6,
        plan.count as f64 / took.as_secs_f64(),
        micros(used) * 1e3 / plan.count as f64,
    );
    Ok(())
}

/// Keeps this process to a processor, if it may use several.
fn pin(asking: bool) -> Result<()> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let core = if asking { cores.last() } else { cores.first() };
    match core {
        Some(core) if !core_affinity::set_for_current(*core) => Err("no processor".into()),
        _ => Ok(()),
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Of this process so far.
fn processor_time() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds = stat.split_whitespace().next().ok_or("no time")?;
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}
