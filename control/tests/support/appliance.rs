//! An appliance in this process, as `rpcrdmad run` makes it, and its state.

use super::until;
use rpcrdma_config::{Machine, Plan, parse};
use rpcrdma_memory::MemoryFabric;
use rpcrdmad::status::{Document, Lcore};
use rpcrdmad::supervise::{Handle, Reread, Supervisor};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread::JoinHandle;

/// A running appliance; dropped, it drains and ends.
pub(crate) struct Appliance {
    fabric: MemoryFabric,
    handle: Handle,
    backs: Vec<(String, SocketAddr)>,
    control: Option<JoinHandle<Result<(), String>>>,
}

/// This machine, with all processors that the tests may use.
pub(crate) fn machine() -> Machine {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    Machine {
        cores: cores.into_iter().map(|core| core.id).collect(),
        status_socket: "/nonexistent".into(),
    }
}

/// The plan that a configuration makes.
pub(crate) fn plan(text: &str) -> Plan {
    parse("test.toml", text, &machine()).unwrap_or_else(|error| panic!("{error}"))
}

impl Appliance {
    /// Runs what the configuration says.
    pub(crate) fn start(text: &str) -> Self {
        Self::of(plan(text))
    }

    pub(crate) fn of(plan: Plan) -> Self {
        let supervisor = Supervisor::start(plan, MemoryFabric::new());
        Self::running(supervisor.unwrap_or_else(|error| panic!("{error:#}")))
    }

    /// One that can read its plan again.
    pub(crate) fn rereading(plan: Plan, reread: Reread) -> Self {
        let supervisor = Supervisor::start(plan, MemoryFabric::new());
        let supervisor = supervisor.unwrap_or_else(|error| panic!("{error:#}"));
        Self::running(supervisor.with_reread(reread))
    }

    fn running(supervisor: Supervisor<MemoryFabric>) -> Self {
        let (fabric, handle) = (supervisor.fabric().clone(), supervisor.handle());
        let backs = supervisor.back_addresses();
        let run = move || supervisor.run(None).map_err(|error| format!("{error:#}"));
        Self {
            fabric,
            handle,
            backs,
            control: Some(std::thread::spawn(run)),
        }
    }

    /// The fabric that its fronts and services listen in.
    pub(crate) fn fabric(&self) -> MemoryFabric {
        self.fabric.clone()
    }

    /// Where its only back listens.
    pub(crate) fn back(&self) -> SocketAddr {
        assert_eq!(self.backs.len(), 1, "one back");
        self.backs[0].1
    }

    /// Its state, as of now.
    pub(crate) fn state(&self) -> State {
        State(self.handle.board().document())
    }

    /// Waits for a state.
    pub(crate) fn until<T>(&self, what: &str, look: impl Fn(&State) -> Option<T>) -> T {
        let mut last = None;
        let looked = std::panic::AssertUnwindSafe(|| {
            until(what, || {
                let state = self.state();
                let found = look(&state);
                last = Some(state);
                found
            })
        });
        std::panic::catch_unwind(looked).unwrap_or_else(|_| {
            panic!("waited in vain for: {what}; the last state: {last:#?}");
        })
    }

    /// Waits until a counter has reached `least`.
    pub(crate) fn until_counter(&self, name: &str, least: u64) {
        self.until(&format!("{name} at {least}"), |state| {
            (state.counter(name) >= least).then_some(())
        });
    }

    /// Waits until as much is in use as was before.
    pub(crate) fn until_in_use(&self, before: &InUse) {
        self.until(&format!("no more in use than {before:?}"), |state| {
            (state.in_use() == *before).then_some(())
        });
    }

    /// Has it read its plan again.
    pub(crate) fn reload(&self) {
        self.handle.reload();
    }

    /// Begins to drain.
    pub(crate) fn drain(&self) {
        self.handle.drain();
    }

    /// Waits for the end, having drained.
    pub(crate) fn end(mut self) {
        self.handle.drain();
        self.join();
    }

    fn join(&mut self) {
        if let Some(control) = self.control.take() {
            let ended = control.join();
            if !std::thread::panicking() {
                ended.expect("no panic").expect("an orderly end");
            }
        }
    }
}

impl Drop for Appliance {
    fn drop(&mut self) {
        self.handle.drain();
        self.join();
    }
}

/// What can leak, by name, over all lcores.
pub(crate) type InUse = BTreeMap<String, u64>;

/// The state of an appliance.
#[derive(Clone, Debug)]
pub(crate) struct State(pub(crate) Document);

impl State {
    fn sum(&self, of: impl Fn(&Lcore) -> u64) -> u64 {
        self.0.lcores.iter().map(of).sum()
    }

    /// A counter, by its name in the document, or a reason to refuse headers, over all lcores.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let known = |lcore: &Lcore| lcore.counters.contains_key(name);
        if self.0.lcores.iter().any(known) {
            return self.sum(|lcore| lcore.counters[name]);
        }
        self.rejected(name)
    }

    /// Headers refused for this reason.
    pub(crate) fn rejected(&self, reason: &str) -> u64 {
        self.sum(|lcore| lcore.rejects.get(reason).copied().unwrap_or(0))
    }

    /// All refused headers.
    pub(crate) fn refused(&self) -> u64 {
        self.sum(|lcore| lcore.rejects.values().sum())
    }

    /// What is in use.
    pub(crate) fn in_use(&self) -> InUse {
        let mut sum = InUse::new();
        for (name, value) in self.0.lcores.iter().flat_map(|lcore| &lcore.in_use) {
            *sum.entry(name.clone()).or_default() += value;
        }
        sum
    }

    /// Most memory ever given out, and the ceiling, of each lcore.
    pub(crate) fn peaks(&self) -> impl Iterator<Item = (u64, u64)> {
        let memory = self.0.lcores.iter().map(|lcore| lcore.memory);
        memory.map(|memory| (memory.peak_bytes, memory.ceiling_bytes))
    }
}
