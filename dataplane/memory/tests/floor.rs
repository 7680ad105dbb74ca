//! The floor, measured on this fabric.

use rpcrdma_fabric::floor::{FloorError, send_receive_ping_pong};
use rpcrdma_memory::MemoryFabric;

#[test]
fn every_round_is_recorded() {
    let mut count = 0;
    let mut fabric = MemoryFabric::new();
    let record = |_| {
        count += 1;
        count < 1000
    };
    send_receive_ping_pong(&mut fabric, "floor", 64, |_| {}, record).expect("a floor");
    assert_eq!(count, 1000);
}

#[test]
fn impossible_messages_are_an_error_not_a_hang() {
    let mut fabric = MemoryFabric::new();
    let measured = send_receive_ping_pong(&mut fabric, "floor", 8 << 20, |_| {}, |_| true);
    assert!(
        matches!(measured, Err(FloorError::Fabric(_))),
        "{measured:?}"
    );
}
