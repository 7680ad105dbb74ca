//! Who asks and who answers, on two links of this process's own subnet, with a clock that jumps.

use super::*;
use rpcrdma_config::{Machine, parse};
use std::path::PathBuf;

pub(crate) const FILE: &str = r#"
    [[link]]
    name = "near"
    administrator = true
    ipv4 = "10.1.0.1/24"
    answer = ["239.192.78.81"]
    answers_per_s = 0
    [[link]]
    name = "far"
    ipv4 = "10.1.0.2/24"
    [[front]]
    name = "nfs"
    fabric = "iwarp-sctp"
    listen = "10.1.0.1:20049"
    [[front.backend]]
    programs = [100003]
    address = "127.0.0.1:2049"
    [[back]]
    name = "clients"
    listen = "127.0.0.1:0"
    fabric = "iwarp-sctp"
    upstream = { discover = "239.192.78.81", program = 100003, link = "far", ask_s = 1 }
"#;

/// What a configuration plans on a machine of one processor.
pub(crate) fn plan(file: &str) -> Plan {
    let machine = Machine {
        cores: vec![0],
        status_socket: PathBuf::from("/run/s"),
    };
    parse("", file, &machine).unwrap_or_else(|error| panic!("{error}"))
}

struct Bench {
    discovery: Discovery,
    now: Instant,
}

impl Bench {
    fn of(file: &str) -> Self {
        let now = Instant::now();
        let discovery = Discovery::start(&plan(file), now).unwrap();
        Self {
            discovery: discovery.unwrap(),
            now,
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.discovery.turn(self.now);
            self.now += Duration::from_millis(10);
        }
    }

    fn ways(&mut self) -> Vec<String> {
        let ways = self.discovery.ways(0).into_iter();
        ways.map(|way| way.to_string()).collect()
    }

    fn report(&self) -> Vec<crate::status::Link> {
        self.discovery.look()
    }
}

#[test]
fn a_listener_that_is_not_told_beside_one_that_is_is_said() {
    let service = "[[service]]\nname = 'probe'\nfabric = 'iwarp-sctp'\nlisten = '0.0.0.0:20050'\n";
    let plan = plan(&format!("{FILE}{service}"));
    let why = "the link's own address is none of an interface";
    let line = format!("link near: who asks is not told of service probe at 0.0.0.0:20050: {why}");
    assert_eq!(services::untold(&plan), [line]);
}

#[test]
fn what_is_said_not_to_be_told_is_what_no_answer_has() {
    use rpcrdma_config::link::Subnet;
    use rpcrdma_discovery::answer::{Programs, Service};
    let query = rpcrdma_discovery::rpcbind::emit_query(rpcrdma_wire::Xid(1), 100_003, 3);
    let own = ["10.1.0.1", "2001:db8::1"].map(|ip| ip.parse::<IpAddr>().unwrap());
    for listen in [
        "0.0.0.0:20049",
        "[::]:20049",
        "[::ffff:0.0.0.0]:20049",
        "0.0.0.0:0",
        "10.1.0.5:0",
        "10.1.0.5:20049",
        "127.0.0.1:20049",
        "[fe80::1%2]:20049",
        "240.0.0.1:20049",
        "[2001:db8::5]:20049",
    ] {
        let service = Service {
            listen: listen.parse().unwrap(),
            programs: Programs::These(vec![100_003]),
            reachable: true,
        };
        for subnet in [Subnet::Infiniband, Subnet::Ethernet] {
            let own = own.iter().filter(|_| subnet.is_of_the_system());
            let own: Vec<_> = own.copied().collect();
            let mut answerer = Answerer::new(vec![service.clone()], 0);
            let answer = answerer.answer(&query, true, &own, Instant::now());
            let untold = subnet.why_untold(service.listen);
            assert_eq!(answer.is_none(), untold.is_some(), "{listen} {subnet:?}");
        }
    }
}

#[test]
fn a_back_finds_who_answers_for_its_program() {
    let mut bench = Bench::of(FILE);
    assert!(bench.ways().is_empty(), "nobody before anybody was asked");
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.ways(), ["10.1.0.1:20049"]);
    let links = bench.report();
    assert!(links[0].answers["answered"] > 0);
    assert_eq!(links[1].sought[0].known, ["10.1.0.1:20049"]);
    assert!(links[1].sought[0].unheard.is_empty());
}

#[test]
fn a_link_answers_in_its_groups_alone() {
    let other = FILE.replace(
        "answer = [\"239.192.78.81\"]",
        "groups = [\"239.192.78.81\"]",
    );
    let mut bench = Bench::of(&other.replace("answers_per_s = 0", ""));
    bench.pass(Duration::from_secs(5));
    assert!(bench.ways().is_empty());
    assert_eq!(bench.report()[0].answers["answered"], 0);
}

#[test]
fn nothing_is_due_once_the_time_for_closing_is_over() {
    let mut bench = Bench::of(FILE);
    bench.pass(Duration::from_secs(5));
    bench.discovery.close(bench.now);
    bench.pass(CLOSE_WITHIN * 2);
    assert!(bench.discovery.close(bench.now));
    let deadline = bench.discovery.deadline(bench.now);
    assert!(deadline.is_none_or(|at| at > bench.now), "{deadline:?}");
}

#[test]
fn a_listener_at_all_addresses_is_not_told_where_the_links_is_none_of_them() {
    let file = FILE.replace("program = 100003,", "program = 100005,");
    let everywhere = r#"
    [[front]]
    name = "mount"
    fabric = "iwarp-sctp"
    listen = "0.0.0.0:20050"
    [[front.backend]]
    programs = [100005]
    address = "127.0.0.1:2049"
"#;
    let mut bench = Bench::of(&(file + everywhere));
    bench.pass(Duration::from_secs(5));
    assert!(bench.ways().is_empty());
    assert!(bench.report()[0].answers["not_served"] > 0);
}

#[test]
fn another_program_is_not_answered_for() {
    let mut bench = Bench::of(&FILE.replace("program = 100003,", "program = 100005,"));
    bench.pass(Duration::from_secs(5));
    assert!(bench.ways().is_empty());
    assert!(bench.report()[0].answers["not_served"] > 0);
}

#[test]
fn nobody_is_sent_to_a_front_whose_backend_cannot_be_reached() {
    let mut bench = Bench::of(FILE);
    let place = BackendPlace {
        front: 0,
        backend: 0,
    };
    bench.discovery.backend_is(place, false);
    bench.pass(Duration::from_secs(5));
    assert!(bench.ways().is_empty());
    assert!(bench.report()[0].answers["unreachable"] > 0);
    bench.discovery.backend_is(place, true);
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.ways(), ["10.1.0.1:20049"]);
}

#[test]
fn what_came_is_told_by_what_it_was() {
    let mut bench = Bench::of(FILE);
    bench.pass(Duration::from_secs(5));
    let links = bench.report();
    let [near, far] = [&links[0].ips[0].frames, &links[1].ips[0].frames];
    assert!(near["received"] >= near["datagrams"], "{near:?}");
    assert!(far["sent"] > 0 && far["datagrams"] > 0, "{far:?}");
    let address = links[0].ips[0].address.as_ref().expect("an address");
    let told = (address.address.as_str(), address.phase.as_str());
    assert_eq!(told, ("10.1.0.1", "used"));
    let memberships = links[0].resources["memberships"];
    assert!(memberships.used > 0 && memberships.limit.is_some());
    assert!(links[0].resources["attachments"].limit.is_some());
}

#[test]
fn the_filters_of_both_ends_count() {
    let refusing = FILE.replace("answers_per_s = 0", "answer_allow = [\"10.2.0.0/16\"]");
    let mut bench = Bench::of(&refusing);
    bench.pass(Duration::from_secs(5));
    assert!(bench.ways().is_empty());
    assert!(bench.report()[0].answers["not_allowed"] > 0);

    let doubting = FILE.replace("ask_s = 1", "allow = [\"10.2.0.0/16\"]");
    let mut bench = Bench::of(&doubting);
    bench.pass(Duration::from_secs(5));
    assert!(bench.ways().is_empty());
    assert!(bench.report()[1].sought[0].unheard["not_allowed"] > 0);
}

#[test]
fn answers_are_limited_in_number() {
    let mut bench = Bench::of(&FILE.replace("answers_per_s = 0", "answers_per_s = 1"));
    bench.pass(Duration::from_secs(5));
    let address = "10.1.0.1:20049".parse().unwrap();
    for _ in 0..20 {
        // Who has failed is asked for at once, each time.
        bench.ways();
        bench.discovery.failed(0, address, bench.now);
        bench.pass(Duration::from_millis(20));
    }
    assert!(bench.report()[0].answers["over_rate"] > 0);
}

#[test]
fn who_answers_no_more_is_forgotten() {
    let mut bench = Bench::of(FILE);
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.ways().len(), 1);
    bench.discovery.answerers[0].allow = Some(Networks(Vec::new()));
    bench.pass(Duration::from_secs(5));
    assert!(bench.ways().is_empty());
}

/// Who would come now found no listener.
#[test]
fn nobody_is_answered_during_the_drain() {
    let mut bench = Bench::of(FILE);
    bench.pass(Duration::from_secs(5));
    let answered = bench.report()[0].answers["answered"];
    // It has come, and was not looked at when the drain begins.
    let query = rpcrdma_discovery::rpcbind::emit_query(rpcrdma_wire::Xid(9), 100_003, 3);
    let to = SocketAddr::new("239.192.78.81".parse().unwrap(), PORT);
    let links = &mut bench.discovery.links;
    let sent = links.send(1, FIRST_PORT, to, &query, bench.now);
    sent.expect("sent");
    links.turn(bench.now);
    bench.discovery.close(bench.now);
    bench.discovery.turn(bench.now);
    let answers = &bench.report()[0].answers;
    assert_eq!((answers["answered"], answers["closing"]), (answered, 1));
}

#[test]
fn every_group_is_left_at_the_end() {
    let mut bench = Bench::of(FILE);
    bench.pass(Duration::from_secs(5));
    let end = bench.now + CLOSE_WITHIN / 2;
    while !bench.discovery.close(bench.now) {
        assert!(bench.now < end, "not closed in time");
        bench.pass(Duration::from_millis(10));
    }
    assert_eq!(bench.report()[0].resources["memberships"].used, 0);
}
