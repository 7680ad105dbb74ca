//! The fuzz corpora, replayed.

use crate::bodies;

fn replay(target: &str, body: fn(&[u8])) {
    rpcrdma_proof::corpus::replay(env!("CARGO_MANIFEST_DIR"), target, body);
}

#[test]
fn mad() {
    replay("mad", bodies::mad);
}

#[test]
fn encapsulation() {
    replay("encapsulation", bodies::encapsulation);
}

#[test]
fn arp() {
    replay("arp", bodies::arp);
}

#[test]
fn discovery() {
    replay("discovery", bodies::discovery);
}
