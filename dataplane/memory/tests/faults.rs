//! Faults on purpose: they change when things happen, never what.

mod support;

use rpcrdma_fabric::{Access, Completion, Outcome, Port, Posted, QueuePair, Refused, WorkError};
use rpcrdma_memory::{Faults, Settings};
use std::collections::HashMap;
use support::{NOTHING, Node, Two, received, settings, span};

fn two(faults: Faults) -> Two {
    let settings = Settings {
        faults: Some(faults),
        ..settings()
    };
    Two::with(&settings, &settings)
}

const OFTEN: u16 = 30_000;

/// Everything that two ports report while messages cross on four connections, reap by reap.
fn history(faults: Faults) -> Vec<Vec<Completion>> {
    let mut t = two(faults);
    let mut pairs = vec![(t.qa, t.qb)];
    pairs.extend((0..3).map(|n| t.more((10 + n, 20 + n))));
    let mut reaps = Vec::new();
    let mut batch = [NOTHING; 16];
    for step in 0_u64..400 {
        for &(qa, qb) in &pairs {
            let _ = t.b.receive(qb, span(step % 8 * 64, 64), step);
            let _ = t.a.send(qa, &step.to_le_bytes(), step);
        }
        for node in [&mut t.a, &mut t.b] {
            let count = node.port.reap(&mut batch);
            reaps.push(batch[..count].to_vec());
        }
    }
    reaps
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let faults = Faults {
        seed: 11,
        delay: OFTEN,
        delay_reaps: 9,
        drop: 50,
        refuse_window: OFTEN,
        not_ready: OFTEN,
        reorder: true,
    };
    let first = history(faults);
    assert_eq!(first, history(faults));
    assert_ne!(first, history(Faults { seed: 12, ..faults }));
}

#[test]
fn delays_and_reordering_keep_the_order_of_each_queue_pair() {
    let faults = Faults {
        delay: OFTEN,
        delay_reaps: 5,
        reorder: true,
        ..Faults::default()
    };
    let mut last = HashMap::new();
    let mut changes = 0;
    let mut previous = None;
    for completion in history(faults).into_iter().flatten() {
        let Outcome::Received { .. } = completion.outcome else {
            continue;
        };
        let before = last.insert(completion.token, completion.id.0);
        assert!(
            before.is_none_or(|before| before < completion.id.0),
            "{completion:?}"
        );
        changes += u32::from(previous > Some(completion.id.0));
        previous = Some(completion.id.0);
    }
    assert!(
        last.len() == 4 && changes > 20,
        "queue pairs did change places: {changes}"
    );
}

#[test]
fn delayed_work_completes_in_order_and_all_of_it() {
    let mut t = two(Faults {
        delay: OFTEN,
        delay_reaps: 4,
        ..Faults::default()
    });
    let to =
        t.b.port
            .expose(t.qb, span(0, 64), Access::Write)
            .expect("free");
    let mut expected = Vec::new();
    let mut seen = Vec::new();
    for n in 0..200 {
        match t.a.write(t.qa, span(0, 8), to, n).expect("room") {
            Posted::Pending => expected.push((n, Outcome::Done)),
            Posted::Done => assert_eq!(expected.len(), seen.len(), "{n} overtook earlier work"),
        }
        let mut batch = [NOTHING; 4];
        let count = t.a.port.reap(&mut batch);
        seen.extend(batch[..count].iter().map(|it| (it.id.0, it.outcome)));
    }
    seen.extend(t.a.outcomes());
    assert!(expected.len() > 50);
    assert_eq!(seen, expected);
}

#[test]
fn a_send_may_find_no_receive_at_first() {
    let mut t = two(Faults {
        not_ready: u16::MAX,
        ..Faults::default()
    });
    t.b.receive(t.qb, span(0, 8), 1).expect("room");
    assert_eq!(t.a.send(t.qa, b"x", 2), Ok(Posted::Pending));
    assert_eq!(t.b.outcomes(), []);
    assert_eq!(t.a.outcomes(), [(2, Outcome::Done)]);
    assert_eq!(t.b.outcomes(), [(1, received(1))]);
}

#[test]
fn windows_may_be_refused() {
    let mut t = two(Faults {
        refuse_window: OFTEN,
        ..Faults::default()
    });
    let mut expose = |qp: QueuePair| t.b.port.expose(qp, span(0, 8), Access::Read);
    let refused = (0..16)
        .filter(|_| expose(t.qb) == Err(Refused::Busy))
        .count();
    assert!((1..16).contains(&refused), "{refused} of 16");
}

#[test]
fn a_connection_may_be_dropped() {
    let mut t = two(Faults {
        drop: u16::MAX,
        ..Faults::default()
    });
    t.b.receive(t.qb, span(0, 8), 1).expect("room");
    assert_eq!(t.a.send(t.qa, b"x", 2), Ok(Posted::Pending));
    let failed = Outcome::Failed(WorkError::Transport);
    assert_eq!(t.a.outcomes(), [(2, failed), (0, Outcome::Disconnected)]);
    assert_eq!(t.b.outcomes().last(), Some(&(0, Outcome::Disconnected)));
}

#[test]
fn a_port_that_holds_something_back_does_not_sleep() {
    let mut t = two(Faults {
        delay: u16::MAX,
        delay_reaps: 50,
        ..Faults::default()
    });
    let to =
        t.b.port
            .expose(t.qb, span(0, 64), Access::Write)
            .expect("free");
    assert_eq!(t.a.write(t.qa, span(0, 8), to, 1), Ok(Posted::Pending));
    assert!(!t.a.port.arm());
    let settle = |node: &mut Node| node.outcomes();
    assert_eq!(settle(&mut t.a), [(1, Outcome::Done)]);
    assert!(t.a.port.arm());
}
