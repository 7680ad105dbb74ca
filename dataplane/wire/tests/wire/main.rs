//! Everything that is asked of the crate from outside: golden vectors, a second opinion on
//! generated messages, what is emitted, and the fuzz corpora.
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
mod limits;
mod message;
#[path = "../oracle/mod.rs"]
mod oracle;
mod properties;
mod rpc;
mod vector;
mod vectors;
