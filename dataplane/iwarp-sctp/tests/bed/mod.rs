//! The bed of `promises`, on SCTP that stands in for SCTP.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test file uses its part"
)]

#[path = "../../../fabric/tests/promises/bed.rs"]
mod promised;

use promised::Kind;
pub use promised::{End, RECEIVE_BYTES, RECEIVES, wanted};
pub use rpcrdma_iwarp_sctp::Error;
use rpcrdma_iwarp_sctp::stand_in::{Hub, Manner};
use rpcrdma_iwarp_sctp::{IwarpFabric, Settings};
use std::net::{IpAddr, Ipv4Addr};

pub type Bed = promised::Bed<IwarpFabric<Hub>>;

/// Longest private data of a request, octets.
pub const PRIVATE_DATA: usize = 508;

pub const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A bed on that network.
pub fn bed(hub: &Hub, settings: &Settings) -> Bed {
    let (hub, settings) = (hub.clone(), settings.clone());
    let another = move || IwarpFabric::new(hub.clone(), settings.clone()).expect("a fabric");
    let fabric = another();
    let kind = Kind {
        another: Box::new(another),
        is_unknown: |error| matches!(error, Error::NoConnection(_)),
        iwarp: true,
        rxe: false,
    };
    Bed::new(HERE, fabric, kind)
}

/// Runs a test on a network of its own.
pub fn with_bed(test: impl FnOnce(Bed)) {
    test(bed(&Hub::new(Manner::default()), &Settings::default()));
}

/// One test for each manner of chunks.
pub fn with_each(test: impl Fn(&mut Bed)) {
    for (chunk_bytes, seed) in [(1400, None), (518, Some(1)), (65_000, Some(2))] {
        let manner = Manner {
            chunk_bytes,
            seed,
            ..Manner::default()
        };
        test(&mut bed(&Hub::new(manner), &Settings::default()));
    }
}
