//! Fuzz target: any frames, at stations of both kinds.
#![no_main]

#[path = "../../tests/link/bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| bodies::take(octets));
