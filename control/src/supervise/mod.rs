//! The control thread: what brings up lcores and listeners, makes connections, decides what the
//! lcores ask, and takes everything down again.
//!
//! # Ownership
//!
//! Lcores own connections; this thread owns everything before and after: it makes queue pair,
//! engine and upper layer, lends them to an lcore, and gets them back when the connection is
//! over. It is never waited for by an lcore, and never waits for one: orders that find a full
//! ring wait here.
//!
//! # The way of a connection
//!
//! RDMA in (front, service): request, allow list, seat, adoption (receives posted), accept,
//! established. TCP in (back): accepted, allow list, name and address of the upstream resolved,
//! seat, adoption, connect, established, version negotiated in time or not (V2-09). A front's upper layer asks for a TCP connection to
//! a backend when the first Call for it comes.
//!
//! # Another configuration
//!
//! On SIGHUP the file is read again, by another thread, and what can change without a restart does. Connections
//! that stand are told of another inline size by the property messages of version two.
//!
//! # The end
//!
//! A first signal drains: listeners close, then the backs' connections end when their Calls are
//! answered, then all others; at the latest after `drain_timeout_s`. A second one stops at once.

mod arrive;
mod backends;
mod board;
mod clamp;
mod cores;
mod dial;
mod drain;
mod grants;
mod health;
mod inline;
mod links;
mod links_families;
mod placement;
mod policy;
mod refused;
mod reload;
mod remembered;
mod reread;
mod revive;
mod seated;
mod setup;
mod survey;
mod ways;

pub use board::Board;
pub use reread::Reread;

use crate::backend::{Connector, Limits as ConnectorLimits};
use crate::discover::Discovery;
use crate::export::Export;
use crate::listen::Listeners;
use crate::logging::Complaints;
use crate::notify::{self, Watchdog};
use crate::signals::Signals;
use anyhow::{Context, Result, bail};
use arrive::Doors;
use backends::Errands;
use cores::{Core, Foundry, Gone};
use drain::Ending;
use health::Health;
use reload::Reloading;
use remembered::Remembered;
use revive::Revival;
use rpcrdma_config::Plan;
use rpcrdma_config::reload::Made;
use rpcrdma_fabric::connect::{DeviceChange, Event, Fabric, PortId};
use rpcrdma_lcore::{Bell, ConnectionNumber, Notice, SeatOrder, Session};
use rpcrdma_upper::role::Role;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use seated::Sessions;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use survey::{Ground, Surveyor};
use tracing::{debug, error, info, warn};
use ways::Ways;

/// The control loop comes round at least this often.
const ROUND: Duration = Duration::from_millis(100);
/// TCP connections to backends in the making, and as many more that wait.
const BACKEND_CONNECTS: ConnectorLimits = ConnectorLimits {
    at_once: 64,
    waiting: 1024,
};

/// The appliance, up and running.
pub struct Supervisor<F: Fabric> {
    plan: Plan,
    fabric: F,
    bell: Arc<Bell>,
    cores: Vec<Core<F>>,
    foundry: Foundry,
    revival: Revival,
    sessions: Sessions,
    /// When connections are looked at that are to get another inline size; `None`: there are none.
    resizing: Option<Instant>,
    ways: Ways,
    remembered: Remembered,
    doors: Doors,
    connector: Connector,
    errands: Errands,
    health: Health,
    export: Option<Export>,
    /// IPoIB links, where there are any.
    discovery: Option<Discovery>,
    surveyor: Surveyor,
    reloading: Reloading,
    ending: Ending,
    watchdog: Watchdog,
    /// What peers, clients and backends can cause goes through here.
    complaints: Complaints,
}

/// What another thread may ask of a [`Supervisor`].
#[derive(Clone)]
pub struct Handle {
    board: Arc<Board>,
}

impl Handle {
    /// Has the appliance drain and end, as a first signal does.
    pub fn drain(&self) {
        self.board.ask_to_drain();
    }

    /// Has the configuration read again, as SIGHUP does.
    pub fn reload(&self) {
        self.board.ask_to_reload();
    }

    /// The board with its state.
    #[must_use]
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }
}

impl<F: Fabric> Supervisor<F> {
    /// Brings up everything in the plan on this fabric: export, lcores, listeners.
    ///
    /// # Errors
    ///
    /// Whatever cannot be had, by name: nothing runs then.
    pub fn start(asked: Plan, mut fabric: F) -> Result<Self> {
        let mut plan = asked.clone();
        let bell = Arc::new(Bell::new().context("no descriptors left")?);
        let export = plan.export.as_ref().map(start_export).transpose()?;
        let devices = fabric.devices();
        for device in devices.iter().filter(|device| !device.up) {
            warn!("device {}: link down", device.name);
        }
        let mut clamps = clamp::clamp(&mut plan, &devices)?;
        let foundry = Foundry::new(&bell);
        let cores = foundry.start_all(&plan, &mut fabric, &devices)?;
        let rooms = cores
            .iter()
            .enumerate()
            .filter_map(|(index, core)| clamp::room(index, &core.device, &plan, core.queue_pairs));
        clamps.extend(rooms);
        for clamp in &clamps {
            warn!("{clamp}");
        }
        let warnings = fabric.warnings();
        for warning in &warnings {
            warn!("{warning}");
        }
        let doors = Doors::open(&plan, &mut fabric)?;
        let now = Instant::now();
        let mut discovery = Discovery::start(&plan, now)?;
        let health = Health::of(&plan, now);
        if let Some(discovery) = &mut discovery {
            let all = health.all();
            all.for_each(|(place, there)| discovery.backend_is(place, there));
        }
        let ground = Ground {
            devices,
            clamps,
            warnings,
        };
        let surveyor = Surveyor::new(&plan, &doors, export.as_ref(), ground, Arc::clone(&bell));
        Ok(Self {
            fabric,
            bell,
            cores,
            foundry,
            revival: Revival::default(),
            sessions: Sessions::default(),
            resizing: None,
            ways: Ways::new().context("no descriptors or threads left")?,
            remembered: Remembered::default(),
            doors,
            connector: Connector::new(BACKEND_CONNECTS)?,
            errands: Errands::default(),
            health,
            export,
            discovery,
            surveyor,
            reloading: Reloading::new(Made {
                asked,
                built: plan.clone(),
            }),
            ending: Ending::new(plan.runtime.drain_timeout),
            watchdog: Watchdog::from_environment(),
            complaints: Complaints::new(20, Duration::from_secs(5)),
            plan,
        })
    }

    /// What other threads may use.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            board: Arc::clone(self.surveyor.board()),
        }
    }

    /// The fabric that its fronts and services listen in.
    #[must_use]
    pub fn fabric(&self) -> &F {
        &self.fabric
    }

    /// Where each back listens, by name.
    #[must_use]
    pub fn back_addresses(&self) -> Vec<(String, SocketAddr)> {
        self.doors.back_addresses(&self.plan)
    }

    /// The embedded server, where there is one.
    #[must_use]
    pub fn export(&self) -> Option<&Export> {
        self.export.as_ref()
    }

    /// Runs until told to end and everything has ended.
    ///
    /// # Errors
    ///
    /// An lcore ended on its own.
    pub fn run(mut self, mut signals: Option<Signals>) -> Result<()> {
        notify::ready("serving");
        loop {
            // From here on news ring the bell, so none of them is slept over below.
            self.bell.doze();
            let now = Instant::now();
            self.watchdog.turn(now);
            let heard = signals.as_mut().map(Signals::poll).unwrap_or_default();
            if let Some(stop) = heard.stop {
                self.ending.heard(stop, now);
            }
            let reload = self.surveyor.board().takes_reload() || heard.reload;
            if reload && !self.ending.has_begun() {
                self.reload(now);
            }
            self.take_reload(now);
            if self.surveyor.board().wants_drain() {
                self.ending.asked(now);
            }
            self.take_notices(now);
            self.take_fabric_events(now);
            self.take_backends(now);
            self.look_for_backends(now);
            self.take_links(now);
            self.take_ways(now);
            self.take_clients(now);
            self.give_up_negotiations(now);
            self.take_resizing(now);
            self.cores.iter_mut().for_each(Core::flush);
            self.surveyor.turn(
                &mut self.cores,
                &self.sessions,
                &self.plan,
                self.ending.state(),
                now,
            );
            if !self.ending.has_begun() {
                self.revive(now);
            }
            if self.end(now).inspect_err(|_| self.leave_links())? {
                return Ok(());
            }
            self.wait(signals.as_ref());
        }
    }

    /// Sleeps until something may have happened.
    fn wait(&self, signals: Option<&Signals>) {
        let now = Instant::now();
        let deadlines = [
            self.connector.deadline(),
            self.watchdog.deadline(),
            self.sessions.deadline(),
            self.resizing,
            self.ending.deadline(),
            self.reloading.deadline(),
            self.revival.deadline().filter(|_| !self.ending.has_begun()),
            self.doors.tcp.as_ref().and_then(Listeners::deadline),
            self.discovery.as_ref().and_then(|it| it.deadline(now)),
        ];
        let left = |deadline: Instant| deadline.saturating_duration_since(now);
        let soonest = deadlines.into_iter().flatten().map(left).min();
        let mut patience = soonest.map_or(ROUND, |left| left.min(ROUND));
        if !self.has_room() || self.cores.iter().any(Core::is_behind) {
            patience = patience.min(Duration::from_millis(1));
        }
        let mut watched = vec![
            PollFd::new(&*self.bell, PollFlags::IN),
            PollFd::new(&self.connector, PollFlags::IN),
            PollFd::new(&self.ways, PollFlags::IN),
        ];
        // What cannot be taken now is no reason to wake up either.
        let fabric = self.fabric.descriptor().filter(|_| self.has_room());
        watched.extend(fabric.map(|fabric| PollFd::from_borrowed_fd(fabric, PollFlags::IN)));
        let links = self.discovery.iter().flat_map(Discovery::descriptors);
        watched.extend(links.map(|link| PollFd::from_borrowed_fd(link, PollFlags::IN)));
        let signals = signals.into_iter().flat_map(Signals::descriptors);
        watched.extend(signals.map(|signal| PollFd::from_borrowed_fd(signal, PollFlags::IN)));
        // Clients that could not be taken now are no reason to wake up.
        let doors = self.doors.tcp.as_ref().filter(|_| self.may_dial());
        watched.extend(doors.map(|doors| PollFd::new(doors, PollFlags::IN)));
        let patience = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(0),
            tv_nsec: patience.subsec_nanos().into(),
        };
        // Interrupted, or out of memory for once: the loop comes round all the same.
        let _ = poll(&mut watched, Some(&patience));
        self.bell.rise();
    }

    /// Some lcore can be told something now. What leads to an order waits until then.
    fn has_room(&self) -> bool {
        self.cores.iter().any(|core| core.line.has_room())
    }

    fn take_notices(&mut self, now: Instant) {
        for core in 0..self.cores.len() {
            while let Some(notice) = self.cores[core].line.poll() {
                self.take_notice(core, notice, now);
            }
        }
    }

    fn take_notice(&mut self, core: usize, notice: Notice<Role>, now: Instant) {
        match notice {
            Notice::Adopted { number, .. } => self.adopted(number),
            Notice::Closed {
                number,
                ending,
                session,
                ..
            } => self.closed(number, ending, &session, now),
            Notice::Property {
                number,
                event,
                seat,
                ..
            } => {
                if let Some(decision) = self.heard_properties(number, event, now) {
                    self.cores[core].tell(seat, SeatOrder::Decide(decision));
                }
            }
            Notice::Upper { number, notice, .. } => self.backend_wanted(number, notice, now),
            Notice::Drained => {}
            Notice::Snapshot(snapshot) => self.surveyor.take(core, snapshot),
        }
    }

    fn take_fabric_events(&mut self, now: Instant) {
        while self.has_room()
            && let Some(event) = self.fabric.poll()
        {
            match event {
                Event::Resolved { connection } => self.resolved(connection, now),
                Event::Request {
                    listener,
                    connection,
                    peer,
                    private_data,
                } => self.requested(listener, connection, &peer, &private_data),
                Event::Established {
                    connection,
                    private_data,
                } => self.established(connection, &private_data, now),
                Event::Rejected { connection, reason } => self.rejected(connection, &reason, now),
                // Its lcore says so too, with more to say.
                Event::Disconnected { .. } => {}
                Event::Device {
                    name,
                    ports,
                    change,
                } => self.device_changed(&name, &ports, change),
            }
        }
    }

    /// A device came or went. Connections that ended by it are told of by their lcores.
    fn device_changed(&mut self, name: &str, ports: &[PortId], change: DeviceChange) {
        self.surveyor.device_changed(name, change);
        let mut lcores = 0;
        for core in self
            .cores
            .iter_mut()
            .filter(|core| ports.contains(&core.port))
        {
            lcores += 1;
            if change == DeviceChange::Gone {
                core.gone.get_or_insert(Gone::Unheard);
            }
        }
        match change {
            DeviceChange::Down => warn!("device {name}: link down, of {lcores} lcore(s)"),
            DeviceChange::Up => info!("device {name}: link up"),
            DeviceChange::Gone => error!("device {name}: gone, from {lcores} lcore(s)"),
        }
    }

    /// A connection is over: what is to be remembered of it, and why it ended, for the log.
    fn closed(
        &mut self,
        number: ConnectionNumber,
        ending: rpcrdma_lcore::Ending,
        session: &Session<Role>,
        now: Instant,
    ) {
        self.forget_errands(number);
        let Some(seated) = self.sessions.remove(number) else {
            return;
        };
        let connection = &session.connection;
        self.remembered
            .suspect(&seated.party, connection.suspects(), now);
        self.learn_version(&seated, ending, connection, now);
        self.cores[seated.core].grants.give_back(seated.grant);
        if let (seated::Owner::Back(back), Role::Back(upper)) = (seated.owner, &session.upper) {
            let owed = upper.was_cut_off();
            self.upstream_ended(back, &seated.party, (ending, owed), now);
        }
        debug!("connection {}: closed: {ending:?}", number.0);
    }
}

fn start_export(export: &rpcrdma_config::plan::Export) -> Result<Export> {
    let directory = &export.directory;
    if directory.exists() && !directory.is_dir() {
        bail!(
            "export.directory {}: not a directory; name one to serve",
            directory.display()
        );
    }
    if !directory.is_dir() {
        bail!(
            "export.directory {}: no such directory; create it, or name another one",
            directory.display()
        );
    }
    Export::start(directory, export.listen, export.read_only)
        .with_context(|| format!("serving {} at {}", directory.display(), export.listen))
}
