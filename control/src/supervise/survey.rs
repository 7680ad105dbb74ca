//! Asking the lcores how they are, and making the status document and the metrics of it.

use super::arrive::Doors;
use super::board::Board;
use super::cores::Core;
use super::links_families;
use super::refused::Wrongs;
use super::seated::{Owner, Sessions};
use crate::export::Export;
use crate::metrics::{Family, Kind, Value};
use crate::status::{
    Backend, Clamp, Connection, Device, DeviceState, Document, Lcore, Link, Listener, Memory,
    REFUSED_HEADERS, RefusedHeader, Reloads, Role, State,
};
use rpcrdma_config::Plan;
use rpcrdma_fabric::connect::{self, DeviceChange, Fabric};
use rpcrdma_lcore::{Bell, Row, Snapshot};
use rpcrdma_upper::role::Role as Upper;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the lcores are asked when nobody waits for it.
const EVERY: Duration = Duration::from_secs(5);

/// Asks, gathers and posts.
pub(super) struct Surveyor {
    board: Arc<Board>,
    started: Instant,
    asked: Option<Instant>,
    /// What was asked for is not posted yet.
    owing: bool,
    headers: Wrongs,
    port_rejects: Wrongs,
    /// What each lcore last said; `None` while it is being asked.
    said: Vec<Option<Box<Snapshot<Upper>>>>,
    /// Connections that a snapshot has room for.
    rows: usize,
    listeners: Vec<Listener>,
    devices: Vec<Device>,
    clamps: Vec<Clamp>,
    warnings: Vec<String>,
    reloads: Reloads,
    links: Vec<Link>,
    backends: Vec<Backend>,
}

/// What is known of the fabric that a plan runs on.
pub(super) struct Ground {
    pub(super) devices: Vec<connect::Device>,
    pub(super) clamps: Vec<Clamp>,
    pub(super) warnings: Vec<String>,
}

impl Surveyor {
    pub(super) fn new(
        plan: &Plan,
        doors: &Doors,
        export: Option<&Export>,
        ground: Ground,
        bell: Arc<Bell>,
    ) -> Self {
        let rows = plan.runtime.connections_max as usize;
        let room = |_| Some(Box::new(Snapshot::with_room(rows)));
        Self {
            board: Board::new(bell),
            started: Instant::now(),
            asked: None,
            owing: false,
            headers: Wrongs::new("headers refused", "; rpcrdmad status shows the last", EVERY),
            port_rejects: Wrongs::new("breaches of the fabric's protocols by peers", "", EVERY),
            said: plan.runtime.lcores.iter().map(room).collect(),
            rows,
            listeners: listeners(plan, doors, export),
            devices: ground.devices.iter().map(Device::new).collect(),
            clamps: ground.clamps,
            warnings: ground.warnings,
            reloads: Reloads::default(),
            links: Vec::new(),
            backends: Vec::new(),
        }
    }

    /// A new lcore is in the place of one that had lost its device: one of these it has now.
    pub(super) fn renew(&mut self, core: usize, devices: &[connect::Device]) {
        self.take(core, Box::new(Snapshot::with_room(self.rows)));
        self.devices.retain(|known| {
            let there = devices.iter().any(|device| device.name == known.name);
            there || known.state != DeviceState::Gone
        });
        for device in devices {
            match self.devices.iter_mut().find(|it| it.name == device.name) {
                Some(known) => known.state = DeviceState::of(device),
                None => self.devices.push(Device::new(device)),
            }
        }
    }

    /// A device has changed.
    pub(super) fn device_changed(&mut self, name: &str, change: DeviceChange) {
        if let Some(device) = self.devices.iter_mut().find(|it| it.name == name) {
            device.state = match change {
                DeviceChange::Down => DeviceState::Down,
                DeviceChange::Up => DeviceState::Up,
                DeviceChange::Gone => DeviceState::Gone,
            };
        }
    }

    /// The configuration was read again.
    pub(super) fn reloaded(&mut self, reloads: Reloads) {
        self.reloads = reloads;
    }

    /// The next turn posts what it knows.
    pub(super) fn is_about_to_post(&self) -> bool {
        self.owing && self.said.iter().all(Option::is_some)
    }

    /// The links, as they are to be posted.
    pub(super) fn links_are(&mut self, links: Vec<Link>) {
        self.links = links;
    }

    /// The backends that are looked after, as they are to be posted.
    pub(super) fn backends_are(&mut self, backends: Vec<Backend>) {
        self.backends = backends;
    }

    /// There is less that can be had of the devices in use now.
    pub(super) fn clamped(&mut self, clamps: Vec<Clamp>) {
        self.clamps.extend(clamps);
    }

    pub(super) fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// Posts what all lcores have said, and asks them again when it is time.
    pub(super) fn turn<F: Fabric>(
        &mut self,
        cores: &mut [Core<F>],
        sessions: &Sessions,
        plan: &Plan,
        state: State,
        now: Instant,
    ) {
        for (_, said) in cores
            .iter()
            .zip(&mut self.said)
            .filter(|(core, _)| core.line.is_over())
        {
            // What it was asked it will not answer any more.
            said.get_or_insert_with(|| Box::new(Snapshot::with_room(self.rows)));
        }
        if self.said.iter().any(Option::is_none) {
            return;
        }
        if std::mem::take(&mut self.owing) {
            self.post(cores, sessions, plan, state);
        }
        let due = self.asked.is_none_or(|asked| now >= asked + EVERY);
        if !due && !self.board.is_wanted() {
            return;
        }
        (self.asked, self.owing) = (Some(now), true);
        let living = cores.iter_mut().zip(&mut self.said);
        for (core, said) in living.filter(|(core, _)| core.gone.is_none()) {
            if let Some(snapshot) = said.take()
                && let Err(back) = core.line.survey(snapshot)
            {
                *said = Some(back);
            }
        }
    }

    /// What an lcore said.
    pub(super) fn take(&mut self, core: usize, snapshot: Box<Snapshot<Upper>>) {
        if let Some(said) = self.said.get_mut(core) {
            *said = Some(snapshot);
        }
    }

    fn post<F: Fabric>(
        &mut self,
        cores: &[Core<F>],
        sessions: &Sessions,
        plan: &Plan,
        state: State,
    ) {
        let numbered = cores.iter().zip(self.said.iter().flatten()).zip(0u32..);
        let lcores: Vec<Lcore> = numbered
            .clone()
            .map(|((core, snapshot), number)| lcore(number, core, snapshot, sessions, plan))
            .collect();
        let refused = numbered.flat_map(|((_, snapshot), number)| {
            snapshot.refusals.iter().map(move |refusal| {
                RefusedHeader::new(
                    number,
                    refusal.connection.0,
                    refusal.reject.name(),
                    refusal.message_bytes,
                    refusal.header(),
                )
            })
        });
        let mut refused: Vec<_> = refused.collect();
        let surplus = refused.len().saturating_sub(REFUSED_HEADERS);
        refused.drain(..surplus);
        self.headers
            .tell(lcores.iter().flat_map(|lcore| &lcore.rejects));
        self.port_rejects
            .tell(lcores.iter().flat_map(|lcore| &lcore.port_rejects));
        let mut families = families(&lcores, self.said.iter().flatten());
        families.push(reloads(&self.reloads));
        families.extend(links_families::of(&self.links, &self.backends));
        let document = Document {
            version: crate::version::VERSION.to_owned(),
            process: std::process::id(),
            uptime_seconds: self.started.elapsed().as_secs(),
            state,
            listeners: self.listeners.clone(),
            devices: self.devices.clone(),
            clamps: self.clamps.clone(),
            warnings: self.warnings.clone(),
            reloads: self.reloads.clone(),
            links: self.links.clone(),
            backends: self.backends.clone(),
            lcores,
            refused,
        };
        self.board.post(document, families);
    }
}

fn lcore<F: Fabric>(
    number: u32,
    core: &Core<F>,
    snapshot: &Snapshot<Upper>,
    sessions: &Sessions,
    plan: &Plan,
) -> Lcore {
    let counters = &snapshot.counters;
    let ended = counters.remote_invalidations + counters.local_invalidations;
    let in_use = [
        (
            "connections",
            snapshot.connections.len() as u64 + snapshot.left_out as u64,
        ),
        ("exposures", counters.exposures.saturating_sub(ended)),
        ("memory_bytes", snapshot.memory.in_use_bytes),
    ];
    let rejects = counters
        .rejects
        .iter()
        .map(|(reject, count)| (reject.name(), count));
    Lcore {
        lcore: number,
        processor: u32::try_from(core.processor).unwrap_or(u32::MAX),
        device: core.device.clone(),
        exposure: core.exposure.name().to_owned(),
        in_use: in_use.map(|(name, value)| (name.to_owned(), value)).into(),
        memory: Memory {
            in_use_bytes: snapshot.memory.in_use_bytes,
            peak_bytes: snapshot.memory.peak_bytes,
            ceiling_bytes: snapshot.memory.ceiling_bytes,
            receives_bytes: core.grants.bytes().0,
            receives_ceiling_bytes: core.grants.bytes().1,
            hugepages: core.hugepages,
        },
        counters: named(snapshot)
            .map(|(name, _, value)| (name, value))
            .collect(),
        rejects: that_occurred(rejects),
        port_rejects: that_occurred(snapshot.port_rejects.iter()),
        connections: snapshot
            .connections
            .iter()
            .filter_map(|row| connection(row, sessions, plan))
            .collect(),
        connections_left_out: snapshot.left_out as u64,
    }
}

/// Reasons and how often, those that occurred.
fn that_occurred(reasons: impl Iterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    let occurred = reasons.filter(|&(_, count)| count > 0);
    occurred
        .map(|(reason, count)| (reason.to_owned(), count))
        .collect()
}

/// `None` for a connection that has ended since its lcore was asked.
fn connection(row: &Row, sessions: &Sessions, plan: &Plan) -> Option<Connection> {
    let seated = sessions.get(row.number)?;
    let (role, name, credits) = match seated.owner {
        Owner::Front(index) => (Role::Front, &plan.fronts[index].name, row.calls_in),
        Owner::Back(index) => (Role::Back, &plan.backs[index].name, row.calls_out),
        Owner::Service(index) => (Role::Service, &plan.services[index].name, row.calls_in),
    };
    let cost = plan.budget.endpoints.get(seated.owner.place(plan));
    Some(Connection {
        number: row.number.0,
        role,
        name: name.clone(),
        peer: seated.peer.clone(),
        tcp: seated.client.clone(),
        phase: format!("{:?}", row.phase).to_lowercase(),
        version: row.version.map(rpcrdma_wire::Version::code),
        send_bytes: row.send_bytes,
        receive_bytes: row.receive_bytes,
        credits_used: credits.used,
        credits_granted: credits.granted,
        memory_bytes: cost.map_or(0, |cost| seated.grant.bytes() + cost.slot_bytes),
        last_refusal: row.last_refusal.map(|reject| reject.name().to_owned()),
    })
}

/// Every counter, with the lcore as its label.
fn families<'a>(
    lcores: &[Lcore],
    snapshots: impl Iterator<Item = &'a Box<Snapshot<Upper>>>,
) -> Vec<Family> {
    let mut families = Families::default();
    for (lcore, snapshot) in lcores.iter().zip(snapshots) {
        let number = lcore.lcore.to_string();
        let label = [("lcore", number.as_str())];
        for (name, help, value) in named(snapshot) {
            let name = format!("rpcrdma_{name}_total");
            families.add(name, help, Kind::Counter, &label, value);
        }
        for (name, help, reasons) in [
            (
                "rpcrdma_headers_refused_total",
                "Headers refused, by reason.",
                &lcore.rejects,
            ),
            (
                "rpcrdma_port_rejects_total",
                "What peers did that the fabric's protocols do not allow, by reason.",
                &lcore.port_rejects,
            ),
        ] {
            for (reason, value) in reasons {
                let labels = [("lcore", number.as_str()), ("reason", reason.as_str())];
                families.add(name.to_owned(), help, Kind::Counter, &labels, *value);
            }
        }
        for (name, value) in &lcore.in_use {
            let name = format!("rpcrdma_in_use_{name}");
            families.add(name, "In use now.", Kind::Gauge, &label, *value);
        }
    }
    families.0.into_values().collect()
}

/// What came of configurations read again.
fn reloads(reloads: &Reloads) -> Family {
    let help = "Configurations read again while running.";
    let name = "rpcrdma_reloads_total".to_owned();
    let family = Family::new(name, Kind::Counter, help);
    let family = family.with(&[("outcome", "taken")], Value::Whole(reloads.taken));
    family.with(&[("outcome", "refused")], Value::Whole(reloads.refused))
}

/// Every plain counter of an lcore: name, meaning, value. The engine's have plain names, those
/// of the loop, of the port and of the upper layers say whose they are.
fn named(snapshot: &Snapshot<Upper>) -> impl Iterator<Item = (String, &'static str, u64)> {
    let engine = snapshot.counters.named();
    let turns = snapshot.turns.named();
    let port = snapshot.port.named();
    let upper = snapshot.upper.named();
    let own = engine.map(|(name, help, value)| (name.to_owned(), help, value));
    let turns = turns.map(|(name, help, value)| (format!("loop_{name}"), help, value));
    let port = port.map(|(name, help, value)| (format!("port_{name}"), help, value));
    let upper = upper.map(|(name, help, value)| (format!("upper_{name}"), help, value));
    own.chain(turns).chain(port).chain(upper)
}

/// Families by name.
#[derive(Default)]
struct Families(BTreeMap<String, Family>);

impl Families {
    fn add(
        &mut self,
        name: String,
        help: &str,
        kind: Kind,
        labels: &[(&'static str, &str)],
        value: u64,
    ) {
        let family = self.0.remove(&name);
        let family = family.unwrap_or_else(|| Family::new(name.clone(), kind, help));
        self.0
            .insert(name, family.with(labels, Value::Whole(value)));
    }
}

/// The doors, for the document.
fn listeners(plan: &Plan, doors: &Doors, export: Option<&Export>) -> Vec<Listener> {
    let listener = |role, name: &str, transport: &str, address: String| Listener {
        role,
        name: name.to_owned(),
        transport: transport.to_owned(),
        address,
    };
    let fronts = plan.fronts.iter().map(|front| {
        listener(
            Role::Front,
            &front.name,
            front.fabric.name(),
            front.listen.clone(),
        )
    });
    let services = plan.services.iter().map(|service| {
        listener(
            Role::Service,
            &service.name,
            service.fabric.name(),
            service.listen.clone(),
        )
    });
    let backs = doors.back_addresses(plan).into_iter();
    let backs =
        backs.map(|(name, address)| listener(Role::Back, &name, "tcp", address.to_string()));
    let export =
        export.map(|export| listener(Role::Export, "export", "tcp", export.address().to_string()));
    fronts.chain(backs).chain(services).chain(export).collect()
}
