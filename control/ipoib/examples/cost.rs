//! What groups cost the control thread: a thousand joined, a thousand verified, and a storm of reports meanwhile, against the
//! small SA in one process. Prints the time of each, and the octets of state for a group.
//!
//! `cargo run --release -p rpcrdma-ipoib --example cost`
//!
//! What it costs an lcore that the control thread has a storm to take is measured by the example `storm` of `rpcrdma-perf`.

use rpcrdma_ipoib::gid::{Gid, Guid, Lid};
use rpcrdma_ipoib::group::Attributes;
use rpcrdma_ipoib::mad::{Event, MadOctets, Method, Notice, Tid, emit};
use rpcrdma_ipoib::mgid::{Family, Scope, broadcast, of_address};
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::node::{LinkId, Node, Output, STATE_PER_GROUP_BYTES};
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::port::PortFacts;
use rpcrdma_ipoib::settings::{Creation, LinkSpec, Settings, Timing};
use rpcrdma_ipoib::small_sa::{Capacity, Partition, SmallSa, SubnetPort};
use rpcrdma_ipoib::time::Moment;
use std::net::Ipv4Addr;
use std::time::Instant;

const GROUPS: u32 = 1_000;
const REPORTS: u32 = 10_000;
const LINK: LinkId = LinkId(0);
const MANAGER: Lid = Lid(1);

/// A node beside its subnet manager, and what they say to each other.
struct Pair {
    sa: SmallSa,
    node: Node,
    now: Moment,
    datagrams: u64,
}

fn gid(guid: u64) -> Gid {
    Gid::of_port(0xFE80 << 48, Guid(guid))
}

fn address(group: u32) -> Ipv4Addr {
    Ipv4Addr::from(0xEF00_0000 + group)
}

impl Pair {
    fn new() -> Self {
        let mut sa = SmallSa::new(MANAGER, gid(1), Capacity::default());
        sa.set_partition(Partition::of_all(PKey::DEFAULT));
        let attributes = Attributes::of_creation(&Creation::default(), PKey::DEFAULT);
        let mgid = broadcast(Family::V4, Scope::LINK_LOCAL, PKey::DEFAULT);
        let made = sa.preconfigure(mgid, attributes);
        made.expect("room for one group");
        let (lid, gid, mtu) = (Lid(2), gid(2), Mtu::M2048);
        sa.add_port(SubnetPort { gid, lid, mtu });
        let mut node = Node::new(Settings::default(), 1);
        let now = Moment(1);
        node.port_is(
            now,
            PortFacts {
                gid,
                lid,
                sm_lid: MANAGER,
                sm_sl: 0,
                active: true,
                mtu,
                p_keys: sa.p_keys(gid),
            },
        );
        let spec = LinkSpec {
            p_key: PKey::DEFAULT,
            family: Family::V4,
            create: None,
            router: false,
        };
        node.add_link(now, spec).expect("room for one link");
        let mut pair = Self {
            sa,
            node,
            now,
            datagrams: 0,
        };
        pair.talk();
        pair
    }

    /// Lets them talk until neither has anything to say.
    fn talk(&mut self) {
        let now = self.now;
        while let Some(output) = self.node.take() {
            match output {
                Output::Mad { bytes, .. } => {
                    self.datagrams += 1;
                    if let Some(reply) = self.sa.answer(Lid(2), &bytes) {
                        self.node.mad_came(now, MANAGER, &reply);
                    }
                }
                Output::Open(opening) => self.node.queue_opened(now, opening.link, Ok(0x48)),
                Output::Attach(to) => self.node.attached(now, to, Ok(())),
                Output::Detach(from) => self.node.detached(now, from, Ok(())),
                _ => {}
            }
        }
        // reports are another matter
        while self.sa.next_report().is_some() {}
    }

    fn pass(&mut self, ms: u64) {
        let end = self.now.after(ms);
        while let Some(wake) = self.node.wake().filter(|wake| *wake <= end) {
            self.now = self.now.max(wake);
            self.node.pass(self.now);
            self.talk();
        }
        self.now = end;
    }
}

fn timed(what: &str, pair: &mut Pair, of: impl FnOnce(&mut Pair)) {
    let before = pair.datagrams;
    let start = Instant::now();
    of(pair);
    let took = start.elapsed();
    let datagrams = pair.datagrams - before;
    println!("{what}: {took:.1?}, {datagrams} datagrams to the SA");
}

fn report(group: u32) -> MadOctets {
    let address = address(group).into();
    let mgid = of_address(address, Scope::LINK_LOCAL, PKey::DEFAULT).expect("a group");
    let notice = Notice::of_event(Event::GroupDeleted(mgid), MANAGER, gid(1));
    emit::whole(Method::Report, Tid(group), &notice)
}

fn join_all(pair: &mut Pair) {
    for group in 0..GROUPS {
        let joined = pair.node.join(pair.now, LINK, address(group).into());
        joined.expect("room");
        pair.talk();
    }
}

fn main() {
    let mut pair = Pair::new();
    println!("state of a group: {STATE_PER_GROUP_BYTES} octets");
    timed("1,000 groups joined", &mut pair, join_all);
    let held = pair.sa.members().count();
    println!("the SA holds {held} memberships");
    timed("one round of verification", &mut pair, |pair| {
        pair.pass(Timing::default().verify_ms);
    });
    let reports: Vec<_> = (0..REPORTS).map(|it| report(it % GROUPS)).collect();
    timed("10,000 reports at once", &mut pair, |pair| {
        for report in &reports {
            pair.node.mad_came(pair.now, MANAGER, report);
            pair.talk();
        }
    });
    timed("what they led to", &mut pair, |pair| pair.pass(2_000));
    timed("the SA forgets, and says so", &mut pair, |pair| {
        pair.sa.forget();
        pair.node.reregister(pair.now);
        pair.talk();
    });
    let held = pair.sa.members().count();
    println!("the SA holds {held} memberships");
    timed("left and closed", &mut pair, |pair| {
        pair.node.close(pair.now);
        pair.talk();
        pair.pass(Timing::default().close_ms);
    });
    let held = pair.sa.members().count();
    println!("the SA holds {held} memberships");
}
