//! The bed of `promises`, on a real device.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test file uses its part"
)]

#[path = "../../../fabric/tests/promises/bed.rs"]
mod promised;

use promised::Kind;
pub use promised::{End, PATIENCE, RECEIVE_BYTES, RECEIVES, wanted};
pub use rpcrdma_verbs::Error;
use rpcrdma_verbs::{Expose, LinkState, Settings, Transport, VerbsFabric, survey};
use std::net::IpAddr;

pub type Bed = promised::Bed<VerbsFabric>;

/// Longest private data of a request, octets.
pub const PRIVATE_DATA: usize = 56;

/// The address of a device here, or why there is none.
pub fn address() -> Result<IpAddr, String> {
    let found = survey(&Settings::default()).map_err(|error| error.to_string())?;
    let links = found.devices.iter().flat_map(|device| &device.links);
    let active = links.filter(|link| link.state == LinkState::Active);
    // Devices that speak TCP have no address in their GIDs: the environment says.
    let by_gid = active.filter_map(|link| link.chosen[0]?.ip()).next();
    let told = std::env::var("RPCRDMA_TEST_ADDRESS")
        .ok()
        .and_then(|text| text.parse().ok());
    told.or(by_gid)
        .ok_or_else(|| "no RDMA device: none has a link with an IPv4 address".to_owned())
}

fn bed(ip: IpAddr, settings: Settings) -> Bed {
    let found = survey(&Settings::default()).expect("it was there");
    let fabric = VerbsFabric::new(settings).expect("a fabric");
    let kind = Kind {
        another: Box::new(|| VerbsFabric::new(Settings::default()).expect("another fabric")),
        is_unknown: |error| matches!(error, Error::NoConnection(_)),
        iwarp: found
            .devices
            .iter()
            .any(|device| device.transport == Transport::Iwarp),
        rxe: found
            .devices
            .iter()
            .any(|device| !device.limits.extended_calls),
    };
    Bed::new(ip, fabric, kind)
}

/// Runs a test where there is a device, and says where there is none.
pub fn with_bed(test: impl FnOnce(Bed)) {
    match address() {
        Ok(ip) => test(bed(ip, Settings::default())),
        Err(why) => println!("SKIPPED: {why}"),
    }
}

/// One test for each means that this device has: as configured, and short-lived regions.
pub fn with_each(test: impl Fn(&mut Bed)) {
    let ip = match address() {
        Ok(ip) => ip,
        Err(why) => return println!("SKIPPED: {why}"),
    };
    for expose in [Expose::Auto, Expose::Region] {
        let settings = Settings {
            expose,
            ..Settings::default()
        };
        test(&mut bed(ip, settings));
    }
}
