//! The crate and the oracle on generated messages: one mind about what is taken, what it says,
//! and what goes back for the rest.

use crate::bodies;
use crate::message::{fresh, spoilt};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rpcrdma_wire::{Body, Limits, Reject, parse};
use std::collections::BTreeSet;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn on_messages_as_made(octets in fresh()) {
        bodies::parse(&octets);
    }

    #[test]
    fn on_spoilt_messages(octets in spoilt()) {
        bodies::parse(&octets);
    }

    #[test]
    fn on_noise(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        bodies::parse(&octets);
        bodies::rpc(&octets);
    }
}

/// Agreement on messages that are all refused at the first word would prove little.
#[test]
fn the_generator_reaches_every_body_and_nearly_every_reject() {
    let mut runner = TestRunner::deterministic();
    let mut rejects: BTreeSet<&str> = Reject::ALL.iter().map(|reject| reject.name()).collect();
    let mut bodies = BTreeSet::new();
    for _ in 0..20_000 {
        let octets = spoilt().new_tree(&mut runner).unwrap().current();
        match parse(&octets, &Limits::default()) {
            Ok(header) => {
                let many = match header.body {
                    Body::Msg(lists) | Body::NoMsg(lists) => lists.reads.len() > 1,
                    _ => false,
                };
                bodies.insert(format!("{:?} {many}", header.body.procedure()));
            }
            Err(reject) => {
                rejects.remove(reject.name());
            }
        }
    }
    // That one is told by role alone.
    assert_eq!(rejects, BTreeSet::from(["error-to-responder"]));
    assert_eq!(bodies.len(), 9, "{bodies:?}");
}
