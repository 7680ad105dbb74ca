//! What is asked of the crate's bytes from outside: golden vectors, a second opinion on generated octets, what is emitted,
//! and the fuzz corpora.
#![allow(
    clippy::cast_possible_truncation,
    reason = "what the tests count and cut up is small"
)]

mod agreement;
#[path = "../../fuzz/bodies.rs"]
mod bodies;
mod corpus;
mod describe;
mod emission;
#[path = "../oracle/mod.rs"]
mod oracle;
mod vector;
mod vectors;
