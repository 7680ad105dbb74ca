//! The test bed: ports, lcores, and connections from the load to the service.
//!
//! One lcore has both ends, or two have one each. They run on threads of their own, or are
//! turned by hand ([`Bed::by_hand`]), which makes a run repeatable to the instruction.

use crate::ends::End;
use crate::load::{Load, Measured, Notice as LoadNotice, Order, figures};
use crate::workload::Workload;
use anyhow::{Context, Result, anyhow, bail};
use rpcrdma_engine::{Connection, Setup, Side};
use rpcrdma_fabric::Port;
use rpcrdma_fabric::Span;
use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::connect::{ConnectionId, Event, Fabric, PortId};
use rpcrdma_fabric::pool::{LONGEST, Pool};
use rpcrdma_lcore::{
    Bell, ConnectionNumber, Idle, Lcore, Line, Notice, Places, Running, SeatId, SeatOrder, Session,
    line, spawn, stock,
};
use rpcrdma_memory::{MemoryFabric, MemoryPort, Settings};
use rpcrdma_upper::program::{Service, fill_source};
use rpcrdma_wire::Version;
use rpcrdma_wire::private_data::PrivateData;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name of the service in the fabric.
const SERVICE: &str = "rpcrdma-perf";
/// How long anything in the set-up may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Memory for what is not payload, octets.
const SLACK_BYTES: u64 = 16 << 20;

/// What to set up.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The Calls.
    pub workload: Workload,
    /// Calls in flight on each connection.
    pub depth: u16,
    /// Connections.
    pub connections: usize,
    /// One lcore for both ends, or one for each.
    pub lcores: usize,
    /// The version to speak.
    pub version: Version,
}

impl Wanted {
    fn setup(&self, side: Side) -> Setup {
        Setup {
            version_max: self.version,
            credits: self.depth,
            backward_credits: 0,
            ..Setup::new(side)
        }
    }

    /// Octets of each lcore's arena: receives of both ends, calls and results of the load, and
    /// what the service assembles.
    fn arena_bytes(&self) -> u64 {
        let setup = self.setup(Side::Client);
        let receives = u64::from(setup.receives()) * u64::from(setup.receive_bytes);
        let optional = self.workload.result_bytes().unwrap_or(0);
        let lane = [
            self.workload.call_bytes(),
            optional,
            self.workload.reply_bytes(),
        ];
        // A pool hands out eighths of powers of two: a quarter more than asked for is enough.
        let lane: u64 = lane
            .iter()
            .map(|&bytes| u64::from(bytes) * 5 / 4 + 512)
            .sum();
        let each = 2 * receives + 2 * u64::from(self.depth) * lane;
        let source = self.workload.source_bytes(self.depth);
        (each * self.connections as u64 + source * 5 / 4 + SLACK_BYTES).next_multiple_of(2 << 20)
    }
}

type Endpoint = <MemoryPort as Port>::Endpoint;
type LoadLine = Line<Endpoint, End>;
/// What makes an lcore, on the thread that will turn it.
type Make = Box<dyn FnOnce() -> std::io::Result<Lcore<MemoryPort, End>> + Send>;

/// How the lcores are driven.
enum Drive {
    Threads(Vec<Running>),
    ByHand(Vec<Lcore<MemoryPort, End>>),
}

/// One connection, as far as it has come.
#[derive(Clone, Copy, Debug)]
struct Seat {
    lcore: usize,
    seat: SeatId,
}

/// The bed.
pub struct Bed {
    wanted: Wanted,
    fabric: MemoryFabric,
    bell: Arc<Bell>,
    ports: Vec<PortId>,
    /// What READ gives, of each lcore.
    sources: Vec<Span>,
    lines: Vec<LoadLine>,
    drive: Drive,
    loads: Vec<Seat>,
    /// Notices that came while another was awaited.
    adopted: HashMap<ConnectionNumber, SeatId>,
    running: usize,
    done: usize,
    #[expect(
        clippy::vec_box,
        reason = "they are lent as boxes, and come back as them"
    )]
    sessions: Vec<Box<Session<End>>>,
}

impl Bed {
    /// A bed whose lcores run on threads, pinned to the first processors of this process.
    pub fn on_threads(wanted: Wanted) -> Result<Self> {
        let cores = core_affinity::get_core_ids().unwrap_or_default();
        if cores.len() < wanted.lcores {
            bail!(
                "{} lcores want as many processors; this process may use {}",
                wanted.lcores,
                cores.len()
            );
        }
        let mut bed = Self::bare(wanted)?;
        let mut threads = Vec::new();
        for (index, core) in cores.into_iter().enumerate().take(wanted.lcores) {
            let (line, make) = bed.station()?;
            let name = format!("lcore-{index}");
            threads.push(spawn(Some(core), name, Arc::clone(&bed.bell), make)?);
            bed.lines.push(line);
        }
        bed.drive = Drive::Threads(threads);
        bed.connect_all()?;
        Ok(bed)
    }

    /// A bed with both ends on one lcore that the caller turns.
    pub fn by_hand(wanted: Wanted) -> Result<Self> {
        let mut bed = Self::bare(wanted)?;
        let (line, make) = bed.station()?;
        bed.lines.push(line);
        bed.drive = Drive::ByHand(vec![make()?]);
        bed.connect_all()?;
        Ok(bed)
    }

    fn bare(wanted: Wanted) -> Result<Self> {
        let mut fabric = MemoryFabric::new();
        fabric.listen(SERVICE)?;
        Ok(Self {
            wanted,
            fabric,
            bell: Arc::new(Bell::new()?),
            ports: Vec::new(),
            sources: Vec::new(),
            lines: Vec::new(),
            drive: Drive::Threads(Vec::new()),
            loads: Vec::new(),
            adopted: HashMap::new(),
            running: 0,
            done: 0,
            sessions: Vec::new(),
        })
    }

    /// A port with its arena, and what makes the lcore for it.
    fn station(&mut self) -> Result<(LoadLine, Make)> {
        let bytes = self.wanted.arena_bytes();
        let arena = Arc::new(Arena::map(bytes, Hugepages::Try)?);
        arena.prefault()?;
        let pairs = u32::try_from(self.wanted.connections * 2)?;
        let windows = pairs * u32::from(self.wanted.depth) * 2;
        let settings = Settings {
            queue_pairs: pairs,
            windows: windows.next_power_of_two().max(1024),
            receive_depth: u32::from(self.wanted.setup(Side::Client).receives()),
            ..Settings::default()
        };
        let (id, port) = self.fabric.open_port(Arc::clone(&arena), &settings)?;
        self.ports.push(id);
        let places = Places {
            seats: self.wanted.connections * 2,
            ..Places::default()
        };
        let (line, link) = line(places, Arc::clone(&self.bell))?;
        let mut pool = Pool::new(0, bytes);
        let source = u32::try_from(self.wanted.workload.source_bytes(self.wanted.depth))?.max(1);
        let source = stock(&mut pool, &arena, source, fill_source)
            .with_context(|| format!("{source} octets to READ from: at most {LONGEST}"))?;
        self.sources.push(source);
        let make = move || Lcore::new(link, port, arena, pool, Idle::Spin);
        Ok((line, Box::new(make)))
    }

    fn connect_all(&mut self) -> Result<()> {
        for _ in 0..self.wanted.connections {
            self.connect_one()
                .context("connecting the load to the service")?;
        }
        let wanted = self.wanted.connections;
        self.wait("the first answer on every connection", |bed| {
            (bed.running == wanted).then_some(())
        })
    }

    fn connect_one(&mut self) -> Result<()> {
        let server = self.lines.len() - 1;
        let load = Load::new(
            self.wanted.workload,
            self.wanted.depth,
            figures(self.wanted.connections),
        );
        let private = self.wanted.setup(Side::Client).private_data().emit();
        let (client, endpoint) = self.fabric.open(self.ports[0])?;
        let end = End::Load(Box::new(load));
        let seat = self.adopt(0, client, endpoint, None, Side::Client, end)?;
        self.loads.push(seat);
        self.fabric.connect(client, SERVICE, &private)?;

        let (connection, client_data) = self.wait("the connection request", |bed| {
            bed.fabric.poll().and_then(|event| match event {
                Event::Request {
                    connection,
                    private_data,
                    ..
                } => Some((connection, private_data)),
                _ => None,
            })
        })?;
        let endpoint = self.fabric.take(connection, self.ports[server])?;
        let end = End::Service(Service::new(self.sources[server], self.wanted.depth));
        let served = self.adopt(
            server,
            connection,
            endpoint,
            PrivateData::find(&client_data),
            Side::Server,
            end,
        )?;
        self.fabric.accept(connection, &private)?;

        for _ in 0..2 {
            let (which, data) = self.wait("the connection", |bed| {
                bed.fabric.poll().and_then(|event| match event {
                    Event::Established {
                        connection,
                        private_data,
                    } => Some((connection, private_data)),
                    _ => None,
                })
            })?;
            let seat = if which == client { seat } else { served };
            let peer = PrivateData::find(&data);
            self.tell(seat, SeatOrder::Established { peer })?;
        }
        Ok(())
    }

    fn adopt(
        &mut self,
        lcore: usize,
        connection: ConnectionId,
        endpoint: Endpoint,
        peer: Option<PrivateData>,
        side: Side,
        upper: End,
    ) -> Result<Seat> {
        let number = ConnectionNumber(connection.0);
        let session = Box::new(Session {
            connection: Connection::new(self.wanted.setup(side)),
            upper,
        });
        if self.lines[lcore]
            .adopt(number, endpoint, peer, session)
            .is_err()
        {
            bail!("the lcore has no seat for another connection");
        }
        let seat = self.wait("a seat", |bed| bed.adopted.remove(&number))?;
        Ok(Seat { lcore, seat })
    }

    fn tell(&mut self, seat: Seat, order: SeatOrder<End>) -> Result<()> {
        let mut order = Some(order);
        self.wait("room for an order", |bed| {
            match bed.lines[seat.lcore].tell(seat.seat, order.take()?) {
                Ok(()) => Some(()),
                Err(back) => {
                    order = Some(back);
                    None
                }
            }
        })
    }

    /// Tells every load, then lets `time` pass, calling `each` about ten times a second.
    pub fn order_loads(&mut self, order: Order) -> Result<()> {
        for seat in self.loads.clone() {
            self.tell(seat, SeatOrder::Upper(order))?;
        }
        Ok(())
    }

    /// Lets time pass.
    pub fn run_for(&mut self, time: Duration, mut each: impl FnMut(Duration)) {
        let begun = Instant::now();
        while let Some(left) = time.checked_sub(begun.elapsed()) {
            std::thread::sleep(left.min(Duration::from_millis(100)));
            self.take_notices();
            each(begun.elapsed());
        }
    }

    /// Turns a bed by hand until the loads have made `calls` Calls. Never inlined, so that a
    /// profiler can be told to look at nothing else.
    #[inline(never)]
    pub fn turn_until(&mut self, calls: u64) {
        let Drive::ByHand(lcores) = &mut self.drive else {
            return;
        };
        let mut replies = lcores[0].counters().replies_in;
        let until = replies + calls;
        while replies < until {
            lcores[0].turn();
            replies = lcores[0].counters().replies_in;
        }
    }

    /// Stops the loads, takes everything down, and adds up what was measured.
    pub fn finish(mut self) -> Result<Measured> {
        self.order_loads(Order::Stop)?;
        let loads = self.loads.len();
        self.wait("the last answers", |bed| (bed.done >= loads).then_some(()))?;
        for lcore in 0..self.lines.len() {
            self.wait("an lcore", |bed| {
                bed.lines[lcore].stop(PATIENCE).then_some(())
            })?;
        }
        self.wait("the connections to close", |bed| {
            (bed.sessions.len() == 2 * loads).then_some(())
        })?;
        let mut sum = Measured::new(figures(self.wanted.connections));
        for session in self.sessions.drain(..) {
            if let End::Load(load) = session.upper {
                sum.latency.add(&load.measured.latency)?;
                sum.calls += load.measured.calls;
                sum.errors += load.measured.errors;
            }
        }
        if let Drive::Threads(threads) = self.drive {
            for thread in threads {
                drop(thread.join());
            }
        }
        Ok(sum)
    }

    /// Waits until `ready` says so, or for [`PATIENCE`].
    fn wait<T>(&mut self, what: &str, mut ready: impl FnMut(&mut Self) -> Option<T>) -> Result<T> {
        let begun = Instant::now();
        loop {
            self.take_notices();
            if let Some(value) = ready(self) {
                return Ok(value);
            }
            if begun.elapsed() > PATIENCE {
                return Err(anyhow!("{what}: nothing after {} s", PATIENCE.as_secs()));
            }
            match &mut self.drive {
                Drive::Threads(_) => std::thread::yield_now(),
                Drive::ByHand(lcores) => lcores.iter_mut().for_each(|lcore| {
                    lcore.turn();
                }),
            }
        }
    }

    fn take_notices(&mut self) {
        for line in &mut self.lines {
            while let Some(notice) = line.poll() {
                match notice {
                    Notice::Adopted { seat, number } => {
                        self.adopted.insert(number, seat);
                    }
                    Notice::Upper {
                        notice: LoadNotice::Running,
                        ..
                    } => self.running += 1,
                    Notice::Upper {
                        notice: LoadNotice::Done,
                        ..
                    } => self.done += 1,
                    Notice::Closed { session, .. } => self.sessions.push(session),
                    Notice::Property { .. } | Notice::Drained | Notice::Snapshot(_) => {}
                }
            }
        }
    }
}
