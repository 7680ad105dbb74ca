//! The lcores: arena, port, loop and thread of each.

use anyhow::{Context, Result, bail};
use rpcrdma_config::Plan;
use rpcrdma_config::budget::SOURCE_BYTES;
use rpcrdma_config::plan;
use rpcrdma_fabric::Port;
use rpcrdma_fabric::Span;
use rpcrdma_fabric::arena::{Arena, Hugepages, Pages};
use rpcrdma_fabric::connect::PortId;
use rpcrdma_lcore::{
    Bell, Idle, Lcore, Line, Places, Regions, Running, SeatId, SeatOrder, Shares, line, spawn,
    stock,
};
use rpcrdma_memory::{MemoryFabric, MemoryPort, Settings};
use rpcrdma_upper::program::fill_source;
use rpcrdma_upper::role::Role;
use std::collections::VecDeque;
use std::sync::Arc;

/// The queue pairs' type of the fabric in use.
pub(super) type Endpoint = <MemoryPort as Port>::Endpoint;

/// One lcore, as the control thread sees it.
pub(super) struct Core {
    /// The processor it is pinned to.
    pub(super) processor: usize,
    /// Its port.
    pub(super) port: PortId,
    /// The rings to and from it.
    pub(super) line: Line<Endpoint, Role>,
    /// Its thread.
    pub(super) running: Running,
    /// What the built-in program reads from; empty without a service.
    pub(super) source: Span,
    /// Its arena is in huge pages.
    pub(super) hugepages: bool,
    /// Orders for which its ring had no room.
    waiting: VecDeque<(SeatId, SeatOrder<Role>)>,
}

impl Core {
    /// Tells one connection, now or as soon as the ring has room.
    pub(super) fn tell(&mut self, seat: SeatId, order: SeatOrder<Role>) {
        self.waiting.push_back((seat, order));
        self.flush();
    }

    /// Passes on what waits, as far as the ring has room.
    pub(super) fn flush(&mut self) {
        while let Some((seat, order)) = self.waiting.pop_front() {
            if let Err(order) = self.line.tell(seat, order) {
                self.waiting.push_front((seat, order));
                return;
            }
        }
    }

    /// Orders wait for room.
    pub(super) fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// Starts every lcore of the plan.
pub(super) fn start(plan: &Plan, fabric: &MemoryFabric, bell: &Arc<Bell>) -> Result<Vec<Core>> {
    // Read once: a pinned thread sees its own processor alone.
    let present = core_affinity::get_core_ids().unwrap_or_default();
    let mut cores = Vec::with_capacity(plan.runtime.lcores.len());
    for (index, &processor) in plan.runtime.lcores.iter().enumerate() {
        let Some(&core) = present.iter().find(|core| core.id == processor) else {
            bail!("lcore {index}: this process may not use processor {processor}");
        };
        let started = start_one(plan, fabric, bell, index, core)
            .with_context(|| format!("lcore {index} on processor {processor}"))?;
        cores.push(started);
    }
    Ok(cores)
}

fn start_one(
    plan: &Plan,
    fabric: &MemoryFabric,
    bell: &Arc<Bell>,
    index: usize,
    core: core_affinity::CoreId,
) -> Result<Core> {
    let runtime = &plan.runtime;
    let arena = Arena::map(runtime.memory_bytes, hugepages(runtime.hugepages))
        .with_context(|| format!("mapping {} octets of memory", runtime.memory_bytes))?;
    let arena = Arc::new(arena);
    let hugepages = arena.pages() != Pages::Ordinary;
    let mut regions = Regions::new(runtime.memory_bytes, shares(plan));
    let source = match plan.services.is_empty() {
        true => Span::default(),
        false => stock(regions.shared(), &arena, SOURCE_BYTES, fill_source)
            .context("no memory for what the built-in program reads from")?,
    };
    let (port_id, port) = fabric.open_port(Arc::clone(&arena), &port_settings(plan))?;
    let places = Places {
        seats: runtime.connections_max as usize,
        ..Places::default()
    };
    let (line, link) = line(places, Arc::clone(bell))?;
    let idle = match runtime.idle {
        plan::Idle::Spin => Idle::Spin,
        plan::Idle::Adaptive { spin } => Idle::Adaptive { spin },
    };
    let make = move || Lcore::new(link, port, arena, regions, idle);
    let running = spawn(Some(core), format!("lcore-{index}"), Arc::clone(bell), make)?;
    Ok(Core {
        processor: core.id,
        port: port_id,
        line,
        running,
        source,
        hugepages,
        waiting: VecDeque::new(),
    })
}

/// What is set aside of an lcore's memory.
fn shares(plan: &Plan) -> Shares {
    Shares {
        receives: plan.budget.receives_bytes,
        call: plan.budget.call_share_bytes,
        reply: plan.budget.reply_share_bytes,
    }
}

fn hugepages(wanted: plan::Hugepages) -> Hugepages {
    match wanted {
        plan::Hugepages::Try => Hugepages::Try,
        plan::Hugepages::Require => Hugepages::Require,
        plan::Hugepages::Off => Hugepages::Off,
    }
}

/// A port that is large enough for every connection the plan allows.
fn port_settings(plan: &Plan) -> Settings {
    let transports = plan
        .fronts
        .iter()
        .map(|front| &front.transport)
        .chain(plan.backs.iter().map(|back| &back.transport))
        .chain(plan.services.iter().map(|service| &service.transport));
    let receives = |transport: &plan::Transport| {
        u32::from(transport.credits) + u32::from(transport.backward_credits) + 2
    };
    let receive_depth = transports.clone().map(receives).max().unwrap_or(1);
    let message_bytes = transports.map(|transport| transport.inline_bytes).max();
    let connections = plan.runtime.connections_max;
    // Two exposures for each Call in flight: a result and a Reply, or an argument and a Reply.
    let windows = connections.saturating_mul(receive_depth).saturating_mul(2);
    let default = Settings::default();
    Settings {
        queue_pairs: connections,
        receive_depth,
        windows: windows.clamp(default.windows, 1 << 18),
        message_bytes: message_bytes.unwrap_or(4096).max(4096),
        ..default
    }
}
