//! Memory arithmetic, all of it, checked.
//!
//! Each lcore has one arena of `memory_mib`. What lies there:
//!
//! ```text
//! receives of a connection    = credits + backward_credits + 2
//!     one for each Call or Reply that may arrive, forward and backward; one beyond the grant
//!     for control messages (V2-13), and one that is being refilled while its message is read
//! octets of a connection      = receives x pooled(inline_bytes_max)
//!     at most, with all its credits; at least, with credits_min of them
//! octets of all connections   = connections_max x the dearest endpoint's octets of a connection,
//!     with all credits where the memory allows; where it does not, what it allows (3 of 4 parts
//!     of what the lines below leave), but enough for credits_min on every connection
//! for Calls served            = block(call_bytes) + block(reply_bytes and 64 KiB around it)
//!     where there is a front or a service: one longest Call and its Reply, set aside, so that
//!     what is served can always go on
//! for Calls made, at least    = the same
//!     where there is a back: so that each of its Calls finds memory once those before are over
//! for the built-in program    = 1 MiB that it reads from, where there is a service
//! ------------------------------------------------------------------------------------------
//! their sum must not exceed memory_mib; the rest is shared by longer Calls and Replies
//!
//! registered memory, in total = lcores x memory_mib
//! RLIMIT_MEMLOCK              = that, where a fabric pins memory; the memory fabric does not
//! ```
//!
//! `pooled(n)` is what `n` octets cost in the pool, which cuts blocks of 256 octets times a
//! power of two, and above 64 KiB uses them in eighths. `block(n)` is a whole block: to be sure
//! of `n` octets there has to be one.
//!
//! Not in the arena, but on the heap and preallocated too: the engine's slots, reckoned at
//! [`SLOT_BYTES`] for each credit of either direction.

use crate::plan::{Fabric, Limits, Plan, Transport};

/// Receives of a connection beyond those its credits need.
pub const CONTROL_RECEIVES: u32 = 2;
/// Heap octets reckoned for each slot of a connection: the call's own state, its posted
/// receives, its share of the completion tables.
pub const SLOT_BYTES: u64 = 512;
/// Octets of an RPC message around its payload: heads, credentials, file handles.
pub const AROUND_BYTES: u32 = 64 << 10;
/// Octets that the built-in program's READ can give.
pub const SOURCE_BYTES: u32 = 1 << 20;
/// Octets in a mebibyte.
pub const MIB: u64 = 1 << 20;

/// Smallest block of the pool, octets.
const GRAIN: u64 = 256;
/// Up to here a length costs one block, above in eighths of one.
const WHOLE: u64 = 64 << 10;

/// What the plan costs in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// How many lcores.
    pub lcores: u64,
    /// Connections that one lcore takes.
    pub connections_max: u32,
    /// The arena of one lcore, octets: the ceiling.
    pub memory_bytes: u64,
    /// Cost of a connection of each endpoint, in the order fronts, backs, services.
    pub endpoints: Vec<Cost>,
    /// Set aside for receives, octets: what `connections_max` connections of the dearest
    /// endpoint take, with all their credits where the memory allows.
    pub receives_bytes: u64,
    /// What they would take with all their credits, octets.
    pub full_bytes: u64,
    /// What they take at the least, octets.
    pub least_bytes: u64,
    /// Of each lcore's memory, set aside for one longest Call that is served, octets.
    pub call_share_bytes: u64,
    /// The same for the Reply to one.
    pub reply_share_bytes: u64,
    /// The least that must be left for Calls and Replies in progress, octets: those two, as much
    /// for Calls that are made, and what the built-in program reads from.
    pub progress_bytes: u64,
    /// Arena memory of all lcores, octets.
    pub total_bytes: u64,
    /// What RLIMIT_MEMLOCK must allow at the least, octets: the arenas, and room of each lcore for
    /// what it sends; the devices' own queues come on top. Zero when no fabric of the plan pins
    /// memory.
    pub memlock_bytes: u64,
}

impl Budget {
    /// What one lcore needs at the least, octets.
    #[must_use]
    pub fn needed_bytes(&self) -> u64 {
        self.least_bytes.saturating_add(self.progress_bytes)
    }

    /// Connections cannot all have all their credits: grants shrink as connections grow (RFC
    /// 8166 section 3.3.1).
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.receives_bytes < self.full_bytes
    }

    /// What one lcore has left for Calls and Replies longer than a receive when every
    /// connection is there, octets; `None` when not even the needed memory is there.
    #[must_use]
    pub fn shared_bytes(&self) -> Option<u64> {
        self.memory_bytes
            .checked_sub(self.receives_bytes)
            .filter(|&b| b >= self.progress_bytes)
    }
}

/// Cost of one connection of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The endpoint's name.
    pub name: String,
    /// Receives that stay posted, with all its credits.
    pub receives: u64,
    /// With the fewest.
    pub least_receives: u64,
    /// Arena octets of one receive.
    pub receive_bytes: u64,
    /// Arena octets of all its receives, with all its credits.
    pub connection_bytes: u64,
    /// With the fewest.
    pub least_bytes: u64,
    /// Heap octets of its slots.
    pub slot_bytes: u64,
}

/// What `bytes` octets cost in an lcore's pool. `None` when the sum overflows.
#[must_use]
pub fn pooled(bytes: u64) -> Option<u64> {
    let block = bytes.checked_next_power_of_two()?.max(GRAIN);
    if block <= WHOLE {
        return Some(block);
    }
    bytes.checked_next_multiple_of(block / 8)
}

/// Cost of one connection that speaks as `transport` says.
///
/// The ranges of the configuration keep this far from overflow (1,090 receives of 64 KiB);
/// beyond them it saturates, and then fits no memory.
pub(crate) fn cost(name: &str, transport: &Transport) -> Cost {
    let slots = u64::from(transport.credits).saturating_add(transport.backward_credits.into());
    let receives = slots.saturating_add(CONTROL_RECEIVES.into());
    let spared = transport.credits.saturating_sub(transport.credits_min);
    let least_receives = receives.saturating_sub(spared.into());
    let receive_bytes = pooled(transport.inline_bytes_max.into()).unwrap_or(u64::MAX);
    Cost {
        name: name.to_owned(),
        receives,
        least_receives,
        receive_bytes,
        connection_bytes: receive_bytes.saturating_mul(receives),
        least_bytes: receive_bytes.saturating_mul(least_receives),
        slot_bytes: slots.saturating_mul(SLOT_BYTES),
    }
}

/// The budget of a plan; looks at its runtime and its endpoints alone.
pub(crate) fn of(plan: &Plan) -> Budget {
    let lcores = plan.runtime.lcores.len() as u64;
    let costs: Vec<Cost> = endpoints(plan)
        .map(|(name, _, transport)| cost(name, transport))
        .collect();
    let connections = u64::from(plan.runtime.connections_max);
    let dearest = |of: fn(&Cost) -> u64| costs.iter().map(of).max().unwrap_or(0);
    let full_bytes = dearest(|cost| cost.connection_bytes).saturating_mul(connections);
    let least_bytes = dearest(|cost| cost.least_bytes).saturating_mul(connections);
    let serving = servers(plan).fold(Share::default(), Share::larger);
    let made = plan.backs.iter().map(|it| Share::of(&it.transport));
    let making = made.fold(Share::default(), Share::larger);
    let source = match plan.services.is_empty() {
        true => 0,
        false => u64::from(SOURCE_BYTES),
    };
    // Two messages of each connection are on their way out, from memory of the port's own.
    let message_bytes = plan
        .transports()
        .map(|it| u64::from(it.inline_bytes_max))
        .max();
    let sending_bytes = 2 * message_bytes.unwrap_or(0).max(1024) * connections * lcores;
    let pinned = endpoints(plan).any(|(_, fabric, _)| fabric.locks_memory());
    let memory_bytes = plan.runtime.memory_bytes;
    let total_bytes = memory_bytes.saturating_mul(lcores);
    let progress = [
        serving.call,
        serving.reply,
        making.call,
        making.reply,
        source,
    ];
    let progress_bytes = progress.into_iter().fold(0, u64::saturating_add);
    Budget {
        lcores,
        connections_max: plan.runtime.connections_max,
        memory_bytes,
        receives_bytes: receives(full_bytes, least_bytes, memory_bytes, progress_bytes),
        full_bytes,
        least_bytes,
        call_share_bytes: serving.call,
        reply_share_bytes: serving.reply,
        progress_bytes,
        endpoints: costs,
        total_bytes,
        memlock_bytes: match pinned {
            true => total_bytes.saturating_add(sending_bytes),
            false => 0,
        },
    }
}

/// What is set aside for receives.
fn receives(full: u64, least: u64, memory: u64, progress: u64) -> u64 {
    let room = memory.saturating_sub(progress);
    if full <= room {
        return full;
    }
    // A quarter is left for long Calls and Replies, where that does not cost anybody a seat.
    least.max(room / 4 * 3)
}

/// Fronts, backs and services: name, fabric, transport.
fn endpoints(plan: &Plan) -> impl Iterator<Item = (&str, Fabric, &Transport)> {
    let fronts = plan
        .fronts
        .iter()
        .map(|it| (it.name.as_str(), it.fabric, &it.transport));
    let backs = plan
        .backs
        .iter()
        .map(|it| (it.name.as_str(), it.fabric, &it.transport));
    let services = plan
        .services
        .iter()
        .map(|it| (it.name.as_str(), it.fabric, &it.transport));
    fronts.chain(backs).chain(services)
}

/// Memory that one longest Call and its Reply can be sure of, octets.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    call: u64,
    reply: u64,
}

impl Share {
    fn of(transport: &Transport) -> Self {
        let Limits {
            call_bytes,
            reply_bytes,
            ..
        } = transport.limits;
        Self {
            call: block(call_bytes.into()),
            reply: block(u64::from(reply_bytes).saturating_add(AROUND_BYTES.into())),
        }
    }

    fn larger(self, other: Self) -> Self {
        Self {
            call: self.call.max(other.call),
            reply: self.reply.max(other.reply),
        }
    }
}

/// The shares of what serves: fronts, and services, whose ECHO has Replies as long as its Calls.
fn servers(plan: &Plan) -> impl Iterator<Item = Share> {
    let fronts = plan.fronts.iter().map(|it| Share::of(&it.transport));
    let echoes = plan.services.iter().map(|it| {
        let share = Share::of(&it.transport);
        Share {
            reply: share.reply.max(share.call.saturating_mul(2)),
            ..share
        }
    });
    fronts.chain(echoes)
}

/// The block that `bytes` octets lie in, wherever the pool cuts it.
fn block(bytes: u64) -> u64 {
    let block = bytes.checked_next_power_of_two().unwrap_or(u64::MAX);
    block.max(GRAIN)
}

/// `bytes` in whole mebibytes, rounded up.
#[must_use]
pub fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receives_of_a_connection_are_its_credits_and_two() {
        let machine = crate::Machine {
            cores: vec![0, 1],
            status_socket: "/s".into(),
        };
        let text = "[[service]]\nname = 's'\nlisten = 's'\n[service.transport]\ncredits = 30\n\
                    backward_credits = 4\ninline_bytes = 5000\n\
                    [runtime]\nmemory_mib = 200\nconnections_max = 100\n";
        let plan = crate::parse("", text, &machine).unwrap();
        let budget = &plan.budget;
        assert_eq!(budget.endpoints[0].receives, 36);
        assert_eq!(budget.endpoints[0].receive_bytes, 8192);
        assert_eq!(budget.receives_bytes, 100 * 36 * 8192);
        // A block for a Call, one twice as long for an ECHO of it, and the source.
        let shares = (budget.call_share_bytes, budget.reply_share_bytes);
        assert_eq!(shares, (2 * MIB, 4 * MIB));
        assert_eq!(budget.progress_bytes, 7 * MIB);
        assert_eq!(budget.shared_bytes(), Some(200 * MIB - 100 * 36 * 8192));
        assert_eq!(budget.total_bytes, 400 * MIB);
    }

    #[test]
    fn receives_get_what_the_memory_allows() {
        assert_eq!(receives(90, 10, 100, 10), 90, "all credits fit");
        assert_eq!(receives(91, 10, 100, 10), 66, "they do not");
        assert_eq!(receives(91, 80, 100, 10), 80, "a seat for everybody");
        assert_eq!(receives(91, 95, 100, 10), 95, "refused by the check");
    }

    #[test]
    fn the_pool_costs_whole_blocks_then_eighths() {
        for (bytes, cost) in [
            (0, 256),
            (1, 256),
            (1024, 1024),
            (4096, 4096),
            (4100, 8192),
            (65536, 65536),
            (65537, 80 << 10),
            (1 << 20, 1 << 20),
            ((1 << 20) + 1, 1280 << 10),
            (8 << 20, 8 << 20),
        ] {
            assert_eq!(pooled(bytes), Some(cost), "{bytes}");
        }
        assert_eq!(pooled(u64::MAX), None);
    }
}
