//! Loading the library, once.

use crate::Absent;
use libc::{c_char, c_int, c_long, c_uint, c_void, size_t};
use std::sync::OnceLock;

const NAME: &str = "libibumad.so.3";
/// `UMAD_CA_NAME_LEN`.
pub(super) const DEVICE_NAME: usize = 20;
/// The length of the header before each MAD that this crate is written for: with a P_Key index.
const HEADER_OCTETS: usize = size_of::<crate::frame::Header>();
/// Tells the version of the kernel's interface, where there is one.
const ABI_VERSION: &std::ffi::CStr = c"/sys/class/infiniband_mad/abi_version";

/// `struct umad_port`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct umad_port {
    pub(super) ca_name: [c_char; DEVICE_NAME],
    pub(super) portnum: c_int,
    pub(super) base_lid: c_uint,
    pub(super) lmc: c_uint,
    pub(super) sm_lid: c_uint,
    pub(super) sm_sl: c_uint,
    pub(super) state: c_uint,
    pub(super) phys_state: c_uint,
    pub(super) rate: c_uint,
    /// Network order.
    pub(super) capmask: u32,
    /// Network order.
    pub(super) gid_prefix: u64,
    /// Network order.
    pub(super) port_guid: u64,
    pub(super) pkeys_size: c_uint,
    pub(super) pkeys: *mut u16,
    pub(super) link_layer: [c_char; DEVICE_NAME],
}

/// Declares the table of calls and its loading.
macro_rules! table {
    ($(fn $name:ident($($kind:ty),*) -> $out:ty;)*) => {
        /// The calls, with the names of `umad.h`.
        pub(crate) struct Library {
            $(pub(super) $name: unsafe extern "C" fn($($kind),*) -> $out,)*
            /// Keeps the addresses above good.
            _library: libloading::Library,
        }

        impl Library {
            fn of(library: libloading::Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    $(
                        // SAFETY: the type is that of the header, which the series number in the library's name
                        // stands for; the table lives no longer than the library.
                        $name: unsafe {
                            *library.get::<unsafe extern "C" fn($($kind),*) -> $out>(
                                concat!(stringify!($name), "\0").as_bytes(),
                            )?
                        },
                    )*
                    _library: library,
                })
            }
        }
    };
}

table! {
    fn umad_init() -> c_int;
    fn umad_size() -> size_t;
    fn umad_get_cas_names(*mut [c_char; DEVICE_NAME], c_int) -> c_int;
    fn umad_get_port(*const c_char, c_int, *mut umad_port) -> c_int;
    fn umad_release_port(*mut umad_port) -> c_int;
    fn umad_open_port(*const c_char, c_int) -> c_int;
    fn umad_close_port(c_int) -> c_int;
    fn umad_register(c_int, c_int, c_int, u8, *mut c_long) -> c_int;
    fn umad_unregister(c_int, c_int) -> c_int;
    fn umad_send(c_int, c_int, *mut c_void, c_int, c_int, c_int) -> c_int;
    fn umad_recv(c_int, *mut c_void, *mut c_int, c_int) -> c_int;
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Library")
    }
}

static LIBRARY: OnceLock<Result<Library, Absent>> = OnceLock::new();

impl Library {
    /// Loads the library at the first call, and sees whether the kernel has what it needs, at each: a module may have been
    /// loaded since.
    ///
    /// # Errors
    /// [`Absent`], to be shown as it is.
    pub(crate) fn load() -> Result<&'static Self, Absent> {
        let library = LIBRARY
            .get_or_init(|| open(NAME))
            .as_ref()
            .map_err(Clone::clone)?;
        // Asked first, since umad_init would complain to stderr.
        if !has_driver() {
            return Err(Absent::NoDriver);
        }
        // SAFETY: takes nothing; to be repeated as often as one likes.
        if unsafe { (library.umad_init)() } < 0 {
            return Err(Absent::NoDriver);
        }
        Ok(library)
    }

    /// Whether its header is the one this crate is written for. Known once a port was opened.
    pub(super) fn has_long_header(&self) -> Result<(), Absent> {
        // SAFETY: takes nothing.
        match unsafe { (self.umad_size)() } {
            HEADER_OCTETS => Ok(()),
            octets => Err(Absent::TooOld {
                text: format!("a header of {octets} octets"),
            }),
        }
    }
}

fn open(name: &str) -> Result<Library, Absent> {
    // SAFETY: the library has no constructors.
    let library = unsafe { libloading::Library::new(name) }
        .map_err(|error| Absent::LibraryNotFound { text: text(&error) })?;
    Library::of(library).map_err(|error| Absent::TooOld { text: text(&error) })
}

/// By `open`, which is what libibumad reads its files by: a simulator of fabrics stands in for it, and for no other call.
fn has_driver() -> bool {
    // SAFETY: the path is a C string.
    let descriptor = unsafe { libc::open(ABI_VERSION.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if descriptor < 0 {
        return false;
    }
    // SAFETY: the descriptor is ours, and is closed once.
    unsafe { libc::close(descriptor) };
    true
}

/// What the loader itself said, where it did.
fn text(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever this machine has, loading says the same each time, and never fails to say why.
    #[test]
    fn loading_is_repeatable() {
        let first = Library::load().map(std::ptr::from_ref);
        let second = Library::load().map(std::ptr::from_ref);
        assert_eq!(first, second);
        if let Err(absent) = first {
            assert!(!absent.to_string().contains('\n'), "{absent}");
        }
    }

    #[test]
    fn a_library_that_is_not_there_is_told_of() {
        let absent = open("libnothing-of-the-kind.so.3").expect_err("there is no such library");
        assert!(
            matches!(absent, Absent::LibraryNotFound { .. }),
            "{absent:?}"
        );
    }
}
