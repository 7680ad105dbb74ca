//! From the plan's words to those of the engine and the upper layers.

use rpcrdma_config::budget::AROUND_BYTES;
use rpcrdma_config::plan::{self, Transport, VersionMax};
use rpcrdma_engine::{Setup, Side};
use rpcrdma_fabric::pool;
use rpcrdma_upper::back::BackSettings;
use rpcrdma_upper::front::{BackendId, FrontSettings, Routes};
use rpcrdma_wire::property::BackwardRequests;
use rpcrdma_wire::{Limits, Version};
use std::sync::Arc;

/// How a connection is to behave that is granted so many credits.
pub(super) fn engine(transport: &Transport, credits: u16, side: Side) -> Setup {
    Setup {
        version_max: version(transport.version_max),
        credits,
        backward_credits: transport.backward_credits,
        receive_bytes: transport.inline_bytes_max,
        announced_bytes: transport.inline_bytes,
        limits: limits(transport),
        properties: transport.properties.enabled,
        backward: backward(transport.backward),
        remote_invalidate: transport.remote_invalidate,
        replay: false,
        updates_per_tick: transport.properties.updates_per_second,
        kept_ticks: u32::try_from(transport.kept_replies.age.as_secs()).unwrap_or(u32::MAX),
        kept_bytes: transport.kept_replies.bytes,
        ..Setup::new(side)
    }
}

/// The highest version of an endpoint.
pub(super) fn version(max: VersionMax) -> Version {
    match max {
        VersionMax::One => Version::One,
        VersionMax::Two => Version::Two,
    }
}

fn backward(backward: plan::Backward) -> BackwardRequests {
    match backward {
        plan::Backward::None => BackwardRequests::None,
        plan::Backward::Inline => BackwardRequests::Inline,
        plan::Backward::General => BackwardRequests::General,
    }
}

fn limits(transport: &Transport) -> Limits {
    Limits {
        read_segments: transport.limits.read_segments,
        write_chunks: transport.limits.write_chunks,
        chunk_segments: transport.limits.chunk_segments,
        call_bytes: transport.limits.call_bytes,
        reply_bytes: transport.limits.reply_bytes,
        properties: transport.properties.values_max,
        property_bytes: transport.properties.value_bytes_max,
    }
}

/// How a front treats its connections.
pub(super) fn front(front: &plan::Front) -> FrontSettings {
    let numbered = || front.backends.iter().zip((0..).map(BackendId));
    let listed = numbered().flat_map(|(backend, id)| {
        let programs = match &backend.programs {
            plan::Programs::Listed(programs) => programs.as_slice(),
            plan::Programs::Others => &[],
        };
        programs.iter().map(move |&program| (program, id))
    });
    let others = numbered()
        .find(|(backend, _)| backend.programs == plan::Programs::Others)
        .map(|(_, id)| id);
    FrontSettings {
        routes: Arc::new(Routes::new(listed, others)),
        slots: front.transport.credits,
        reply_bytes: record_bytes(front.transport.limits.reply_bytes),
    }
}

/// How a back treats its connections.
pub(super) fn back(back: &plan::Back, credits: u16) -> BackSettings {
    let limits = back.transport.limits;
    BackSettings {
        slots: credits,
        call_bytes: limits.call_bytes.min(pool::LONGEST),
        result_bytes: limits.reply_bytes.min(pool::LONGEST),
        reply_bytes: record_bytes(limits.reply_bytes),
        unbound_reply_bytes: back.transport.unbound_reply_bytes,
    }
}

/// The longest record, with what stands around its payload, that one span can hold.
fn record_bytes(payload: u32) -> u32 {
    payload.saturating_add(AROUND_BYTES).min(pool::LONGEST)
}
