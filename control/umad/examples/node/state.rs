//! A node as JSON.

use crate::seat::Seat;
use rpcrdma_umad::Subnet;
use serde_json::{Map, Value, json};

/// Port, links, groups, attachments, and everything that was counted.
pub(crate) fn of(seat: &Seat) -> Value {
    let status = seat.node.status();
    let facts = seat.port.facts();
    let links = status.links.iter().map(|link| {
        json!({
            "p_key": link.spec.p_key.to_string(),
            "state": link.state.name(),
            "error": link.error.map(|refusal| refusal.name()),
            "broadcast": link.broadcast.map(|mgid| mgid.to_string()),
            "mtu": link.attributes.map(|attributes| attributes.mtu.octets()),
            "q_key": link.attributes.map(|attributes| attributes.q_key.0),
            "addresses": link.addresses,
            "failing": link.failing,
        })
    });
    let groups = seat.node.groups().map(|group| {
        json!({
            "link": group.link.0,
            "mgid": group.mgid.to_string(),
            "mlid": group.mlid.map(|mlid| mlid.0),
            "phase": group.phase.name(),
            "held": group.held.bits(),
            "doubt": group.doubt.bits(),
            "attached": group.attached,
            "waiting": group.waiting,
        })
    });
    json!({
        "port": { "gid": facts.gid().to_string(), "lid": facts.lid.0, "sm_lid": facts.sm_lid.0 },
        "links": links.collect::<Vec<_>>(),
        "groups": groups.collect::<Vec<_>>(),
        "attached": seat.attached.iter().map(|it| it.mgid.to_string()).collect::<Vec<_>>(),
        "memberships": status.memberships.0,
        "subscribed": status.subscribed,
        "requests": status.requests.0 + status.requests.1,
        "frames": seat.frames.0,
        "last_frame": seat.frames.1,
        "unsent": seat.unsent,
        "refusals": counts(seat.node.ledger().refusals().iter().map(|(kind, count)| (kind.name(), count))),
        "drops": counts(seat.node.ledger().drops().iter().map(|(kind, count)| (kind.name(), count))),
        "ignored": counts(seat.node.ledger().ignored_things().iter().map(|(kind, count)| (kind.name(), count))),
    })
}

/// What has been counted at all.
fn counts(kinds: impl Iterator<Item = (&'static str, u64)>) -> Value {
    let seen = kinds.filter(|(_, count)| *count > 0);
    Value::Object(
        seen.map(|(name, count)| (name.into(), count.into()))
            .collect::<Map<_, _>>(),
    )
}
