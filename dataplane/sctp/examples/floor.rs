//! What SCTP in UDP costs with nothing above it: the floor that RPC-over-RDMA on it stands on.
//!
//!     cargo run --release -p rpcrdma-sctp --example floor [ping|stream] [OCTETS] [COUNT] [MTU] [pieces]
//!
//! Two processes on the loopback. `ping` bounces one message and tells the median round trip;
//! `stream` sends one way and tells octets a second. Both tell the processor time of a message at
//! the asking end, the SCTP library's included.

use rpcrdma_sctp::{AssociationId, Event, Llp, Refused, Settings, Usrsctp};
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).map(String::as_str);
    let mode = argument(0).unwrap_or("ping").to_owned();
    let number = |index, usual| argument(index).map_or(Ok(usual), str::parse::<usize>);
    let (octets, count) = (number(1, 1024)?, number(2, 100_000)?);
    let settings = Settings {
        path_mtu: u32::try_from(number(3, 65_535)?)?,
        in_pieces: argument(4) == Some("pieces"),
        ..Settings::default()
    };
    if mode == "serve" {
        return serve(settings, argument(5) == Some("echo"));
    }
    let echo = mode == "ping";
    let (child, server) = spawn(&settings, echo)?;
    let _child = Killed(child);
    let mut end = Usrsctp::connector(([127, 0, 0, 1], 0).into(), settings)?;
    let id = associate(&mut end, server)?;
    let octets = octets.min(end.max_segment(id) as usize);
    println!("chunks of {octets} octets, at most {}", end.max_segment(id));
    if echo {
        ping(&mut end, id, octets, count)
    } else {
        stream(&mut end, id, octets, count)
    }
}

/// Ends the server with the program.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn(settings: &Settings, echo: bool) -> Result<(Child, SocketAddr)> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["serve", "0", "0", &settings.path_mtu.to_string()])
        .arg(if settings.in_pieces {
            "pieces"
        } else {
            "single"
        })
        .arg(if echo { "echo" } else { "sink" })
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let output = child.stdout.take().ok_or("no output")?;
    BufReader::new(output).read_line(&mut line)?;
    Ok((child, line.trim().parse()?))
}

fn serve(settings: Settings, echo: bool) -> Result<()> {
    let mut end = Usrsctp::listen(([127, 0, 0, 1], 0).into(), settings)?;
    println!("{}", end.local_address());
    let mut answers: Vec<(AssociationId, usize)> = Vec::with_capacity(64);
    loop {
        end.turn(Instant::now(), &mut |event| {
            if let Event::Message {
                association,
                octets,
                ..
            } = event
                && echo
            {
                answers.push((association, octets.len()));
            }
        });
        for (id, len) in answers.drain(..) {
            end.send(id, 0, 16, len, |place| place.fill(3))?;
        }
        std::hint::spin_loop();
    }
}

fn associate(end: &mut Usrsctp, to: SocketAddr) -> Result<AssociationId> {
    let id = end.associate(to, Instant::now())?;
    let mut up = None;
    while up.is_none() {
        end.turn(Instant::now(), &mut |event| match event {
            Event::Up { .. } => up = Some(Ok(())),
            Event::Down { reason, .. } => up = Some(Err(reason.to_string())),
            _ => {}
        });
    }
    up.ok_or("never")??;
    Ok(id)
}

fn ping(end: &mut Usrsctp, id: AssociationId, octets: usize, count: usize) -> Result<()> {
    let mut times = Vec::with_capacity(count);
    let used = processor_time()?;
    for _ in 0..count {
        let start = Instant::now();
        end.send(id, 0, 16, octets, |place| place.fill(1))?;
        let mut back = false;
        while !back {
            end.turn(Instant::now(), &mut |event| {
                back |= matches!(event, Event::Message { .. });
            });
        }
        times.push(start.elapsed());
    }
    let used = processor_time()? - used;
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 1000];
    println!(
        "round trip: median {:.1} us, 99 % {:.1} us; {:.0} a second; {:.2} us of processor each",
        micros(at(500)),
        micros(at(990)),
        count as f64 / times.iter().sum::<Duration>().as_secs_f64(),
        micros(used) / count as f64,
    );
    Ok(())
}

fn stream(end: &mut Usrsctp, id: AssociationId, octets: usize, count: usize) -> Result<()> {
    let (start, used) = (Instant::now(), processor_time()?);
    let (mut sent, mut dry) = (0, false);
    while !(sent == count && dry) {
        while sent < count {
            match end.send(id, 0, 16, octets, |place| place.fill(1)) {
                Ok(()) => sent += 1,
                Err(Refused::Full) => break,
                Err(other) => return Err(other.into()),
            }
        }
        dry = false;
        end.turn(Instant::now(), &mut |event| {
            dry |= matches!(event, Event::Dry { .. });
        });
    }
    let (took, used) = (start.elapsed(), processor_time()? - used);
    println!(
        "{:.0} MB a second, {:.0} messages a second; {:.0} ns of processor each",
        (octets * count) as f64 / took.as_secs_f64() / 1e6,
        count as f64 / took.as_secs_f64(),
        micros(used) * 1e3 / count as f64,
    );
    Ok(())
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
