//! What one hop of SCTP costs a processor, by what carries its packets: sockets over loopback, or
//! ports of DPDK over shared memory (net_memif).
//!
//!     cargo run --release -p rpcrdma-sctp --features dpdk --example hop [OCTETS] [COUNT]
//!
//! Both ends are in one thread, turned one after the other, and time is the processor's: so what
//! else runs on the machine changes little. A round trip is two messages and their turns at both ends.

use dpdk_sys::{Eal, Level};
use rpcrdma_sctp::{AssociationId, EtherPort, Event, Llp, PortPlan, Ports, Settings, Usrsctp};
use std::error::Error;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let number = |index, usual| {
        let argument = std::env::args().nth(index);
        argument.map_or(Ok(usual), |it| it.parse::<usize>())
    };
    let (octets, count) = (number(1, 100)?, number(2, 200_000)?);
    let settings = Settings::default();
    let loopback = ([127, 0, 0, 1], 0).into();
    let server = Usrsctp::listen(loopback, settings)?;
    let sockets = Pair::new(server, Usrsctp::connector(loopback, settings)?)?;
    let [here, there] = ports()?;
    let server = Usrsctp::at_port(&here, ([10, 9, 0, 1], 9899).into(), true, settings)?;
    let client = Usrsctp::at_port(&there, ([0, 0, 0, 0], 0).into(), false, settings)?;
    let ports = Pair::new(server, client)?;
    for (name, mut pair) in [("sockets", sockets), ("ports", ports)] {
        pair.ping(octets, count / 10)?;
        let used = pair.ping(octets, count)?;
        let each = used.as_secs_f64() * 1e6 / count as f64;
        println!("{name:8} {each:6.2} us of processor a round trip of {octets} octets");
    }
    Ok(())
}

/// Two ports joined by memory.
fn ports() -> Result<[Ports; 2]> {
    let id = std::process::id();
    let memif = |name: &str, role: &str| format!("--vdev={name},role={role},socket=/hop-{id}");
    let arguments = [
        "--no-huge".to_owned(),
        "--no-shconf".to_owned(),
        "--no-pci".to_owned(),
        "-m128".to_owned(),
        format!("--file-prefix=hop-{id}"),
        memif("net_memif0", "server"),
        memif("net_memif1", "client"),
    ];
    let processors: Vec<usize> = (0..std::thread::available_parallelism()?.get()).collect();
    let eal = Eal::start(&processors, &[], &arguments, hear)?;
    let open = |name: &str, address: &str| -> Result<Ports> {
        let plan = PortPlan {
            name: name.to_owned(),
            address: address.parse()?,
            gateway: None,
            mtu: 1500,
            frames: 4095,
        };
        Ok(Ports::new(vec![EtherPort::open(eal, &plan)?])?)
    };
    Ok([
        open("net_memif0", "10.9.0.1/24")?,
        open("net_memif1", "10.9.0.2/24")?,
    ])
}

fn hear(_: Level, _: &str) {}

struct Pair {
    ends: [Usrsctp; 2],
    ids: [AssociationId; 2],
}

impl Pair {
    fn new(server: Usrsctp, client: Usrsctp) -> Result<Pair> {
        let to = server.local_address();
        let mut ends = [server, client];
        ends[0].turn(Instant::now(), &mut |_| {});
        let asked = ends[1].associate(to, Instant::now())?;
        let mut ids = [None, None];
        while ids.contains(&None) {
            for (end, id) in ends.iter_mut().zip(&mut ids) {
                end.turn(Instant::now(), &mut |event| {
                    if let Event::Up { association, .. } = event {
                        *id = Some(association);
                    }
                });
            }
        }
        let ids = [ids[0].ok_or("never")?, asked];
        Ok(Pair { ends, ids })
    }

    /// So many round trips; the time of the processor.
    fn ping(&mut self, octets: usize, count: usize) -> Result<Duration> {
        let used = processor_time()?;
        for _ in 0..count {
            for from in [1, 0] {
                let id = self.ids[from];
                self.ends[from].send(id, 0, 16, octets, |place| place.fill(1))?;
                self.ends[from].turn(Instant::now(), &mut |_| {});
                let mut came = false;
                while !came {
                    self.ends[1 - from].turn(Instant::now(), &mut |event| {
                        came |= matches!(event, Event::Message { .. });
                    });
                }
            }
        }
        Ok(processor_time()? - used)
    }
}

/// Of this thread.
fn processor_time() -> Result<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Ok(Duration::new(
        u64::try_from(time.tv_sec)?,
        u32::try_from(time.tv_nsec)?,
    ))
}
