//! What nobody listens to goes to the routers, until somebody does: two sets of links on one subnet of this process.

use crate::bench::{Bench, STEP, plans};
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_links::{Links, MemorySubnet};
use std::time::Instant;

const ROUTER_AND_SENDER: &str = r#"
    [[link]]
    name = "router"
    administrator = true
    router = true
    ipv4 = "10.1.0.1/24"
    [[link]]
    name = "sender"
    ipv4 = "10.1.0.2/24"
    [[service]]
    name = "s"
    listen = "s"
"#;
const LISTENER: &str = r#"
    [[link]]
    name = "listener"
    administrator = true
    ipv4 = "10.1.0.3/24"
    groups = ["239.9.9.9"]
    [[service]]
    name = "s"
    listen = "s"
"#;
const ROUTER: usize = 0;
const SENDER: usize = 1;
const GROUP: &str = "239.9.9.9:111";

/// Sends one datagram to the group.
fn send(links: &mut Links, now: Instant) {
    let to = GROUP.parse().unwrap();
    links.send(SENDER, 700, to, b"?", now).unwrap();
}

/// Datagrams that came to a link since.
fn came(links: &mut Links, link: usize) -> usize {
    let all = std::iter::from_fn(|| links.take());
    all.filter(|it| it.link == link).count()
}

/// As what a link has joined the group, if it has.
fn joined(links: &Links, link: usize) -> Option<String> {
    let groups = links.status().swap_remove(link).groups;
    let last = |group: &str| group.ends_with(":f09:909");
    let group = groups.into_iter().find(|it| last(&it.group));
    group.map(|it| it.joined)
}

#[test]
fn section_9_a_group_that_appears_takes_its_datagrams_back_from_the_routers() {
    let mut subnet = MemorySubnet::new(vec![PKey::DEFAULT]);
    let mut first = Bench::start_in(&mut subnet, &plans(ROUTER_AND_SENDER));
    first.until("the router's groups are there", |links| {
        links.status().iter().all(|link| link.is_up()) && links.addresses(SENDER).count() == 2
    });
    let now = first.now;
    send(&mut first.links, now);
    first.until("it goes to the router", |links| came(links, ROUTER) == 1);
    assert_eq!(joined(&first.links, ROUTER), None, "there is no such group");

    let mut later = Links::start_in(&mut subnet, &plans(LISTENER), first.now).unwrap();
    let mut now = first.now;
    first.until("section 10: the router has joined it too", |links| {
        now += STEP;
        later.turn(now);
        joined(links, ROUTER).as_deref() == Some("NonMember")
    });
    assert_eq!(joined(&later, 0).as_deref(), Some("FullMember"));
    send(&mut first.links, first.now);
    let mut listened = 0;
    first.until("it comes to who listens", |_| {
        now += STEP;
        later.turn(now);
        listened += came(&mut later, 0);
        listened > 0
    });
    let mut routed = 0;
    first.pass(STEP * 100, |links| routed += came(links, ROUTER));
    assert_eq!((listened, routed), (1, 1), "once each");
    assert!(joined(&first.links, SENDER).is_some_and(|it| it.starts_with("SendOnly")));
}
