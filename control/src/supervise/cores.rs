//! The lcores: arena, port, loop and thread of each.

use super::grants::Grants;
use super::placement;
use crate::dpdk::Memory;
use anyhow::{Context, Result, bail};
use core_affinity::CoreId;
use rpcrdma_config::Plan;
use rpcrdma_config::budget::{CONTROL_RECEIVES, SOURCE_BYTES};
use rpcrdma_config::plan;
use rpcrdma_fabric::arena::{Arena, Pages};
use rpcrdma_fabric::connect::{Device, Fabric, PortId, PortWanted};
use rpcrdma_fabric::{Exposure, Port, Span};
use rpcrdma_lcore::{
    Bell, Idle, Lcore, Line, Places, Regions, Running, SeatId, SeatOrder, Shares, line, spawn,
    stock,
};
use rpcrdma_upper::program::fill_source;
use rpcrdma_upper::role::Role;
use std::collections::VecDeque;
use std::sync::Arc;
use tracing::warn;

/// The plan's budget counts what the built-in program promises.
const _: () = assert!(SOURCE_BYTES == rpcrdma_upper::program::SOURCE_BYTES);

/// A queue pair of the fabric in use, on its way to an lcore.
pub(super) type Endpoint<F> = <<F as Fabric>::Port as Port>::Endpoint;

/// Exposures of a port at the same time. Each is made at start, by a call of the device; whoever
/// finds none free waits for one.
const WINDOWS_LEAST: u32 = 1024;
const WINDOWS_MOST: u32 = 1 << 14;
/// The longest message that every port takes: what version two begins with.
const MESSAGE_LEAST_BYTES: u32 = 4096;

/// One lcore, as the control thread sees it.
pub(super) struct Core<F: Fabric> {
    /// The processor it is pinned to.
    pub(super) processor: usize,
    /// Its port.
    pub(super) port: PortId,
    /// Queue pairs that the port has room for.
    pub(super) queue_pairs: u32,
    /// What stands behind the handles that it gives to peers.
    pub(super) exposure: Exposure,
    /// The device that the port is on.
    pub(super) device: String,
    /// The rings to and from it.
    pub(super) line: Line<Endpoint<F>, Role>,
    /// Its thread.
    pub(super) running: Running,
    /// Its memory, to be used again should it have to end before the appliance does.
    pub(super) arena: Arc<Arena>,
    /// What the built-in program reads from; empty without a service.
    pub(super) source: Span,
    /// What its connections were given of its receives.
    pub(super) grants: Grants,
    /// Its arena is in huge pages.
    pub(super) hugepages: bool,
    /// Its device is gone.
    pub(super) gone: Option<Gone>,
    /// Orders for which its ring had no room.
    waiting: VecDeque<(SeatId, SeatOrder<Role>)>,
}

/// How far an lcore whose device is gone has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// It has not been told to end yet.
    Unheard,
    /// It ends.
    Told,
}

impl<F: Fabric> Core<F> {
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

/// What makes lcores.
pub(super) struct Foundry {
    /// The processors of this process, read once: a pinned thread sees its own alone.
    present: Vec<CoreId>,
    bell: Arc<Bell>,
}

impl Foundry {
    pub(super) fn new(bell: &Arc<Bell>) -> Self {
        Self {
            present: core_affinity::get_core_ids().unwrap_or_default(),
            bell: Arc::clone(bell),
        }
    }

    /// Starts every lcore of the plan.
    pub(super) fn start_all<F: Fabric>(
        &self,
        plan: &Plan,
        fabric: &mut F,
        devices: &[Device],
    ) -> Result<Vec<Core<F>>> {
        let lcores = &plan.runtime.lcores;
        let placed = placement::place(devices, lcores)?;
        for device in placement::unpolled(devices, &placed) {
            warn!(
                "device {device}: no lcore polls it, so connections that come by it are refused; \
                 give runtime.lcores a processor for each device, or name those to use in \
                 verbs.devices"
            );
        }
        let mut memory = Memory::of(plan, placement::node_of)?;
        let mut cores = Vec::with_capacity(lcores.len());
        for ((index, &processor), device) in lcores.iter().enumerate().zip(placed) {
            let arena = memory.arena(processor);
            let arena = arena.with_context(|| format!("lcore {index} on processor {processor}"))?;
            cores.push(self.start(plan, fabric, index, device, Arc::new(arena))?);
        }
        Ok(cores)
    }

    /// Starts one, on this device and with this memory, which nobody else uses.
    pub(super) fn start<F: Fabric>(
        &self,
        plan: &Plan,
        fabric: &mut F,
        index: usize,
        device: String,
        arena: Arc<Arena>,
    ) -> Result<Core<F>> {
        let processor = plan.runtime.lcores[index];
        let Some(&core) = self.present.iter().find(|core| core.id == processor) else {
            bail!("lcore {index}: this process may not use processor {processor}");
        };
        let on = format!("lcore {index} on processor {processor}, device {device}");
        start(plan, fabric, &self.bell, index, core, device, arena).context(on)
    }
}

fn start<F: Fabric>(
    plan: &Plan,
    fabric: &mut F,
    bell: &Arc<Bell>,
    index: usize,
    core: CoreId,
    device: String,
    arena: Arc<Arena>,
) -> Result<Core<F>> {
    let runtime = &plan.runtime;
    let hugepages = arena.pages() != Pages::Ordinary;
    let mut regions = Regions::new(runtime.memory_bytes, shares(plan));
    let source = match plan.services.is_empty() {
        true => Span::default(),
        false => stock(regions.shared(), &arena, SOURCE_BYTES, fill_source)
            .context("no memory for what the built-in program reads from")?,
    };
    let wanted = port_wanted(plan, &device, core.id);
    let (port_id, port) = fabric.open_port(Arc::clone(&arena), &wanted)?;
    let (queue_pairs, exposure) = (port.capabilities().queue_pairs, port.exposure());
    let places = Places {
        seats: runtime.connections_max as usize,
        ..Places::default()
    };
    let (line, link) = line(places, Arc::clone(bell))?;
    let idle = match runtime.idle {
        plan::Idle::Spin => Idle::Spin,
        plan::Idle::Adaptive { spin } => Idle::Adaptive { spin },
    };
    let memory = Arc::clone(&arena);
    let make = move || Lcore::new(link, port, memory, regions, idle);
    let running = spawn(Some(core), format!("lcore-{index}"), Arc::clone(bell), make)?;
    Ok(Core {
        processor: core.id,
        port: port_id,
        queue_pairs,
        exposure,
        device,
        line,
        running,
        arena,
        source,
        grants: Grants::new(&plan.budget),
        hugepages,
        gone: None,
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

/// A port that is large enough for every connection the plan allows.
fn port_wanted(plan: &Plan, device: &str, processor: usize) -> PortWanted {
    let receives = |transport: &plan::Transport| {
        u32::from(transport.credits) + u32::from(transport.backward_credits) + CONTROL_RECEIVES
    };
    let receive_depth = plan.transports().map(receives).max().unwrap_or(1);
    let inline_bytes = plan
        .transports()
        .map(|transport| transport.inline_bytes_max);
    let connections = plan.runtime.connections_max;
    // Two exposures for each Call in flight: a result and a Reply, or an argument and a Reply. Who
    // serves Calls exposes nothing but for Calls backward.
    let windows = match plan.backs.is_empty() {
        true => WINDOWS_LEAST,
        false => connections.saturating_mul(receive_depth).saturating_mul(2),
    };
    PortWanted {
        device: Some(device.to_owned()),
        processor: Some(processor),
        queue_pairs: connections,
        send_depth: send_depth(receive_depth),
        receive_depth,
        windows: windows.clamp(WINDOWS_LEAST, WINDOWS_MOST),
        message_bytes: inline_bytes.max().unwrap_or(0).max(MESSAGE_LEAST_BYTES),
    }
}

/// Send-queue entries of a connection that has so many receives. A Call in flight takes a Send,
/// two exposures and their ends, or a Read or Write or two; what finds no entry waits for one.
fn send_depth(receive_depth: u32) -> u32 {
    (4 * receive_depth).clamp(64, 1024)
}
