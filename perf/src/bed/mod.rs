//! The test bed: ports, lcores, and connections from the load to the service.
//!
//! Both ends are here, on one lcore or on one each, or only one of them is, and the other is
//! reached by the fabric ([`Place`]). Lcores run on threads of their own, or are turned by hand
//! ([`Bed::by_hand`]), which makes a run repeatable to the instruction.

mod connecting;
mod device;
mod invalidate;
mod serving;

use crate::ends::End;
use crate::load::{Measured, Notice as LoadNotice, Order, figures};
use crate::workload::Workload;
use anyhow::{Context, Result, anyhow, bail};
use core_affinity::CoreId;
use device::Devices;
use invalidate::Invalidate;
use rpcrdma_engine::{Setup, Side};
use rpcrdma_fabric::Port;
use rpcrdma_fabric::Span;
use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::connect::{Fabric, PortId, PortWanted};
use rpcrdma_fabric::pool::{LONGEST, Pool};
use rpcrdma_lcore::{
    Bell, ConnectionNumber, Ending, Idle, Lcore, Line, Notice, Places, Running, SeatId, SeatOrder,
    Session, line, spawn, stock,
};
use rpcrdma_upper::program::{self, fill_source};
use rpcrdma_wire::Version;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long anything in the set-up may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same where the caller's thread turns all lcores: what is being waited for is its own work, not anybody's answer.
const PATIENCE_BY_HAND: Duration = Duration::from_secs(120);
/// Memory for what is not payload, octets.
const SLACK_BYTES: u64 = 16 << 20;

/// Which ends of the connections are here, and where they meet: addresses in the fabric's own
/// form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Both: the service listens at this address.
    Here(String),
    /// The load alone: a service listens at this address, wherever that is.
    There(String),
    /// The service alone, at this address.
    Serving(String),
}

impl Place {
    /// Ends of each connection that are here.
    fn ends(&self) -> usize {
        match self {
            Place::Here(_) => 2,
            Place::There(_) | Place::Serving(_) => 1,
        }
    }
}

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
    /// What an lcore does without work.
    pub idle: Idle,
}

impl Wanted {
    fn setup(&self, side: Side, remote_invalidate: bool) -> Setup {
        Setup {
            version_max: self.version,
            credits: self.depth,
            backward_credits: 0,
            remote_invalidate,
            ..Setup::new(side)
        }
    }

    /// Octets of each lcore's arena: receives of both ends, calls and results of the load, and
    /// what the service assembles.
    fn arena_bytes(&self, source_bytes: u32) -> u64 {
        let setup = self.setup(Side::Client, true);
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
        let source = u64::from(source_bytes) * 5 / 4;
        (each * self.connections as u64 + source + SLACK_BYTES).next_multiple_of(2 << 20)
    }
}

type Endpoint<F> = <<F as Fabric>::Port as Port>::Endpoint;
/// An lcore of the bed.
type Station<F> = Lcore<<F as Fabric>::Port, End>;
/// What makes one, on the thread that will turn it.
type Make<F> = Box<dyn FnOnce() -> std::io::Result<Station<F>> + Send>;

/// How the lcores are driven.
enum Drive<F: Fabric> {
    Threads(Vec<Running>),
    ByHand(Vec<Station<F>>),
}

/// One connection, as far as it has come.
#[derive(Clone, Copy, Debug)]
struct Seat {
    lcore: usize,
    seat: SeatId,
}

/// The bed.
pub struct Bed<F: Fabric> {
    wanted: Wanted,
    place: Place,
    fabric: F,
    /// Where the service is.
    address: String,
    devices: Devices,
    /// All its devices can do Send With Invalidate.
    invalidate: Invalidate,
    bell: Arc<Bell>,
    ports: Vec<PortId>,
    /// What READ gives, of each lcore.
    sources: Vec<Span>,
    lines: Vec<Line<Endpoint<F>, End>>,
    drive: Drive<F>,
    loads: Vec<Seat>,
    /// Notices that came while another was awaited.
    adopted: HashMap<ConnectionNumber, SeatId>,
    running: usize,
    done: usize,
    /// What a load handed back, until somebody takes it.
    measured: Option<Box<Measured>>,
    /// Connections may end now.
    ending: bool,
    /// How the first one ended that should not have.
    lost: Option<Ending>,
    #[expect(
        clippy::vec_box,
        reason = "they are lent as boxes, and come back as them"
    )]
    sessions: Vec<Box<Session<End>>>,
}

impl<F: Fabric> Bed<F> {
    /// A bed whose lcores run on threads, pinned to the first processors of this process, with
    /// all its connections made.
    ///
    /// # Errors
    ///
    /// Whatever cannot be had, by name.
    pub fn on_threads(wanted: Wanted, fabric: F, place: Place) -> Result<Self> {
        let cores = core_affinity::get_core_ids().unwrap_or_default();
        Self::on_processors(wanted, fabric, place, &cores)
    }

    /// The same, with the lcores pinned to the first of these processors.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn on_processors(
        wanted: Wanted,
        fabric: F,
        place: Place,
        cores: &[CoreId],
    ) -> Result<Self> {
        if cores.len() < wanted.lcores {
            bail!(
                "{} lcores want as many processors; this process may use {}",
                wanted.lcores,
                cores.len()
            );
        }
        let mut bed = Self::bare(wanted, fabric, place)?;
        let mut threads = Vec::new();
        for (index, &core) in cores.iter().enumerate().take(wanted.lcores) {
            let make = bed.station(Some(core))?;
            let name = format!("lcore-{index}");
            threads.push(spawn(Some(core), name, Arc::clone(&bed.bell), make)?);
        }
        bed.drive = Drive::Threads(threads);
        bed.connect_all()?;
        Ok(bed)
    }

    /// A bed with both ends on one lcore that the caller turns.
    ///
    /// # Errors
    ///
    /// Whatever cannot be had, by name.
    pub fn by_hand(wanted: Wanted, fabric: F, address: &str) -> Result<Self> {
        let mut bed = Self::bare(wanted, fabric, Place::Here(address.to_owned()))?;
        let make = bed.station(None)?;
        bed.drive = Drive::ByHand(vec![make()?]);
        bed.connect_all()?;
        Ok(bed)
    }

    fn bare(wanted: Wanted, mut fabric: F, place: Place) -> Result<Self> {
        let address = match &place {
            Place::There(address) => address.clone(),
            Place::Here(address) | Place::Serving(address) => {
                let listener = fabric.listen(address);
                let listener = listener.with_context(|| format!("listening at {address}"))?;
                fabric.address(listener).unwrap_or_else(|| address.clone())
            }
        };
        let mut bed = Self {
            wanted,
            invalidate: Invalidate::of(&fabric.devices()),
            fabric,
            address,
            devices: Devices::Any,
            bell: Arc::new(Bell::new()?),
            ports: Vec::new(),
            sources: Vec::new(),
            lines: Vec::new(),
            drive: Drive::Threads(Vec::new()),
            loads: Vec::new(),
            adopted: HashMap::new(),
            running: 0,
            done: 0,
            measured: None,
            ending: matches!(place, Place::Serving(_)),
            lost: None,
            place,
            sessions: Vec::new(),
        };
        let found = bed.find_devices();
        bed.devices = found.with_context(|| format!("the device that leads to {}", bed.address))?;
        Ok(bed)
    }

    /// A port with its arena, and what makes the lcore for it.
    fn station(&mut self, core: Option<CoreId>) -> Result<Make<F>> {
        let source = self.source_bytes()?;
        let bytes = self.wanted.arena_bytes(source);
        let arena = Arc::new(Arena::map(bytes, Hugepages::Try)?);
        arena.prefault()?;
        let wanted = self.port_wanted(core)?;
        let (id, port) = self.fabric.open_port(Arc::clone(&arena), &wanted)?;
        self.ports.push(id);
        let places = Places {
            seats: wanted.queue_pairs as usize,
            ..Places::default()
        };
        let (line, link) = line(places, Arc::clone(&self.bell))?;
        self.lines.push(line);
        let mut pool = Pool::new(0, bytes);
        let source = stock(&mut pool, &arena, source, fill_source)
            .with_context(|| format!("{source} octets to READ from: at most {LONGEST}"))?;
        self.sources.push(source);
        let idle = self.wanted.idle;
        let make = move || Lcore::new(link, port, arena, pool, idle);
        Ok(Box::new(make))
    }

    /// Octets of the source that READ reads: as much as the load wants where both ends are here;
    /// otherwise as much as everybody's, for who connects cannot know more.
    fn source_bytes(&self) -> Result<u32> {
        let wanted = self.wanted.workload.source_bytes(self.wanted.depth);
        let wanted = u32::try_from(wanted)?.max(1);
        Ok(match self.place {
            Place::Here(_) => wanted,
            Place::There(_) => program::SOURCE_BYTES,
            Place::Serving(_) => wanted.max(program::SOURCE_BYTES),
        })
    }

    fn setup(&self, side: Side) -> Setup {
        self.wanted.setup(side, self.invalidate.at(side))
    }

    /// A port that has room for everything, should it all be on one.
    fn port_wanted(&self, core: Option<CoreId>) -> Result<PortWanted> {
        let setup = self.setup(Side::Client);
        let queue_pairs = u32::try_from(self.wanted.connections * self.place.ends())?;
        let receive_depth = u32::from(setup.receives());
        let windows = queue_pairs * u32::from(self.wanted.depth) * 2;
        Ok(PortWanted {
            device: self.devices.of(self.ports.len()),
            processor: core.map(|core| core.id),
            queue_pairs,
            send_depth: (4 * receive_depth).clamp(64, 1024),
            receive_depth,
            windows: windows.next_power_of_two().max(1024),
            message_bytes: setup.receive_bytes,
        })
    }

    /// Tells every load.
    ///
    /// # Errors
    ///
    /// An lcore takes no orders.
    pub fn order_loads(&mut self, order: Order) -> Result<()> {
        for seat in self.loads.clone() {
            self.tell(seat, SeatOrder::Upper(order.clone()))?;
        }
        Ok(())
    }

    /// Hands over what was measured since this was last done, or since [`Order::Measure`]. The loads go on, and begin anew.
    /// Lcores neither clear memory for that nor meet pages for the first time.
    ///
    /// # Errors
    ///
    /// An lcore takes no orders, or a connection is lost.
    pub fn exchange(&mut self) -> Result<Measured> {
        let mut sum = Measured::new(figures(self.wanted.connections));
        let mut next = Box::new(sum.clone());
        for seat in self.loads.clone() {
            next.reset();
            self.tell(seat, SeatOrder::Upper(Order::Exchange(next)))?;
            next = self.wait("what was measured", |bed| bed.measured.take())?;
            sum.add(&next)?;
        }
        Ok(sum)
    }

    /// Lets `time` pass, calling `each` about ten times a second; not all of it when a connection
    /// is lost meanwhile, which [`Bed::finish`] will say.
    pub fn run_for(&mut self, time: Duration, mut each: impl FnMut(Duration)) {
        let begun = Instant::now();
        while let Some(left) = time.checked_sub(begun.elapsed()) {
            std::thread::sleep(left.min(Duration::from_millis(100)));
            // What happens to connections meanwhile is told by their lcores.
            while self.fabric.poll().is_some() {}
            self.take_notices();
            each(begun.elapsed());
            if self.lost.is_some() {
                return;
            }
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
    ///
    /// # Errors
    ///
    /// Something does not come to its end.
    pub fn finish(mut self) -> Result<Measured> {
        self.order_loads(Order::Stop)?;
        let loads = self.loads.len();
        self.wait("the last answers", |bed| (bed.done >= loads).then_some(()))?;
        self.ending = true;
        for lcore in 0..self.lines.len() {
            self.wait("an lcore", |bed| {
                bed.lines[lcore].stop(PATIENCE).then_some(())
            })?;
        }
        self.wait("the connections to close", |bed| {
            (bed.sessions.len() == bed.place.ends() * loads).then_some(())
        })?;
        let mut sum = Measured::new(figures(self.wanted.connections));
        for session in self.sessions.drain(..) {
            if let End::Load(load) = session.upper {
                sum.add(&load.measured)?;
            }
        }
        if let Drive::Threads(threads) = self.drive {
            for thread in threads {
                drop(thread.join());
            }
        }
        Ok(sum)
    }

    /// Waits until `ready` says so, or for as long as there is patience.
    fn wait<T>(&mut self, what: &str, mut ready: impl FnMut(&mut Self) -> Option<T>) -> Result<T> {
        let begun = Instant::now();
        let patience = match self.drive {
            Drive::Threads(_) => PATIENCE,
            Drive::ByHand(_) => PATIENCE_BY_HAND,
        };
        loop {
            self.take_notices();
            if let Some(value) = ready(self) {
                return Ok(value);
            }
            if let Some(ending) = self.lost {
                bail!("{what}: a connection was lost: {ending:?}");
            }
            if begun.elapsed() > patience {
                return Err(anyhow!("{what}: nothing after {} s", patience.as_secs()));
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
                    Notice::Upper {
                        notice: LoadNotice::Measured(measured),
                        ..
                    } => self.measured = Some(measured),
                    Notice::Closed {
                        session, ending, ..
                    } => {
                        self.sessions.push(session);
                        if !self.ending {
                            self.lost.get_or_insert(ending);
                        }
                    }
                    Notice::Property { .. } | Notice::Drained | Notice::Snapshot(_) => {}
                }
            }
        }
    }
}
