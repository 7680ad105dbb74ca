//! Whole Calls of every workload over this fabric, on SCTP that stands in for SCTP.

use rpcrdma_iwarp_sctp::stand_in::{Hub, Manner};
use rpcrdma_iwarp_sctp::{IwarpFabric, Settings};
use rpcrdma_perf::trial;

fn every_workload(manner: Manner) {
    let make = || Ok(IwarpFabric::new(Hub::new(manner), Settings::default())?);
    trial::every_workload_at("127.0.0.1:0", make).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn every_workload_is_answered() {
    every_workload(Manner::default());
}

/// The least chunks there are, and long ones.
#[test]
fn whatever_the_longest_chunk() {
    for chunk_bytes in [518, 65_000] {
        every_workload(Manner {
            chunk_bytes,
            ..Manner::default()
        });
    }
}

/// Chunks come in any order, and few may be under way.
#[test]
fn chunks_may_overtake_one_another() {
    for seed in 0..3 {
        every_workload(Manner {
            seed: Some(seed),
            window: 24,
            ..Manner::default()
        });
    }
}
