//! When the faults are over: what the nodes believe is what the subnet manager holds, and both are what the users want.

use crate::wire::{SINGLE, TWINS, V4, V6};
use crate::world::{NODES, SIX, World};
use rpcrdma_ipoib::address::Phase;
use rpcrdma_ipoib::gid::Gid;
use rpcrdma_ipoib::join::JoinState;
use rpcrdma_ipoib::link::LinkState;
use rpcrdma_ipoib::mgid;
use rpcrdma_ipoib::neighbour::Unheard;
use rpcrdma_ipoib::node::LinkId;
use rpcrdma_ipoib::packet::{link_local, solicited_node};
use std::collections::{BTreeMap, BTreeSet};

/// What the subnet manager holds for a port.
fn at_the_manager(world: &World, port: Gid) -> BTreeMap<Gid, JoinState> {
    let members = world.sas[world.master].members();
    let its = members.filter(|(_, member, _)| *member == port);
    its.map(|(mgid, _, state)| (mgid, state)).collect()
}

pub(crate) fn judge(world: &World) {
    for at in 0..NODES {
        links_are_up(world, at);
        memberships_agree(world, at);
        wishes_are_granted(world, at);
        attachments_agree(world, at);
        accounts_agree(world, at);
        reports_are_subscribed(world, at);
    }
    routers_hear_all(world);
    addresses_are_used(world);
}

fn links_are_up(world: &World, at: usize) {
    let disputed = TWINS.contains(&at) && world.phase(at, V4) != Phase::Used;
    for (link, status) in [V4, V6]
        .into_iter()
        .zip(world.seats[at].node.status().links)
    {
        let stands = (status.state, status.error);
        match disputed && link == V4 {
            true => assert_eq!(status.state, LinkState::Degraded, "node {at}: {status:#?}"),
            false => assert_eq!(stands, (LinkState::Up, None), "node {at}: {status:#?}"),
        }
    }
}

/// Every address is in use, but that of a twin.
fn addresses_are_used(world: &World) {
    for at in 0..NODES {
        assert_eq!(world.phase(at, V6), Phase::Used, "node {at}");
    }
    assert_eq!(world.phase(SINGLE, V4), Phase::Used);
    let used = TWINS.map(|at| world.phase(at, V4) == Phase::Used);
    assert_ne!(used, [false, false], "one of the twins has it");
}

/// Where both twins have the address, each deaf when the other looked for it, they notice as soon as one of them says anything.
pub(crate) fn judge_twins(world: &mut World) {
    let [one, other] = TWINS;
    if TWINS.iter().any(|at| world.phase(*at, V4) != Phase::Used) {
        return;
    }
    let noticed = |world: &World| {
        let counts = world.seats[other].node.neighbour_counts(V4);
        counts.expect("a link").unheard.of(Unheard::Conflict)
    };
    let before = noticed(world);
    world.ask_around(one);
    world.run_until(world.now.after(100));
    assert!(noticed(world) > before);
}

fn memberships_agree(world: &World, at: usize) {
    let seat = &world.seats[at];
    let held = seat.node.groups().filter(|group| !group.held.is_none());
    let believed: BTreeMap<_, _> = held.map(|group| (group.mgid, group.held)).collect();
    assert_eq!(believed, at_the_manager(world, seat.gid), "node {at}");
    for group in seat.node.groups() {
        assert!(group.doubt.is_none(), "node {at}: {group:?}");
        assert_eq!(group.waiting, 0, "node {at}: {group:?}");
    }
}

fn wishes_are_granted(world: &World, at: usize) {
    let seat = &world.seats[at];
    let broadcasts = seat
        .node
        .status()
        .links
        .into_iter()
        .filter_map(|it| it.broadcast);
    let routers = [LinkId(0), LinkId(1)].into_iter().filter_map(|link| {
        let all = if link.0 == 0 { "224.0.0.2" } else { "ff02::2" };
        let mgid = seat.node.group_of(link, all.parse().expect("an address"));
        mgid.filter(|_| at == NODES - 1)
    });
    let wanted = seat.wanted.iter();
    let addresses = wanted.filter_map(|(link, address)| seat.node.group_of(*link, *address));
    let own = link_local(seat.gid.guid());
    let own = seat.node.group_of(V6, solicited_node(own).into());
    let expected: BTreeSet<Gid> = broadcasts
        .chain(routers)
        .chain(addresses)
        .chain(own)
        .collect();
    let full = at_the_manager(world, seat.gid).into_iter();
    let full = full.filter(|(_, state)| state.has(JoinState::FULL));
    let found: BTreeSet<Gid> = full.map(|(mgid, _)| mgid).collect();
    assert_eq!(found, expected, "node {at}");
}

fn attachments_agree(world: &World, at: usize) {
    let seat = &world.seats[at];
    let receiving = seat.node.groups().filter(|group| group.held.receives());
    let expected: BTreeSet<_> = receiving
        .map(|group| {
            (
                group.link,
                group.mgid,
                group.mlid.expect("a group that exists"),
            )
        })
        .collect();
    let attached = seat.device.attached.iter();
    let found: BTreeSet<_> = attached.map(|it| (it.link, it.mgid, it.mlid)).collect();
    assert_eq!(found, expected, "node {at}");
    for (_, mgid, mlid) in found {
        let group = world.sas[world.master].group(mgid).expect("a group");
        assert_eq!(group.attributes.mlid, mlid, "node {at}: {mgid}");
    }
}

fn accounts_agree(world: &World, at: usize) {
    let seat = &world.seats[at];
    let status = seat.node.status();
    let held = seat.node.groups().filter(|it| !it.held.is_none()).count();
    assert_eq!(status.memberships.0 as usize, held);
    assert_eq!(status.attachments.0 as usize, seat.device.attached.len());
    assert_eq!(status.waiting_octets, 0);
}

fn reports_are_subscribed(world: &World, at: usize) {
    let lid = world.seats[at].lid;
    let subscriptions = world.sas[world.master].subscriptions();
    let traps: Vec<_> = subscriptions
        .filter(|it| it.0 == lid)
        .map(|it| it.1)
        .collect();
    assert_eq!(traps, [66, 67], "node {at}");
}

/// Link section 10: the router is a member of every group of its links.
fn routers_hear_all(world: &World) {
    let router = &world.seats[NODES - 1];
    let own = at_the_manager(world, router.gid);
    let groups: BTreeSet<Gid> = world.sas[world.master].members().map(|it| it.0).collect();
    for mgid in groups {
        let parts = mgid::parts(mgid).expect("an IP group");
        assert!(
            parts.p_key.is_full() && [0x7FFF, SIX.partition()].contains(&parts.p_key.partition())
        );
        let receives = own.get(&mgid).is_some_and(|state| state.receives());
        assert!(receives, "the router does not hear {mgid}");
    }
}

/// After every node was closed nothing is left of any.
pub(crate) fn judge_end(world: &World) {
    for seat in &world.seats {
        assert!(seat.node.is_closed());
        assert_eq!(at_the_manager(world, seat.gid), BTreeMap::new());
        assert!(seat.device.attached.is_empty());
    }
    let lids: Vec<_> = world.seats.iter().map(|seat| seat.lid).collect();
    let subscriptions = world.sas[world.master].subscriptions();
    assert_eq!(subscriptions.filter(|it| lids.contains(&it.0)).count(), 0);
}
