//! Peers of the fabric in software that speak correct SCTP and wrong everything above, against the
//! whole appliance: what its status and its metrics say of them, and that others notice nothing.
//!
//! SCTP itself is played, so that every chunk is the test's own.

#[path = "support/mod.rs"]
mod support;

use rpcrdma_iwarp_sctp::stand_in::{Hub, Manner, Wire};
use rpcrdma_iwarp_sctp::{IwarpFabric, Settings};
use rpcrdma_sctp::{AbortCause, AssociationId, Event, Llp, Reason};
use rpcrdmad::metrics::render;
use rpcrdmad::supervise::{Handle, Supervisor};
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Instant;
use support::appliance::{State, plan};
use support::octets::{One, head, null, success, words};
use support::until;

const SERVICE: &str = r#"
    [runtime]
    lcores = 1
    memory_mib = 48
    hugepages = "off"
    connections_max = 16
    drain_timeout_s = 1
    [status]
    socket = "off"
    [[service]]
    name = "service"
    fabric = "iwarp-sctp"
    listen = "127.0.0.1:9899"
    [service.transport]
    credits = 8
"#;
const AT: &str = "127.0.0.1:9899";

/// Payload protocol identifiers and function codes (RFC 5043 sections 5.2 and 5.2.3).
const SEGMENT: u32 = 16;
const CONTROL: u32 = 17;
const INITIATE: u8 = 1;
const ACCEPT: u8 = 2;
const TERMINATE: u8 = 4;

struct Appliance {
    handle: Handle,
    control: Option<JoinHandle<()>>,
}

impl Appliance {
    fn start(hub: &Hub) -> Self {
        let fabric = IwarpFabric::new(hub.clone(), Settings::default()).expect("a fabric");
        let supervisor = Supervisor::start(plan(SERVICE), fabric).expect("a supervisor");
        let handle = supervisor.handle();
        let run = move || supervisor.run(None).expect("an orderly end");
        let control = Some(std::thread::spawn(run));
        Self { handle, control }
    }

    fn state(&self) -> State {
        State(self.handle.board().document())
    }

    /// How often peers did this.
    fn port_rejected(&self, reason: &str) -> u64 {
        let lcores = self.state().0.lcores.into_iter();
        let of_lcore = lcores.filter_map(|lcore| lcore.port_rejects.get(reason).copied());
        of_lcore.sum()
    }
}

impl Drop for Appliance {
    fn drop(&mut self) {
        self.handle.drain();
        if let Some(control) = self.control.take() {
            let ended = control.join();
            assert!(std::thread::panicking() || ended.is_ok());
        }
    }
}

/// An SCTP endpoint of the test's with one association.
struct Peer {
    wire: Wire,
    association: AssociationId,
    up: bool,
    down: Option<Reason>,
    heard: Vec<(u32, Vec<u8>)>,
}

impl Peer {
    fn new(hub: &Hub, manner: Manner) -> Self {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut wire = hub.with(manner).wire(here).expect("a wire");
        let to = AT.parse().expect("an address");
        let association = wire.associate(to, Instant::now()).expect("an association");
        Self {
            wire,
            association,
            up: false,
            down: None,
            heard: Vec::new(),
        }
    }

    fn turn(&mut self) {
        let (up, down, heard) = (&mut self.up, &mut self.down, &mut self.heard);
        self.wire.turn(Instant::now(), &mut |event| match event {
            Event::Up { .. } => *up = true,
            Event::Message { ppid, octets, .. } => heard.push((ppid, octets.to_vec())),
            Event::Down { reason, .. } => *down = Some(reason),
            Event::Dry { .. } | Event::Writable { .. } => {}
        });
    }

    fn until<T>(&mut self, what: &str, look: impl Fn(&Peer) -> Option<T>) -> T {
        until(what, || {
            self.turn();
            look(self)
        })
    }

    fn say(&mut self, ppid: u32, octets: &[u8]) {
        self.until("the association", |peer| peer.up.then_some(()));
        let fill = |out: &mut [u8]| out.copy_from_slice(octets);
        let sent = self
            .wire
            .send(self.association, 0, ppid, octets.len(), fill);
        sent.expect("taken");
    }

    fn control(&mut self, ssn: u8, function: u8) {
        self.say(CONTROL, &[0, ssn, 0, function]);
    }

    /// An untagged segment that is a whole message, the first of its queue.
    fn message(&mut self, ssn: u8, opcode: u8, queue: u32, payload: &[u8]) {
        // Flags and version of DDP, RDMAP's control octet and word, queue, MSN, offset.
        let header = [
            &[0, ssn, 0x41, 0x40 | opcode][..],
            &words(&[0, queue, 1, 0]),
        ]
        .concat();
        self.say(SEGMENT, &[&header, payload].concat());
    }

    /// The function codes that came.
    fn controls(&self) -> Vec<u8> {
        let controls = self.heard.iter().filter(|(ppid, _)| *ppid == CONTROL);
        controls.map(|(_, octets)| octets[3]).collect()
    }

    fn hears(&mut self, controls: &[u8]) {
        self.until(&format!("functions {controls:?}"), |peer| {
            (peer.controls() == controls).then_some(())
        });
    }

    /// A session that stands.
    fn in_session(hub: &Hub) -> Self {
        let mut peer = Self::new(hub, Manner::default());
        peer.control(0, INITIATE);
        peer.hears(&[ACCEPT]);
        peer
    }

    /// A NULL Call, and its Reply.
    fn calls(&mut self) {
        let before = self.heard.len();
        self.message(1, 3, 0, &head(One, 7).with(&null(7)));
        let reply = self.until("a Reply", |peer| {
            let of_it = peer.heard[before..].iter();
            let mut segments = of_it.filter(|(ppid, _)| *ppid == SEGMENT);
            segments.next().map(|(_, octets)| octets.clone())
        });
        assert!(reply.ends_with(&success(7)), "{reply:02x?}");
    }
}

/// What a peer does.
type Does = fn(&mut Peer);

#[test]
fn what_peers_did_wrong_is_counted_by_name() {
    let hub = Hub::new(Manner::default());
    let appliance = Appliance::start(&hub);
    let mut bystander = Peer::in_session(&hub);
    let plain = Manner::default();
    // RFC 5043 sections 8 and 11.1: no association.
    let strangers = [
        (
            "no-adaptation",
            Manner {
                indication: None,
                ..plain
            },
        ),
        (
            "other-adaptation",
            Manner {
                indication: Some(9),
                ..plain
            },
        ),
        (
            "stream-counts",
            Manner {
                streams: 3,
                ..plain
            },
        ),
    ];
    for (reason, manner) in strangers {
        let mut peer = Peer::new(&hub, manner);
        let down = peer.until(reason, |peer| peer.down);
        assert_eq!(down, Reason::AbortedByPeer(AbortCause::USER), "{reason}");
        assert_eq!(appliance.port_rejected(reason), 1, "{reason}");
    }
    // No session yet: Terminate alone.
    let early: [(&str, Does); 3] = [
        ("function-code", |peer| peer.control(0, 99)),
        ("control-sequence", |peer| peer.control(0, ACCEPT)),
        ("segment-sequence", |peer| peer.message(1, 3, 0, b"x")),
    ];
    for (reason, does) in early {
        let mut peer = Peer::new(&hub, plain);
        does(&mut peer);
        peer.hears(&[TERMINATE]);
        assert_eq!(appliance.port_rejected(reason), 1, "{reason}");
    }
    // In a session: RDMAP's Terminate too.
    let late: [(&str, Does); 4] = [
        ("opcode", |peer| peer.message(1, 9, 0, b"x")),
        ("queue-number", |peer| peer.message(1, 3, 7, b"x")),
        ("request-length", |peer| peer.message(1, 1, 1, b"x")),
        ("stag-invalid", |peer| {
            let header = [&[0, 1, 0xC1, 0x40][..], &words(&[0x1234, 0, 0])].concat();
            peer.say(SEGMENT, &[&header[..], b"x"].concat());
        }),
    ];
    for (reason, does) in late {
        let mut peer = Peer::in_session(&hub);
        does(&mut peer);
        peer.hears(&[ACCEPT, TERMINATE]);
        let blamed = peer.heard.iter().filter(|(ppid, _)| *ppid == SEGMENT);
        assert_eq!(blamed.count(), 1, "{reason}");
        assert_eq!(appliance.port_rejected(reason), 1, "{reason}");
    }
    let state = appliance.state();
    assert_eq!(state.counter("port_associations"), 11);
    assert_eq!(state.counter("port_sessions_terminated"), 0);
    let text = render(&appliance.handle.board().families());
    for line in [
        "rpcrdma_port_rejects_total{lcore=\"0\",reason=\"no-adaptation\"} 1",
        "rpcrdma_port_rejects_total{lcore=\"0\",reason=\"stag-invalid\"} 1",
        "rpcrdma_port_associations_total{lcore=\"0\"} 11",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} in:\n{text}");
    }
    bystander.calls();
    assert_eq!(bystander.controls(), [ACCEPT]);
}

/// What a peer finds wrong with this side, and what becomes of sessions, has counters too.
#[test]
fn ends_of_sessions_are_counted() {
    let hub = Hub::new(Manner::default());
    let appliance = Appliance::start(&hub);
    let mut accuser = Peer::in_session(&hub);
    // RDMAP, remote operation, catastrophic: of no segment.
    accuser.message(1, 7, 2, &[0x02, 0x07, 0, 0]);
    accuser.hears(&[ACCEPT, TERMINATE]);
    let counted = |name| appliance.state().counter(name);
    assert_eq!(counted("port_sessions_terminated"), 1);
    let mut leaver = Peer::in_session(&hub);
    leaver.wire.abort_all();
    until("the loss", || {
        leaver.turn();
        (counted("port_sessions_lost") == 1).then_some(())
    });
    assert_eq!(counted("port_transport"), 1);
    assert!(counted("port_chunks_in") >= 3);
    assert!(counted("port_chunks_out") >= 3);
}
