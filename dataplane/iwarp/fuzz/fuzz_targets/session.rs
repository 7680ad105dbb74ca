//! Fuzz target: the session machine, its upper layer and its peer without manners.
#![no_main]
#![allow(dead_code, reason = "each target uses one of the shared bodies")]

#[path = "../bodies.rs"]
mod bodies;
#[path = "../../tests/iwarp/describe.rs"]
mod describe;
#[path = "../../tests/iwarp/ledger.rs"]
mod ledger;
#[path = "../../tests/oracle/mod.rs"]
mod oracle;
#[path = "../../tests/iwarp/support.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| bodies::session(octets));
