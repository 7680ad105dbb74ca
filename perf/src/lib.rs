//! Load generator and latency microscope for RPC over RDMA.
//!
//! It owns the load (a closed loop of Calls, timed), the test bed that joins it to the built-in
//! service on the lcores that the appliance runs on, and the report. It promises that what is
//! timed is what the appliance runs: the same engine, loop and fabric, no short cut between.
//!
//! Start reading at [`bed`], then [`load`].

#![forbid(unsafe_code)]

pub mod args;
pub mod bed;
pub mod ends;
pub mod floor;
pub mod load;
pub mod nfs;
#[cfg(feature = "dpdk")]
pub mod port;
pub mod progress;
pub mod report;
#[cfg(feature = "trial")]
pub mod trial;
pub mod workload;
