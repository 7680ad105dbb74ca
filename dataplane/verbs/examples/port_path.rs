//! Passes a message to and fro between two ports on the device that is not there, for counting the
//! instructions of the ports' own code: `valgrind --tool=callgrind --toggle-collect='*turn_until*'
//! port_path COUNT`, less those of `stand_in` and of what it allocates. The README has the counts.
//!
//! One round is two messages of the length of a NULL call, 32 octets of header and 44 of RPC, and
//! with each its receive posted again, one ring, and reaping at both ends until there is nothing, as
//! an lcore does.

use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::connect::{Event, Fabric, PortWanted};
use rpcrdma_fabric::{Completion, Octets, Outcome, Port, QueuePair, Span, Token, WorkId};
use rpcrdma_verbs::VerbsPort;
use rpcrdma_verbs::stand_in::StandInFabric;
use std::sync::Arc;

const RECEIVES: u64 = 8;
const RECEIVE_BYTES: u32 = 1024;

/// One end.
struct End {
    port: VerbsPort,
    pair: QueuePair,
}

fn receive(number: u64) -> Span {
    Span {
        offset: 4096 + number * u64::from(RECEIVE_BYTES),
        len: RECEIVE_BYTES,
    }
}

fn one_way(from: &mut End, to: &mut End) {
    let rpc = Span { offset: 0, len: 44 };
    let message = [Octets::Bytes(&[1; 32]), Octets::Span(rpc)];
    let sent = from.port.send(from.pair, &message, None, WorkId(0));
    assert!(sent.is_ok(), "{sent:?}");
    from.port.ring();
    let received = to.port.reap_one();
    let Some(Completion { id, outcome, .. }) = received else {
        panic!("nothing came");
    };
    assert!(matches!(outcome, Outcome::Received { .. }));
    assert!(to.port.reap_one().is_none());
    let posted = to.port.post_receive(to.pair, receive(id.0), id);
    assert!(posted.is_ok(), "{posted:?}");
    assert!(from.port.reap_one().is_none());
}

/// Never inlined, so that a profiler can be told to look at nothing else.
#[inline(never)]
fn turn_until(one: &mut End, other: &mut End, rounds: u64) {
    for _ in 0..rounds {
        one_way(one, other);
        one_way(other, one);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::args().nth(1).ok_or("usage: port_path COUNT")?;
    let rounds = rounds.parse()?;
    let wanted = PortWanted {
        device: None,
        processor: None,
        queue_pairs: 1,
        send_depth: 64,
        receive_depth: 64,
        windows: 16,
        message_bytes: 4096,
    };
    let mut fabric = StandInFabric::new()?;
    let mut open = || {
        let arena = Arc::new(Arena::map(1 << 20, Hugepages::Off)?);
        fabric.open_port(arena, &wanted)
    };
    let ((ask, mut asking), (answer, mut answering)) = (open()?, open()?);
    fabric.listen("here")?;
    let connection = fabric.resolve("here")?;
    let pair = asking.adopt(fabric.take(connection, ask)?, Token(1));
    let mut one = End {
        pair: pair.map_err(|_| "no room")?,
        port: asking,
    };
    fabric.connect(connection, &[])?;
    let request = std::iter::from_fn(|| fabric.poll()).find_map(|event| match event {
        Event::Request { connection, .. } => Some(connection),
        _ => None,
    });
    let connection = request.ok_or("no request")?;
    let pair = answering.adopt(fabric.take(connection, answer)?, Token(2));
    let mut other = End {
        pair: pair.map_err(|_| "no room")?,
        port: answering,
    };
    fabric.accept(connection, &[])?;
    for end in [&mut one, &mut other] {
        for number in 0..RECEIVES {
            let id = WorkId(number);
            let posted = end.port.post_receive(end.pair, receive(number), id);
            posted.map_err(|_| "no room")?;
        }
        end.port.ring();
    }
    turn_until(&mut one, &mut other, rounds);
    Ok(())
}
