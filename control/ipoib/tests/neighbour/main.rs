//! Neighbours on links that are made of values: what is asked, told, believed, lost.
#![allow(
    clippy::cast_possible_truncation,
    reason = "what the tests count is small"
)]

mod bounds;
mod disbelief;
mod link;
mod resolution;
mod states;
