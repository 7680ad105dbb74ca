//! A port that has everything it needs allocates nothing more: not for a message, a segment or a
//! chunk, whatever the way it goes. Counted on SCTP that stands in for SCTP, which does not either.

mod bed;

use bed::{Bed, End, bed};
use rpcrdma_fabric::{
    Access, Completion, Octets, Outcome, Port, Posted, Refused, Span, Token, WorkId,
};
use rpcrdma_iwarp_sctp::Settings;
use rpcrdma_iwarp_sctp::stand_in::{Hub, Manner};
use rpcrdma_proof::counting::{Counting, allocations};

#[global_allocator]
static COUNTING: Counting = Counting;

/// Until every list is as long as it will be.
const STARTING: u32 = 100;
const ROUNDS: u32 = 2000;

/// Where nobody's receives are: see the bed.
const SOURCE: Span = Span {
    offset: 8 << 20,
    len: 9000,
};
const SINK: Span = Span {
    offset: 9 << 20,
    len: 9000,
};

/// What has come to both ends.
#[derive(Default)]
struct Seen {
    done: u32,
    invalidated: u32,
    received: Option<WorkId>,
}

fn look(port: &mut impl Port, (a, b): (End, End), seen: &mut Seen) {
    let nothing = Completion {
        token: Token(0),
        id: WorkId(0),
        outcome: Outcome::Room,
    };
    let mut reaped = [nothing; 8];
    port.ring();
    let count = port.reap(&mut reaped);
    for completion in &reaped[..count] {
        match completion.outcome {
            Outcome::Done => seen.done += 1,
            Outcome::Received { invalidated, .. } => {
                assert_eq!(completion.token, b.token);
                seen.received = Some(completion.id);
                if let Some(handle) = invalidated {
                    port.retired_by_peer(b.pair, handle);
                    seen.invalidated += 1;
                }
            }
            Outcome::Room => {}
            Outcome::Failed(_) | Outcome::Disconnected => panic!("{completion:?} of {:?}", a.token),
        }
    }
}

fn pending(posted: Result<Posted, Refused>) {
    assert_eq!(posted, Ok(Posted::Pending));
}

/// A Write into a window, a Read, then a Send that invalidates the window, half of it from outside
/// the arena.
fn round(bed: &mut Bed, ends: (End, End), seen: &mut Seen) {
    let (a, b) = ends;
    let port = &mut bed.port;
    let window = port.expose(b.pair, SINK, Access::Write).expect("a window");
    let source = port.expose(b.pair, SOURCE, Access::Read).expect("a window");
    pending(port.write(a.pair, SOURCE, window, WorkId(1 << 40)));
    let into = Span {
        offset: 10 << 20,
        len: source.length,
    };
    pending(port.read(a.pair, into, source, WorkId(1 << 41)));
    let message = [
        Octets::Bytes(b"word"),
        Octets::Span(Span {
            len: 3000,
            ..SOURCE
        }),
    ];
    let sent = port.send(a.pair, &message, Some(window.handle), WorkId(1 << 42));
    let due = seen.done + 2 + u32::from(sent.expect("room") == Posted::Pending);
    let invalidated = seen.invalidated + 1;
    // So many turns are more than enough; a clock would be another's business.
    for _ in 0..100_000 {
        if seen.done == due && seen.invalidated == invalidated {
            break;
        }
        look(port, ends, seen);
    }
    assert_eq!((seen.done, seen.invalidated), (due, invalidated));
    let retired = port.retire(b.pair, source.handle, WorkId(1 << 43));
    assert_eq!(retired, Ok(Posted::Done));
    let id = seen.received.take().expect("a message");
    let number = u32::try_from(id.0).expect("a receive's");
    let memory = Span {
        offset: u64::from(number * bed::RECEIVE_BYTES),
        len: bed::RECEIVE_BYTES,
    };
    port.post_receive(b.pair, memory, id).expect("room");
}

#[test]
fn a_message_allocates_nothing() {
    for seed in [None, Some(3)] {
        let manner = Manner {
            seed,
            ..Manner::default()
        };
        let mut bed = bed(&Hub::new(manner), &Settings::default());
        let ends = bed.connection();
        let mut seen = Seen::default();
        for _ in 0..STARTING {
            round(&mut bed, ends, &mut seen);
        }
        let before = allocations();
        for _ in 0..ROUNDS {
            round(&mut bed, ends, &mut seen);
        }
        assert_eq!(allocations() - before, 0, "{seed:?}");
    }
}

/// The counter counts.
#[test]
fn allocations_are_seen() {
    let before = allocations();
    drop(std::hint::black_box(Box::new(7)));
    assert_eq!(allocations() - before, 1);
}
