//! What a run is made of, drawn from its seed.

use crate::chance::Chance;
use crate::device::Faults;
use crate::message::Sizes;
use rpcrdma_engine::{Setup, Side};
use rpcrdma_wire::{BackwardRequests, Limits, Version};

/// Things that happen besides RPCs, each once in so many steps; zero is never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mischief {
    /// A Call is cancelled.
    pub cancel: u32,
    /// The connection is lost.
    pub sever: u32,
    /// An end closes it.
    pub close: u32,
    /// An end drains it.
    pub drain: u32,
    /// An end speaks of properties.
    pub speak: u32,
    /// Time passes.
    pub tick: u32,
    /// Of a hundred Calls, so many are given up by the service.
    pub abandon_percent: u32,
}

/// A run: two ends, what they do to each other, and what is done to them.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The client's and the server's.
    pub setups: [Setup; 2],
    /// Of their devices.
    pub faults: [Faults; 2],
    /// Of the RPCs in each direction.
    pub sizes: [Sizes; 2],
    /// RPCs of the forward and of the backward direction.
    pub rpcs: [u32; 2],
    /// What else happens.
    pub mischief: Mischief,
    /// Connections after the first one, to replay on.
    pub reconnects: u32,
}

impl Plan {
    /// Two well-behaved ends of these setups, and a device that always has room.
    #[must_use]
    pub fn quiet(setups: [Setup; 2], rpcs: [u32; 2]) -> Plan {
        let forward = Sizes {
            plain: 3000,
            item: 9000,
            short_percent: 40,
            small_percent: 0,
        };
        let backward = Sizes {
            short_percent: 70,
            ..forward
        };
        Plan {
            setups,
            faults: [Faults::default(); 2],
            sizes: [forward, backward],
            rpcs,
            mischief: Mischief::default(),
            reconnects: 0,
        }
    }

    /// Anything.
    #[must_use]
    pub fn any(chance: &mut Chance) -> Plan {
        let credits = u16::try_from(chance.pick(&[1, 2, 5, 16])).expect("small");
        let backward_credits = u16::try_from(chance.below(4)).expect("small");
        let replay = chance.one_in(4);
        let setups = [Side::Client, Side::Server].map(|side| {
            let setup = any_setup(chance, side, credits, backward_credits);
            Setup {
                replay: replay && side == Side::Client,
                ..setup
            }
        });
        let rpcs = [
            chance.between(5, 60),
            chance.below(20) * u32::from(backward_credits.min(1)),
        ];
        let mut plan = Plan::quiet(setups, rpcs);
        plan.sizes[0].small_percent = chance.pick(&[0, 0, 10, 40]);
        plan.sizes[0].item = chance.pick(&[100, 2000, 20_000]);
        plan.sizes[0].plain = chance.pick(&[100, 2000, 9000]);
        plan.faults = plan.faults.map(|faults| Faults {
            pending_percent: chance.pick(&[0, 50, 100]),
            busy_one_in: chance.pick(&[0, 0, 40, 7]),
            windows: chance.pick(&[24, 60, 1 << 10]),
            memory_bytes: chance.pick(&[1 << 20, 4 << 20]),
            ..faults
        });
        let trouble = chance.one_in(2);
        let mut rare = |of: &[u32]| if trouble { chance.pick(of) } else { 0 };
        plan.mischief = Mischief {
            cancel: rare(&[0, 20, 200]),
            sever: rare(&[0, 0, 300, 2000]),
            close: rare(&[0, 0, 1000]),
            drain: rare(&[0, 0, 500]),
            speak: rare(&[0, 30, 300]),
            tick: rare(&[0, 10, 100]),
            abandon_percent: rare(&[0, 0, 10]),
        };
        plan.reconnects = if replay { 3 } else { 0 };
        plan
    }
}

fn any_setup(chance: &mut Chance, side: Side, credits: u16, backward_credits: u16) -> Setup {
    let levels = [
        BackwardRequests::None,
        BackwardRequests::Inline,
        BackwardRequests::Inline,
        BackwardRequests::General,
    ];
    let version_max = match chance.one_in(4) {
        true => Version::One,
        false => Version::Two,
    };
    let receive_bytes = chance.pick(&[4096, 4096, 8192]);
    Setup {
        version_max,
        credits,
        backward_credits,
        receive_bytes,
        announced_bytes: chance.pick(&[4096, receive_bytes]),
        properties: !chance.one_in(3),
        backward: chance.pick(&levels),
        remote_invalidate: chance.one_in(2),
        segment_bytes: chance.pick(&[1 << 30, 5000, 2500]),
        // As many as an engine ever makes.
        limits: Limits {
            read_segments: 24,
            chunk_segments: 24,
            ..Limits::default()
        },
        kept_bytes: chance.pick(&[0, 30_000, 8 << 20]),
        kept_ticks: 3,
        ..Setup::new(side)
    }
}
