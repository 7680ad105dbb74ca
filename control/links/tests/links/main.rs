//! Links on the memory fabric, with a clock that jumps.

mod addresses;
mod bench;
mod leases;
mod log;
mod memory;
mod routers;
mod stranger;
mod words;
