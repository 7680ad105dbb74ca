//! The built-in program, called through two engines.

mod pair;

use pair::{CLIENT, Pair, SERVER};
use rpcrdma_engine::{Call, CallError, CloseReason, Connection, Event, Io, Part, SlotId, Span};
use rpcrdma_upper::program::{self, Service};
use rpcrdma_upper::{Upper, Watch};
use rpcrdma_wire::rpc::{CALL_BYTES, Outcome, ReplyHeader, emit_call};
use rpcrdma_wire::{Version, Xid};
use std::convert::Infallible;
use std::time::Instant;

/// A client that keeps the Replies.
#[derive(Default)]
struct Caller {
    replies: Vec<(SlotId, Vec<u8>, Option<u32>)>,
    failures: Vec<(SlotId, CallError)>,
}

impl Upper for Caller {
    type Order = Infallible;
    type Notice = Infallible;
    type Counters = ();

    fn established<'m>(
        &mut self,
        _: &mut Connection,
        _: &mut impl Io<'m>,
        _: &mut impl Watch,
        _: Instant,
    ) {
    }

    fn event<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, event: Event, _: Instant) {
        match event {
            Event::Reply(slot) => {
                let reply = conn.reply(slot).unwrap();
                self.replies
                    .push((slot, io.octets(reply.body).to_vec(), reply.written[0]));
                conn.finish(io, slot);
            }
            Event::Failed(slot, error) => self.failures.push((slot, error)),
            event => panic!("unexpected {event:?}"),
        }
    }

    fn order<'m>(
        &mut self,
        _: &mut Connection,
        _: &mut impl Io<'m>,
        _: &mut impl Watch,
        order: Infallible,
        _: Instant,
    ) {
        match order {}
    }

    fn turn<'m>(&mut self, _: &mut Connection, _: &mut impl Io<'m>, _: Instant) -> bool {
        false
    }

    fn lost<'m>(&mut self, _: &mut Connection, _: &mut impl Io<'m>, _: CloseReason) {}

    fn has_notice(&self) -> bool {
        false
    }

    fn take_notice(&mut self) -> Option<Infallible> {
        None
    }

    fn count(&mut self, (): &mut ()) {}
}

const SOURCE_BYTES: u32 = 1 << 20;
const VERSIONS: [Version; 2] = [Version::One, Version::Two];

struct Bench {
    pair: Pair<Caller, Service>,
    source: Span,
    held: Vec<Span>,
    xid: u32,
}

impl Bench {
    fn new(version: Version) -> Self {
        let service = Service::new(Span::default(), 32);
        let mut pair = Pair::new(version, Caller::default(), service);
        let mut desk = pair.world.desk(SERVER);
        let source = desk.reserve(SOURCE_BYTES).unwrap();
        program::fill_source(desk.octets_mut(source));
        pair.server.upper = Service::new(source, 32);
        Self {
            pair,
            source,
            held: Vec::new(),
            xid: 100,
        }
    }

    fn hold(&mut self, len: u32) -> Span {
        let span = self.pair.world.desk(CLIENT).reserve(len).unwrap();
        self.held.push(span);
        span
    }

    /// Submits a Call; its last `item` octets before padding are an eligible item.
    fn submit(
        &mut self,
        (number, version, procedure): (u32, u32, u32),
        arguments: &[u8],
        item: Option<u32>,
        results: &[Span],
        reply: Option<Span>,
    ) -> SlotId {
        self.xid += 1;
        let xid = Xid(self.xid);
        let mut octets = vec![0; CALL_BYTES];
        emit_call(&mut octets, xid, number, version, procedure).unwrap();
        octets.extend(arguments);
        let message = self.hold(u32::try_from(octets.len()).unwrap());
        self.pair.world.desk(CLIENT).fill(message, &octets);
        let part = |span, item| Part { span, item };
        let parts = match item {
            None => vec![part(message, false)],
            Some(len) => {
                let pad = len.wrapping_neg() & 3;
                let at = message.len - len - pad;
                let data = message.skip(at);
                vec![
                    part(message.first(at), false),
                    part(data.first(len), true),
                    part(data.skip(len), false),
                ]
            }
        };
        let call = Call {
            xid,
            parts: &parts,
            results,
            reply,
        };
        let client = &mut self.pair.client;
        client
            .conn
            .submit(&mut self.pair.world.desk(CLIENT), call)
            .expect("submitted")
    }

    fn reply(&mut self, slot: SlotId) -> (Vec<u8>, Option<u32>) {
        let mut found = None;
        self.pair.turn_until("a reply", |pair| {
            assert_eq!(pair.client.upper.failures, []);
            let replies = &mut pair.client.upper.replies;
            let at = replies.iter().position(|reply| reply.0 == slot);
            found = at.map(|at| replies.swap_remove(at));
            found.is_some()
        });
        let (_, body, written) = found.unwrap();
        (body, written)
    }

    fn ask(&mut self, procedure: u32, arguments: &[u32]) -> Vec<u8> {
        let octets = words(arguments);
        let program = (program::PROGRAM, program::VERSION, procedure);
        let slot = self.submit(program, &octets, None, &[], None);
        self.reply(slot).0
    }

    fn end(mut self) {
        for span in std::mem::take(&mut self.held) {
            self.pair.world.desk(CLIENT).release(span);
        }
        let source = self.source;
        self.pair.world.desk(SERVER).release(source);
        self.pair.end();
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The results of a successful Reply.
fn results(reply: &[u8]) -> &[u8] {
    let header = ReplyHeader::parse(reply).expect("a reply");
    assert_eq!(header.outcome, Outcome::Accepted(0));
    &reply[header.results..]
}

const fn of(procedure: u32) -> (u32, u32, u32) {
    (program::PROGRAM, program::VERSION, procedure)
}

#[test]
fn null_answers_with_nothing() {
    for version in VERSIONS {
        let mut bench = Bench::new(version);
        for _ in 0..100 {
            assert_eq!(results(&bench.ask(program::NULL, &[])), []);
        }
        bench.end();
    }
}

#[test]
fn echo_gives_back_what_it_got() {
    for version in VERSIONS {
        let mut bench = Bench::new(version);
        for len in [0_u32, 1, 3, 4, 511, 512, 513, 514, 700] {
            let mut arguments = words(&[len]);
            arguments.extend((0..len).map(program::pattern));
            arguments.resize(arguments.len().next_multiple_of(4), 0);
            let slot = bench.submit(of(program::ECHO), &arguments, None, &[], None);
            assert_eq!(results(&bench.reply(slot).0), arguments, "{len}");
        }
        bench.end();
    }
}

#[test]
fn a_long_echo_travels_as_a_long_call_and_a_long_reply() {
    for version in VERSIONS {
        let mut bench = Bench::new(version);
        let len = 100_001;
        let mut arguments = words(&[len]);
        arguments.extend((0..len).map(program::pattern));
        arguments.resize(arguments.len().next_multiple_of(4), 0);
        let room = bench.hold(200_000);
        let slot = bench.submit(of(program::ECHO), &arguments, None, &[], Some(room));
        assert_eq!(results(&bench.reply(slot).0), arguments);
        bench.end();
    }
}

#[test]
fn an_echo_waits_for_memory_and_keeps_its_place() {
    let mut bench = Bench::new(Version::Two);
    results(&bench.ask(program::NULL, &[]));
    results(&bench.ask(program::NULL, &[]));
    let half = &mut bench.pair.world.halves[SERVER];
    half.ceiling = Some(half.in_use() + 100);
    let ask = |bench: &mut Bench, len: u32| {
        let arguments = [words(&[len]), vec![7; len as usize]].concat();
        bench.submit(of(program::ECHO), &arguments, None, &[], None)
    };
    let mut slots = vec![ask(&mut bench, 1000), ask(&mut bench, 600)];
    for _ in 0..10 {
        bench.pair.turn();
    }
    // Room for the second, and for one that comes later, but the first comes first.
    let half = &mut bench.pair.world.halves[SERVER];
    half.ceiling = Some(half.in_use() + 700);
    slots.push(ask(&mut bench, 520));
    for _ in 0..10 {
        bench.pair.turn();
    }
    assert_eq!(bench.pair.client.upper.replies, []);
    // Those that need none are not held up.
    results(&bench.ask(program::NULL, &[]));
    bench.pair.world.halves[SERVER].ceiling = None;
    bench
        .pair
        .turn_until("three replies", |pair| pair.client.upper.replies.len() == 3);
    let order: Vec<SlotId> = bench
        .pair
        .client
        .upper
        .replies
        .iter()
        .map(|reply| reply.0)
        .collect();
    assert_eq!(order, slots);
    bench.end();
}

#[test]
fn a_connection_lost_while_an_echo_waits_leaves_nothing_behind() {
    let mut bench = Bench::new(Version::Two);
    results(&bench.ask(program::NULL, &[]));
    let half = &mut bench.pair.world.halves[SERVER];
    half.ceiling = Some(half.in_use() + 100);
    let arguments = [words(&[1000]), vec![7; 1000]].concat();
    bench.submit(of(program::ECHO), &arguments, None, &[], None);
    bench.pair.turn();
    bench.pair.world.cut();
    bench
        .pair
        .turn_until("the failure", |pair| !pair.client.upper.failures.is_empty());
    assert_eq!(
        bench.pair.client.upper.failures[0].1,
        CallError::ConnectionLost
    );
    bench.end();
}

#[test]
fn read_places_the_source_where_the_client_wants_it() {
    for version in VERSIONS {
        let mut bench = Bench::new(version);
        for (offset, count) in [(0, 1 << 20), (4096, 65_536), (7, 5), (1000, 4097)] {
            let into = bench.hold(count);
            let arguments = words(&[offset, count]);
            let slot = bench.submit(of(program::READ), &arguments, None, &[into], None);
            let (body, written) = bench.reply(slot);
            assert_eq!(
                (results(&body), written),
                (&words(&[count])[..], Some(count))
            );
            let data = bench.pair.world.desk(CLIENT).octets(into);
            assert!(
                data.iter()
                    .copied()
                    .eq((offset..offset + count).map(program::pattern))
            );
        }
        let server = &bench.pair.world.halves[SERVER].counters;
        assert_eq!(server.write_bytes, (1 << 20) + 65_536 + 5 + 4097);
        let client = &bench.pair.world.halves[CLIENT].counters;
        assert_eq!(client.remote_invalidations, 4);
        bench.end();
    }
}

#[test]
fn read_ends_where_the_source_ends() {
    let mut bench = Bench::new(Version::Two);
    assert_eq!(
        results(&bench.ask(program::READ, &[SOURCE_BYTES, 1])),
        words(&[0])
    );
    assert_eq!(
        results(&bench.ask(program::READ, &[u32::MAX, u32::MAX])),
        words(&[0])
    );
    let reply = bench.ask(program::READ, &[SOURCE_BYTES - 2, 100]);
    let [a, b] = [SOURCE_BYTES - 2, SOURCE_BYTES - 1].map(program::pattern);
    assert_eq!(results(&reply)[..6], [0, 0, 0, 2, a, b]);
    bench.end();
}

#[test]
fn write_is_read_by_the_server_in_place() {
    for version in VERSIONS {
        let mut bench = Bench::new(version);
        for len in [1_u32, 4, 4097, 1 << 20] {
            let data: Vec<u8> = (0..len).map(program::pattern).collect();
            let mut arguments = words(&[1, len]);
            arguments.extend(&data);
            arguments.resize(arguments.len().next_multiple_of(4), 0);
            let slot = bench.submit(of(program::WRITE), &arguments, Some(len), &[], None);
            let expected = words(&[len, program::checksum(&data)]);
            assert_eq!(results(&bench.reply(slot).0), expected);
        }
        let server = &bench.pair.world.halves[SERVER].counters;
        assert!(
            server.read_bytes >= 4097 + (1 << 20),
            "the long ones by RDMA Read"
        );
        bench.end();
    }
}

#[test]
fn errors_are_rpc_errors() {
    let mut bench = Bench::new(Version::Two);
    for ((number, version, procedure), outcome) in [
        ((100_003, 3, 0), Outcome::Accepted(1)),
        ((program::PROGRAM, 9, 0), Outcome::Accepted(2)),
        (
            (program::PROGRAM, program::VERSION, 77),
            Outcome::Accepted(3),
        ),
        (
            (program::PROGRAM, program::VERSION, program::READ),
            Outcome::Accepted(4),
        ),
    ] {
        let slot = bench.submit((number, version, procedure), &[], None, &[], None);
        let reply = bench.reply(slot).0;
        assert_eq!(ReplyHeader::parse(&reply).unwrap().outcome, outcome);
    }
    let mut counters = rpcrdma_upper::counters::Counters::default();
    bench.pair.server.upper.count(&mut counters);
    assert_eq!(counters.local_errors, 4);
    bench.end();
}
