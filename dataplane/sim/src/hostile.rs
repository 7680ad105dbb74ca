//! Runs of one engine against a [`Fiend`]: it may do anything, and the engine must neither
//! panic, nor hang, nor leak, nor hand up memory that can still be written.

use crate::chance::Chance;
use crate::device::Faults;
use crate::fiend::{Fiend, Manners};
use crate::link::Link;
use crate::victim::Victim;
use bumpalo::Bump;
use rpcrdma_engine::{CloseReason, Counters, Event, Setup, Side};
use rpcrdma_wire::{BackwardRequests, Version};

const ENGINE: usize = 0;
const FIEND: usize = 1;
/// Steps of a run, before the connection is closed.
const STEPS: u32 = 3000;
/// Steps in which a closed connection must have come apart.
const LAST_STEPS: u32 = 20_000;

/// What a run was like.
#[derive(Debug)]
pub struct Summary {
    /// Of the engine.
    pub counters: Counters,
    /// Why the connection ended.
    pub lost: Option<CloseReason>,
}

struct Siege<'m> {
    link: Link<'m>,
    victim: Victim,
    fiend: Fiend,
    chance: Chance,
}

/// Runs whatever `seed` says.
///
/// # Panics
///
/// When the engine breaks a promise.
#[must_use]
pub fn run(seed: u64) -> Summary {
    let snapshots = Bump::new();
    let mut chance = Chance::new(seed ^ 0x5eed);
    let faults = Faults {
        pending_percent: chance.pick(&[0, 50, 100]),
        busy_one_in: chance.pick(&[0, 0, 20]),
        windows: chance.pick(&[24, 1000]),
        hostile_peer: true,
        ..Faults::default()
    };
    let peer_faults = Faults {
        memory_bytes: 16 << 20,
        ..Faults::default()
    };
    let link = Link::new(&snapshots, &mut chance, [faults, peer_faults]);
    let setup = any_setup(&mut chance);
    let calls = match setup.side {
        Side::Server => setup.credits,
        Side::Client => setup.backward_credits,
    };
    let manners = Manners {
        percent: chance.pick(&[0, 80, 95, 99]),
        version: match chance.one_in(8) {
            true => Version::One,
            false => setup.version_max,
        },
        credits: calls.into(),
    };
    let mut siege = Siege {
        link,
        victim: Victim::new(ENGINE, setup),
        fiend: Fiend::new(FIEND, manners),
        chance,
    };
    siege.connect(setup);
    for _ in 0..STEPS {
        if siege.victim.closed {
            break;
        }
        siege.step();
    }
    siege.close();
    Summary {
        counters: siege.link.ends[ENGINE].counters.clone(),
        lost: siege.victim.lost,
    }
}

fn any_setup(chance: &mut Chance) -> Setup {
    let side = chance.pick(&[Side::Client, Side::Server]);
    let levels = [
        BackwardRequests::None,
        BackwardRequests::Inline,
        BackwardRequests::General,
    ];
    Setup {
        version_max: chance.pick(&[Version::One, Version::Two, Version::Two]),
        credits: u16::try_from(chance.pick(&[1, 4, 16])).expect("small"),
        backward_credits: u16::try_from(chance.below(3)).expect("small"),
        properties: chance.one_in(2),
        backward: chance.pick(&levels),
        remote_invalidate: !chance.one_in(3),
        segment_bytes: chance.pick(&[1 << 30, 1000]),
        kept_bytes: chance.pick(&[4000, 1 << 20]),
        kept_ticks: 2,
        ..Setup::new(side)
    }
}

impl Siege<'_> {
    fn connect(&mut self, setup: Setup) {
        let adopted = self.victim.connection.adopt(&mut self.link.desk(ENGINE));
        assert_eq!(adopted, Ok(()));
        self.link.connect();
        self.fiend.settle_in(&mut self.link);
        let private = self.chance.one_in(2).then(|| setup.private_data());
        let desk = &mut self.link.desk(ENGINE);
        let event = self.victim.connection.established(desk, private);
        self.handle(event);
    }

    fn handle(&mut self, event: Event) {
        let mut event = event;
        loop {
            self.victim.handle(&mut self.link, event);
            if !self.victim.connection.runnable() || self.chance.one_in(6) {
                break;
            }
            let desk = &mut self.link.desk(ENGINE);
            event = self.victim.connection.resume(desk);
        }
        let (serving, grant) = self.victim.connection.responder_credits();
        assert!(serving <= grant, "{serving} Calls served, {grant} granted");
    }

    fn step(&mut self) {
        match self.chance.below(12) {
            0 => self.fiend.act(&mut self.link, &mut self.chance),
            1 => self.victim.act(&mut self.link, &mut self.chance),
            2 if self.chance.one_in(400) => self.link.sever(),
            _ => self.go_on(),
        }
    }

    /// Something that goes on by itself.
    fn go_on(&mut self) {
        match self.chance.below(9) {
            0 => drop(self.link.execute(ENGINE)),
            1 => drop(self.link.execute(FIEND)),
            2 => self.settle(),
            3 | 4 => self.receive(),
            5 => self.fiend.hear(&mut self.link),
            6 => self.link.ends[FIEND].finished.clear(),
            7 => self.notice(),
            _ => self.resume(),
        }
    }

    fn settle(&mut self) {
        if let Some(finished) = self.link.ends[ENGINE].finished.pop_front() {
            let desk = &mut self.link.desk(ENGINE);
            let connection = &mut self.victim.connection;
            let event = connection.settle(desk, finished.work.id, finished.result);
            self.handle(event);
        }
    }

    fn receive(&mut self) {
        if let Some(arrival) = self.link.ends[ENGINE].arrived.pop_front() {
            let desk = &mut self.link.desk(ENGINE);
            let connection = &mut self.victim.connection;
            let event = match arrival.result {
                Ok((len, handle)) => connection.receive(desk, arrival.id, len, handle),
                Err(error) => connection.settle(desk, arrival.id, Err(error)),
            };
            self.handle(event);
        }
    }

    fn notice(&mut self) {
        if self.link.take_notice(ENGINE) {
            let desk = &mut self.link.desk(ENGINE);
            let event = self.victim.connection.disconnected(desk);
            self.handle(event);
        }
    }

    fn resume(&mut self) {
        let device = &mut self.link.ends[ENGINE];
        if std::mem::take(&mut device.starved) && self.victim.connection.waits_for_memory() {
            self.victim.connection.wake();
        }
        if self.victim.connection.runnable() {
            let event = self.victim.connection.resume(&mut self.link.desk(ENGINE));
            self.handle(event);
        }
    }

    /// Everything comes back, whatever the peer has left behind.
    fn close(&mut self) {
        let desk = &mut self.link.desk(ENGINE);
        let event = self.victim.connection.close(desk, CloseReason::Local);
        self.handle(event);
        for _ in 0..LAST_STEPS {
            if self.victim.closed {
                break;
            }
            self.go_on();
            self.victim.read_all(&mut self.link);
        }
        assert!(self.victim.closed, "it never closes");
        assert_eq!(self.victim.calls_out(), 0, "a Call came to no end");
        self.link.take_notice(FIEND);
        self.link.ends[FIEND].break_down();
        self.fiend.clean_up(&mut self.link);
        let device = &self.link.ends[ENGINE];
        assert_eq!(device.memory.blocks(), 0, "memory has not come back");
        assert_eq!(device.exposures(), 0, "exposures were left behind");
        assert_eq!(self.link.ends[FIEND].memory.blocks(), 0);
    }
}
