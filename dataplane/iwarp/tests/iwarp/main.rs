//! Everything that is asked of the crate from outside: the rules of the texts, section by section;
//! golden vectors and a second opinion; two ends and a network that reorders; peers without
//! manners; the fuzz corpora.
#![allow(
    clippy::cast_possible_truncation,
    reason = "what the tests count and cut up is small"
)]

#[path = "../../fuzz/bodies.rs"]
mod bodies;
mod corpus;
mod describe;
mod errors;
mod hostile;
mod ledger;
mod operations;
#[path = "../oracle/mod.rs"]
mod oracle;
mod phases;
mod session;
mod simulation;
mod support;
mod vectors;
