//! A tract of EAL's memory, for the arenas of one socket.

#![expect(unsafe_code, reason = "says that a zone is good memory")]

use dpdk_sys::{Eal, Fault, Socket};
use rpcrdma_fabric::arena::{Pages, Tract};
use std::sync::Arc;

/// Where a zone begins, and so its first arena: at a huge page, whatever EAL's are.
const ALIGN: u32 = 2 << 20;
/// The size of a page that is not huge.
const ORDINARY: u64 = 4096;

/// Has EAL reserve `bytes` octets on `socket`, under a name of at most 31 octets. They go back to
/// EAL with the last arena that was carved from them.
///
/// # Errors
///
/// EAL has no such run of memory there.
pub fn tract(eal: &'static Eal, name: &str, bytes: u64, socket: Socket) -> Result<Tract, Fault> {
    let zone = eal.zone(name, bytes, socket, ALIGN)?;
    let start = zone.start();
    let pages = match zone.page_bytes() {
        ..=ORDINARY => Pages::Ordinary,
        _ => Pages::Reserved,
    };
    // SAFETY: a zone's octets are initialised, readable and writable until it is dropped; it is
    // ours alone, and moves into the tract's keeper here.
    let tract = unsafe { Tract::new(start, bytes, pages, Arc::new(zone)) };
    tract.map_err(|error| Fault {
        call: "rte_memzone_reserve_aligned",
        errno: error.raw_os_error().unwrap_or_default(),
        meaning: error.to_string(),
        said: Vec::new(),
    })
}
