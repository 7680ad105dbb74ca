//! Two ends, stepped one choice at a time until both have closed.
//!
//! A step hands over a completion, carries out posted work, or lets an upper layer do
//! something; after each, what must always hold is checked. A run ends when every RPC has
//! ended and both connections have closed: with nothing exposed, nothing outstanding, and all
//! memory back in its pool.

use crate::chance::Chance;
use crate::ledger::Ledger;
use crate::link::Link;
use crate::message::Rpc;
use crate::node::{Node, Submitted};
use crate::plan::Plan;
use bumpalo::Bump;
use rpcrdma_engine::phase::Phase;
use rpcrdma_engine::{CloseReason, Counters, Event};
use rpcrdma_wire::{Version, Xid};

/// Steps after which a run that has not ended never will.
const MOST_STEPS: u32 = 400_000;
/// Which end is which.
pub const CLIENT: usize = 0;
/// See [`CLIENT`].
pub const SERVER: usize = 1;

/// One thing that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Establish(usize),
    Execute(usize),
    Settle(usize),
    Receive(usize),
    Notice(usize),
    Resume(usize),
    Submit(usize),
    Answer(usize),
    Finish(usize),
    Feed(usize),
    Wake(usize),
    Leave,
    Reconnect,
}

/// Two ends and what joins them.
pub struct World<'m> {
    /// The connection.
    pub link: Link<'m>,
    /// The client and the server.
    pub nodes: [Node; 2],
    /// Every RPC.
    pub ledger: Ledger,
    chance: Chance,
    plan: Plan,
    rpcs_left: [u32; 2],
    reconnects_left: u32,
    /// Ends that are connected and were not told yet.
    untold: [bool; 2],
}

/// What a run was like, for those who want to know that it was worth it.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// RPCs answered, failed, cancelled.
    pub tally: [u64; 3],
    /// Of each end.
    pub counters: [Counters; 2],
    /// Why the client's last connection ended.
    pub lost: Option<CloseReason>,
    /// The version that was agreed on.
    pub version: Option<Version>,
}

/// Runs whatever `seed` says.
///
/// # Panics
///
/// When an engine breaks a promise.
#[must_use]
pub fn run(seed: u64) -> Summary {
    let mut chance = Chance::new(seed);
    let plan = Plan::any(&mut chance);
    run_plan(chance, plan)
}

/// Runs `plan` with the choices of `chance`.
#[must_use]
pub fn run_plan(chance: Chance, plan: Plan) -> Summary {
    let snapshots = Bump::new();
    let mut world = World::new(&snapshots, chance, plan);
    world.establish();
    world.run_to_the_end();
    world.check_end();
    Summary {
        tally: world.ledger.tally(),
        counters: [0, 1].map(|end| world.link.ends[end].counters.clone()),
        lost: world.nodes[CLIENT].lost,
        version: world.nodes[CLIENT].connection.version(),
    }
}

impl<'m> World<'m> {
    /// Two ends that are not connected yet.
    #[must_use]
    pub fn new(snapshots: &'m Bump, mut chance: Chance, plan: Plan) -> World<'m> {
        let link = Link::new(snapshots, &mut chance, plan.faults);
        let announced = plan.setups.iter().all(|setup| setup.properties);
        let policed = announced && plan.mischief.speak == 0;
        World {
            link,
            nodes: [CLIENT, SERVER].map(|end| Node::new(end, plan.setups[end])),
            ledger: Ledger::new(policed),
            chance,
            plan,
            rpcs_left: plan.rpcs,
            reconnects_left: plan.reconnects,
            untold: [false; 2],
        }
    }

    /// Both ends post their receives and are connected. Each is told in its own time: what the
    /// peer sends may be there before.
    pub fn establish(&mut self) {
        for end in [CLIENT, SERVER] {
            let desk = &mut self.link.desk(end);
            let adopted = self.nodes[end].connection.adopt(desk);
            assert_eq!(adopted, Ok(()), "no memory for the receives");
        }
        self.link.connect();
        self.untold = [true; 2];
    }

    fn tell_established(&mut self, end: usize) {
        self.untold[end] = false;
        let peer = Some(self.nodes[1 - end].setup.private_data());
        let desk = &mut self.link.desk(end);
        let event = self.nodes[end].connection.established(desk, peer);
        self.handle(end, event);
    }

    fn run_to_the_end(&mut self) {
        for _ in 0..MOST_STEPS {
            if self.is_over() {
                return;
            }
            self.make_mischief();
            let Some(step) = self.choose() else {
                panic!("nothing can happen any more: {}", self.describe());
            };
            self.take(step);
            self.check_invariants();
        }
        panic!("it never ends: {}", self.describe());
    }

    fn is_over(&self) -> bool {
        self.nodes.iter().all(|node| node.closed)
            && !self.may_reconnect()
            && self.nodes.iter().all(|node| node.calls_out() == 0)
    }

    fn may_reconnect(&self) -> bool {
        let client = &self.nodes[CLIENT];
        self.reconnects_left > 0 && client.setup.replay && client.calls_out() > 0
    }

    fn choose(&mut self) -> Option<Step> {
        let mut steps = Vec::new();
        for end in [CLIENT, SERVER] {
            self.choices_of(end, &mut steps);
        }
        if self.nodes.iter().all(|node| node.closed) {
            steps.push(if self.may_reconnect() {
                Step::Reconnect
            } else {
                Step::Leave
            });
        } else if steps.is_empty() && self.is_done() {
            steps.push(Step::Leave);
        }
        match steps.len() {
            0 => None,
            len => Some(steps[self.chance.index(len)]),
        }
    }

    fn choices_of(&self, end: usize, steps: &mut Vec<Step>) {
        let (node, device) = (&self.nodes[end], &self.link.ends[end]);
        let peer_is_ready = self.link.ends[1 - end].receives_posted() > 0;
        let mut choice = |step, possible| {
            if possible {
                steps.push(step);
            }
        };
        choice(Step::Establish(end), self.untold[end]);
        choice(
            Step::Execute(end),
            self.link.has_work(end) && (peer_is_ready || self.link.is_down()),
        );
        choice(Step::Settle(end), !device.finished.is_empty());
        choice(Step::Receive(end), !device.arrived.is_empty());
        choice(Step::Notice(end), device.notice);
        choice(Step::Resume(end), node.connection.runnable());
        choice(Step::Submit(end), self.may_submit(end));
        choice(Step::Answer(end), node.is_serving());
        choice(Step::Finish(end), node.is_reading());
        choice(Step::Feed(end), node.is_starved());
        let waits = device.starved && node.connection.waits_for_memory();
        choice(Step::Wake(end), waits);
    }

    fn may_submit(&self, end: usize) -> bool {
        let connection = &self.nodes[end].connection;
        self.rpcs_left[end] > 0
            && connection.can_submit()
            && (end == CLIENT || connection.phase() == Phase::Open)
            && !self.untold[end]
    }

    /// Nothing is left to do but to end it.
    fn is_done(&self) -> bool {
        let submitted = [CLIENT, SERVER].iter().all(|&end| {
            let over = self.nodes[end].connection.phase().is_over();
            self.rpcs_left[end] == 0 || over || !self.may_submit(end)
        });
        submitted && self.nodes.iter().all(|node| node.calls_out() == 0)
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Establish(end) => self.tell_established(end),
            Step::Execute(end) => {
                self.link.execute(end);
            }
            Step::Settle(end) => {
                let finished = self.link.ends[end].finished.pop_front();
                let finished = finished.expect("a completion");
                let desk = &mut self.link.desk(end);
                let connection = &mut self.nodes[end].connection;
                let event = connection.settle(desk, finished.work.id, finished.result);
                self.handle(end, event);
            }
            Step::Receive(end) => self.receive(end),
            Step::Notice(end) => {
                if self.link.take_notice(end) {
                    let desk = &mut self.link.desk(end);
                    let event = self.nodes[end].connection.disconnected(desk);
                    self.handle(end, event);
                }
            }
            Step::Resume(end) => {
                let event = self.nodes[end].connection.resume(&mut self.link.desk(end));
                self.handle(end, event);
            }
            Step::Submit(end) => self.submit(end),
            Step::Answer(end) => {
                let percent = self.plan.mischief.abandon_percent;
                let Self {
                    nodes,
                    link,
                    ledger,
                    chance,
                    ..
                } = self;
                nodes[end].answer_one(link, ledger, chance, percent);
            }
            Step::Finish(end) => {
                let Self {
                    nodes,
                    link,
                    ledger,
                    chance,
                    ..
                } = self;
                nodes[end].finish_one(link, ledger, chance);
            }
            Step::Feed(end) => {
                let Self {
                    nodes,
                    link,
                    ledger,
                    chance,
                    ..
                } = self;
                nodes[end].feed_one(link, ledger, chance);
            }
            Step::Wake(end) => {
                self.link.ends[end].starved = false;
                self.nodes[end].connection.wake();
            }
            Step::Leave => self.leave(),
            Step::Reconnect => self.reconnect(),
        }
    }

    fn receive(&mut self, end: usize) {
        let arrival = self.link.ends[end].arrived.pop_front().expect("an arrival");
        let desk = &mut self.link.desk(end);
        let connection = &mut self.nodes[end].connection;
        let event = match arrival.result {
            Ok((len, invalidated)) => connection.receive(desk, arrival.id, len, invalidated),
            Err(error) => connection.settle(desk, arrival.id, Err(error)),
        };
        self.handle(end, event);
    }

    /// What an engine says goes to its upper layer; then, mostly, the engine goes on.
    fn handle(&mut self, end: usize, event: Event) {
        let mut event = event;
        loop {
            self.nodes[end].handle(&mut self.link, &mut self.ledger, event);
            if !self.nodes[end].connection.runnable() || self.chance.one_in(6) {
                return;
            }
            event = self.nodes[end].connection.resume(&mut self.link.desk(end));
        }
    }

    fn submit(&mut self, end: usize) {
        // Some have the numbers that our own control messages begin with (V2-18).
        let xid = match self.chance.one_in(4) {
            true => Xid(0x5052_0001 + self.chance.below(64)),
            false => Xid(self.chance.word()),
        };
        let rpc = Rpc::any(&mut self.chance, xid, self.plan.sizes[end]);
        let submitted = self.nodes[end].submit(&mut self.link, &mut self.ledger, xid, rpc);
        if submitted != Submitted::NotNow {
            self.rpcs_left[end] -= 1;
        }
        // The only Calls of a client that can never be sent are those of too many segments.
        let cut_up = self.nodes[end].setup.segment_bytes < 1 << 20;
        assert!(end == SERVER || cut_up || submitted != Submitted::Never);
    }

    fn make_mischief(&mut self) {
        let mischief = self.plan.mischief;
        let end = self.chance.index(2);
        let chance = &mut self.chance;
        if chance.one_in(mischief.cancel) {
            self.nodes[end].cancel_one(&mut self.link, &mut self.ledger, chance);
        }
        if chance.one_in(mischief.speak) {
            self.nodes[end].speak(&mut self.link, chance);
        }
        if chance.one_in(mischief.tick) {
            self.nodes[end].connection.tick(&mut self.link.desk(end));
        }
        if chance.one_in(mischief.sever) {
            self.link.sever();
        }
        let connection = &mut self.nodes[end].connection;
        if chance.one_in(mischief.close) {
            connection.close(&mut self.link.desk(end), CloseReason::Local);
        }
        if chance.one_in(mischief.drain) {
            connection.drain(&mut self.link.desk(end));
        }
    }

    /// Ends the run: in order, or by cancelling what is queued for a connection that never comes.
    fn leave(&mut self) {
        for end in [CLIENT, SERVER] {
            if self.nodes[end].closed {
                self.nodes[end].cancel_all(&mut self.link, &mut self.ledger);
            } else if self.chance.one_in(2) {
                let event = self.nodes[end].connection.drain(&mut self.link.desk(end));
                self.handle(end, event);
            }
        }
    }

    fn reconnect(&mut self) {
        self.reconnects_left -= 1;
        self.link.renew();
        self.ledger.reconnect();
        self.nodes[CLIENT].renew(true);
        self.nodes[SERVER].renew(false);
        self.establish();
    }

    fn check_invariants(&self) {
        for node in &self.nodes {
            let (used, granted) = node.connection.requester_credits();
            assert!(used <= granted, "{used} Calls in flight, {granted} granted");
            let (serving, grant) = node.connection.responder_credits();
            assert!(serving <= grant, "{serving} Calls served, {grant} granted");
            let talks = self.plan.setups[0].properties || self.plan.mischief.speak > 0;
            let missed = self.link.ends[node.end].not_ready;
            assert!(
                talks || missed == 0,
                "no receive for a message within the grant"
            );
        }
    }

    fn check_end(&self) {
        self.ledger.check_all_ended();
        for end in &self.link.ends {
            assert_eq!(end.memory.blocks(), 0, "memory has not come back");
            assert_eq!(end.exposures(), 0, "exposures were left behind");
        }
    }

    fn describe(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            let device = &self.link.ends[node.end];
            text += &format!(
                "\nend {}: phase {:?}, version {:?}, lost {:?}, calls {}, duties {}, requester {:?}, responder {:?}, \
                 runnable {}, waits {}, starved {}, queue {}, finished {}, arrived {}, receives {}, rpcs left {}",
                node.end,
                node.connection.phase(),
                node.connection.version(),
                node.lost,
                node.calls_out(),
                node.has_duties(),
                node.connection.requester_credits(),
                node.connection.responder_credits(),
                node.connection.runnable(),
                node.connection.waits_for_memory(),
                device.starved,
                device.queue.len(),
                device.finished.len(),
                device.arrived.len(),
                device.receives_posted(),
                self.rpcs_left[node.end],
            );
            let counters = device.counters.named();
            for (name, _, count) in counters.filter(|(_, _, count)| *count > 0) {
                text += &format!(", {name} {count}");
            }
        }
        text
    }
}
