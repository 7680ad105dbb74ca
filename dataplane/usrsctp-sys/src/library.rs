//! The calls.

use crate::Absent;
use crate::types::{
    ConnOutput, DebugPrintf, Receive, SendRoom, sctp_sndinfo, sockaddr_conn, socket,
};
use libc::{c_int, c_uint, c_void, size_t, socklen_t, ssize_t};
use std::fmt;

/// The file name of the library, by which it is installed.
pub(crate) const NAME: &str = "libusrsctp.so.2";

/// Declares the table of calls and its loading.
macro_rules! calls {
    ($($(#[doc = $doc:literal])* fn $name:ident($($arg:ident: $kind:ty),* $(,)?) $(-> $out:ty)?;)*) => {
        /// The calls of one loaded library, with the names of `usrsctp.h`.
        pub struct Calls {
            $(
                $(#[doc = $doc])*
                pub $name: unsafe extern "C" fn($($arg: $kind),*) $(-> $out)?,
            )*
            /// Keeps the addresses above good.
            _library: libloading::Library,
        }

        impl Calls {
            fn of(library: libloading::Library) -> Result<Calls, libloading::Error> {
                Ok(Calls {
                    $(
                        // SAFETY: the type is that of the header, which the series number in the
                        // library's name stands for; the table lives no longer than the library.
                        $name: unsafe {
                            *library.get::<unsafe extern "C" fn($($arg: $kind),*) $(-> $out)?>(
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

calls! {
    /// Sets the library up, once: no encapsulation of its own for port 0.
    fn usrsctp_init_nothreads(port: u16, output: Option<ConnOutput>, print: Option<DebugPrintf>);
    /// Lets the caller compute and verify CRC32c.
    fn usrsctp_enable_crc32c_offload();
    /// A socket; null with errno.
    fn usrsctp_socket(
        domain: c_int, kind: c_int, protocol: c_int,
        receive: Option<Receive>, room: Option<SendRoom>, threshold: u32, ulp_info: *mut c_void,
    ) -> *mut socket;
    /// Binds it.
    fn usrsctp_bind(so: *mut socket, name: *mut sockaddr_conn, len: socklen_t) -> c_int;
    /// Lets peers associate.
    fn usrsctp_listen(so: *mut socket, backlog: c_int) -> c_int;
    /// Asks for an association.
    fn usrsctp_connect(so: *mut socket, name: *mut sockaddr_conn, len: socklen_t) -> c_int;
    /// Sends a message, or ends an association by flags.
    fn usrsctp_sendv(
        so: *mut socket, data: *const c_void, len: size_t, to: *mut sockaddr_conn, addresses: c_int,
        info: *mut sctp_sndinfo, info_len: socklen_t, info_type: c_uint, flags: c_int,
    ) -> ssize_t;
    /// Never waits from here on.
    fn usrsctp_set_non_blocking(so: *mut socket, on: c_int) -> c_int;
    /// Sets an option.
    fn usrsctp_setsockopt(
        so: *mut socket, level: c_int, name: c_int, value: *const c_void, len: socklen_t,
    ) -> c_int;
    /// Reads an option.
    fn usrsctp_getsockopt(
        so: *mut socket, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t,
    ) -> c_int;
    /// The association with an address, 0 if there is none.
    fn usrsctp_getassocid(so: *mut socket, name: *mut sockaddr_conn) -> u32;
    /// Closes a socket and what is on it.
    fn usrsctp_close(so: *mut socket);
    /// Makes an address one of this end's.
    fn usrsctp_register_address(address: *mut c_void);
    /// Undoes that.
    fn usrsctp_deregister_address(address: *mut c_void);
    /// Takes a packet, from the SCTP header on.
    fn usrsctp_conninput(address: *mut c_void, packet: *const c_void, len: size_t, ecn: u8);
    /// Lets so much time pass, in milliseconds.
    fn usrsctp_handle_timers(elapsed: u32);
    /// Whether ECN is asked for (RFC 9260 appendix A).
    fn usrsctp_sysctl_set_sctp_ecn_enable(value: u32) -> c_int;
    /// Partial reliability (RFC 3758).
    fn usrsctp_sysctl_set_sctp_pr_enable(value: u32) -> c_int;
    /// Authenticated chunks (RFC 4895).
    fn usrsctp_sysctl_set_sctp_auth_enable(value: u32) -> c_int;
    /// Changes of addresses (RFC 5061).
    fn usrsctp_sysctl_set_sctp_asconf_enable(value: u32) -> c_int;
    /// Changes of addresses made by the library.
    fn usrsctp_sysctl_set_sctp_auto_asconf(value: u32) -> c_int;
    /// Resets of streams (RFC 6525).
    fn usrsctp_sysctl_set_sctp_reconfig_enable(value: u32) -> c_int;
    /// Packets of one burst, 0 for no limit.
    fn usrsctp_sysctl_set_sctp_max_burst_default(value: u32) -> c_int;
    /// The same in fast recovery.
    fn usrsctp_sysctl_set_sctp_fr_max_burst_default(value: u32) -> c_int;
    /// Chunks that an association queues.
    fn usrsctp_sysctl_set_sctp_max_chunks_on_queue(value: u32) -> c_int;
    /// Silence towards packets of no association: 0 answers with ABORT.
    fn usrsctp_sysctl_set_sctp_blackhole(value: u32) -> c_int;
    /// Octets that each queued message is charged for beyond its own: 0 for none.
    fn usrsctp_sysctl_set_sctp_peer_chunk_oh(value: u32) -> c_int;
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calls")
    }
}

/// Loads what a name or path leads to.
pub(crate) fn load(path: &str) -> Result<Calls, Absent> {
    // SAFETY: the library has no constructors.
    let library = unsafe { libloading::Library::new(path) }.map_err(|error| Absent::NotFound {
        name: NAME,
        text: text(&error),
    })?;
    Calls::of(library).map_err(|error| Absent::TooOld {
        name: NAME,
        text: text(&error),
    })
}

/// What the loader itself said, where it did.
fn text(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
