//! The fuzz corpora, replayed.

use crate::bodies;

fn replay(target: &str, body: fn(&[u8])) {
    rpcrdma_proof::corpus::replay(env!("CARGO_MANIFEST_DIR"), target, body);
}

#[test]
fn parse() {
    replay("parse", bodies::parse);
}

#[test]
fn rpc() {
    replay("rpc", bodies::rpc);
}

#[test]
fn emit() {
    replay("emit", bodies::emit);
}
