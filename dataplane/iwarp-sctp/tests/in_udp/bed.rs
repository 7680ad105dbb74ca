//! The bed of `promises`, on SCTP in UDP.

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
use rpcrdma_iwarp_sctp::{InUdp, IwarpFabric, Settings};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

pub type Bed = promised::Bed<IwarpFabric<InUdp>>;

/// Longest private data of a request, octets.
pub const PRIVATE_DATA: usize = 508;

fn fabric(chunk_bytes: u16) -> Result<IwarpFabric<InUdp>, Error> {
    let settings = Settings {
        chunk_bytes,
        ..Settings::default()
    };
    // Who is not there is not waited for so long.
    let sctp = rpcrdma_sctp::Settings {
        attempts: 2,
        rto_initial: Duration::from_millis(100),
        ..rpcrdma_sctp::Settings::default()
    };
    IwarpFabric::in_udp(settings, sctp)
}

fn with(chunk_bytes: u16, test: impl FnOnce(Bed)) {
    let fabric = match self::fabric(chunk_bytes) {
        Ok(fabric) => fabric,
        Err(error) => return println!("SKIPPED: {error}"),
    };
    let kind = Kind {
        another: Box::new(move || self::fabric(chunk_bytes).expect("another fabric")),
        is_unknown: |error| matches!(error, Error::NoConnection(_)),
        iwarp: true,
        rxe: false,
    };
    test(Bed::new(IpAddr::V4(Ipv4Addr::LOCALHOST), fabric, kind));
}

/// Runs a test where there is the library, and says where there is none.
pub fn with_bed(test: impl FnOnce(Bed)) {
    with(u16::MAX, test);
}

/// One test for each of a few lengths of chunks.
pub fn with_each(test: impl Fn(&mut Bed)) {
    for chunk_bytes in [518, 1400, u16::MAX] {
        with(chunk_bytes, |mut bed| test(&mut bed));
    }
}
