//! The shim's functions, as `shim/shim.h` describes them.

use std::ffi::{c_char, c_int, c_void};

/// A job of an lcore.
pub(crate) type Job = extern "C" fn(argument: *mut c_void) -> c_int;
/// Where log messages go.
pub(crate) type LogSink = extern "C" fn(level: u32, octets: *const c_char, length: usize);
/// Who knows the counters.
pub(crate) type Counters =
    extern "C" fn(parameters: *const c_char, to: *mut Counter, room: u32) -> c_int;

/// No socket in particular: `SHIM_ANY_SOCKET`.
pub(crate) const ANY_SOCKET: i32 = -1;
/// Octets of a counter's name, with the zero octet that ends it: `SHIM_NAME_LENGTH`.
pub(crate) const NAME_LENGTH: usize = 112;

/// `struct shim_zone`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneParts {
    pub(crate) handle: *const c_void,
    pub(crate) start: *mut c_void,
    pub(crate) length: u64,
    pub(crate) page: u64,
    pub(crate) socket: i32,
}

/// `struct shim_counter`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter {
    pub(crate) name: [u8; NAME_LENGTH],
    pub(crate) value: u64,
}

unsafe extern "C" {
    pub(crate) safe fn shim_version() -> *const c_char;
    pub(crate) safe fn shim_error_text(error: c_int) -> *const c_char;
    pub(crate) safe fn shim_log_to(sink: LogSink) -> c_int;

    pub(crate) fn shim_eal_init(count: c_int, arguments: *mut *mut c_char) -> c_int;
    pub(crate) fn shim_eal_cleanup() -> c_int;
    pub(crate) safe fn shim_has_hugepages() -> c_int;
    pub(crate) safe fn shim_iova_is_virtual() -> c_int;
    pub(crate) safe fn shim_runtime_directory() -> *const c_char;

    pub(crate) fn shim_lcore_launch(lcore: u32, job: Job, argument: *mut c_void) -> c_int;
    pub(crate) safe fn shim_lcore_waits(lcore: u32) -> c_int;
    pub(crate) safe fn shim_lcore_join(lcore: u32) -> c_int;
    pub(crate) safe fn shim_lcore_exists(lcore: u32) -> c_int;
    pub(crate) safe fn shim_lcore_current() -> u32;
    pub(crate) safe fn shim_lcores_max() -> u32;

    pub(crate) fn shim_zone_reserve(
        name: *const c_char,
        length: u64,
        socket: i32,
        align: u32,
        zone: *mut ZoneParts,
    ) -> c_int;
    pub(crate) fn shim_zone_free(handle: *const c_void) -> c_int;

    pub(crate) fn shim_telemetry_answer(
        command: *const c_char,
        help: *const c_char,
        counters: Counters,
    ) -> c_int;
}
