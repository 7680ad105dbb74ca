//! Fuzz target: any message of neighbour discovery, with the addresses of its packet, judged by the crate and by the oracle.
#![no_main]
#![allow(dead_code, reason = "each target uses one of the shared bodies")]

#[path = "../bodies.rs"]
mod bodies;
#[path = "../../tests/octets/describe.rs"]
mod describe;
#[path = "../../tests/oracle/mod.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| bodies::discovery(octets));
