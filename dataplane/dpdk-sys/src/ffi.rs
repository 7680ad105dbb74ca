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

/// Frames of one burst at most: `SHIM_BURST`.
pub(crate) const BURST: u16 = 32;
/// Octets in front of what a frame of the pool's begins with: `SHIM_HEADROOM`.
pub(crate) const HEADROOM: u16 = 128;
/// `SHIM_FRAME_CHAINED`.
pub(crate) const CHAINED: u16 = 1;
/// `SHIM_FRAME_DAMAGED`.
pub(crate) const DAMAGED: u16 = 2;

/// `struct shim_frame`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) handle: *mut c_void,
    pub(crate) buffer: *mut u8,
    pub(crate) room: u16,
    pub(crate) offset: u16,
    pub(crate) length: u16,
    pub(crate) flags: u16,
}

/// None at all.
pub(crate) const NO_FRAME: Frame = Frame {
    handle: std::ptr::null_mut(),
    buffer: std::ptr::null_mut(),
    room: 0,
    offset: 0,
    length: 0,
    flags: 0,
};

/// `struct shim_port`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub(crate) pool: *mut c_void,
    pub(crate) number: u16,
    pub(crate) mac: [u8; 6],
    pub(crate) socket: i32,
    pub(crate) mbufs: u32,
    pub(crate) driver: [c_char; 32],
    pub(crate) call: *const c_char,
}

/// `struct shim_port_counts`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PortCounts {
    pub(crate) frames_in: u64,
    pub(crate) bytes_in: u64,
    pub(crate) frames_out: u64,
    pub(crate) bytes_out: u64,
    pub(crate) missed: u64,
    pub(crate) errors_in: u64,
    pub(crate) errors_out: u64,
    pub(crate) no_buffer: u64,
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

    pub(crate) safe fn shim_port_count() -> u32;
    pub(crate) safe fn shim_pool_bytes(mtu: u16, mbufs: u32) -> u64;
    pub(crate) fn shim_port_open(
        name: *const c_char,
        mtu: u16,
        mbufs: u32,
        port: *mut Port,
    ) -> c_int;
    pub(crate) safe fn shim_port_close(number: u16) -> c_int;
    pub(crate) safe fn shim_port_is_up(number: u16) -> c_int;
    pub(crate) fn shim_port_counts(number: u16, counts: *mut PortCounts) -> c_int;
    pub(crate) fn shim_port_receive(number: u16, frames: *mut Frame, room: u16) -> u16;
    pub(crate) fn shim_port_send(number: u16, frames: *const Frame, count: u16) -> u16;
    pub(crate) fn shim_frames_take(pool: *mut c_void, frames: *mut Frame, count: u16) -> c_int;
    pub(crate) fn shim_frames_free(frames: *const Frame, count: u16);
}
