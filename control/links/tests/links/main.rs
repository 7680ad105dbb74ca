//! Links on the memory fabric, with a clock that jumps.

mod addresses;
mod bench;
mod memory;
mod routers;
