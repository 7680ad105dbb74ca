//! The fuzz corpora, replayed; and the fuzz bodies, over random scripts.

use crate::bodies;
use proptest::prelude::*;

fn replay(target: &str, body: fn(&[u8])) {
    rpcrdma_proof::corpus::replay(env!("CARGO_MANIFEST_DIR"), target, body);
}

#[test]
fn segment() {
    replay("segment", bodies::segment);
}

#[test]
fn session() {
    replay("session", bodies::session);
}

#[test]
fn receive() {
    replay("receive", bodies::receive);
}

/// A script of the session target in which most steps lead somewhere.
fn steps() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop_oneof![3 => Just(0_u8), 1 => Just(0x80)];
    let step = prop_oneof![
        8 => 0_u8..17,
        6 => 18_u8..64,
        4 => 64_u8..112,
        1 => 112_u8..128,
    ];
    let one = (stream, step, prop::collection::vec(0_u8..4, 0..3));
    let one = one.prop_map(|(stream, step, rest)| [vec![stream | step], rest].concat());
    prop::collection::vec(one, 0..60).prop_map(|steps| [vec![0], steps.concat()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_session(script in steps()) {
        bodies::session(&script);
    }

    #[test]
    fn anything_received(script in prop::collection::vec(any::<u8>(), 0..120)) {
        bodies::receive(&script);
    }
}
