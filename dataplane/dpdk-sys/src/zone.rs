//! Zones: long runs of EAL's memory, on huge pages where EAL has them.

use crate::eal::Eal;
use crate::fault::Fault;
use crate::ffi::{self, ZoneParts};
use std::ffi::CString;
use std::ptr::NonNull;

/// Octets of a zone's name, without the zero octet that ends it.
const NAME_MAX: usize = 31;

/// A socket of processors, with the memory beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Socket {
    /// Whichever.
    Any,
    /// The one of this number.
    Number(u32),
}

impl Socket {
    fn raw(self) -> i32 {
        match self {
            Socket::Any => ffi::ANY_SOCKET,
            Socket::Number(number) => i32::try_from(number).unwrap_or(i32::MAX),
        }
    }
}

/// A run of EAL's memory without a gap, zeroed when it was reserved. It is freed when dropped;
/// EAL stays as long as there is one.
#[derive(Debug)]
pub struct Zone {
    eal: &'static Eal,
    parts: ZoneParts,
    start: NonNull<u8>,
}

// SAFETY: a zone is memory and a handle; DPDK frees one on whatever thread.
unsafe impl Send for Zone {}
// SAFETY: `&Zone` gives out an address and numbers; nothing changes.
unsafe impl Sync for Zone {}

impl Zone {
    /// Reserves `bytes` octets on `socket`, from a multiple of `align` on. The caller has
    /// counted it among EAL's users.
    pub(crate) fn reserve(
        eal: &'static Eal,
        name: &str,
        bytes: u64,
        socket: Socket,
        align: u32,
    ) -> Result<Zone, Fault> {
        const CALL: &str = "rte_memzone_reserve_aligned";
        let name = CString::new(name)
            .ok()
            .filter(|name| name.as_bytes().len() <= NAME_MAX);
        let Some(name) = name else {
            let meaning = "not the name of a zone: 31 octets, none of them zero";
            return Err(Fault::ours(CALL, libc::EINVAL, meaning));
        };
        let mut parts = ZoneParts {
            handle: std::ptr::null(),
            start: std::ptr::null_mut(),
            length: 0,
            page: 0,
            socket: 0,
        };
        // SAFETY: the name ends in a zero octet, and `parts` is there to be written.
        let status = unsafe {
            ffi::shim_zone_reserve(name.as_ptr(), bytes, socket.raw(), align, &raw mut parts)
        };
        if status < 0 {
            return Err(Fault::of(CALL, status));
        }
        let Some(start) = NonNull::new(parts.start.cast()) else {
            return Err(Fault::ours(CALL, libc::ENOMEM, "a zone of nothing"));
        };
        Ok(Zone { eal, parts, start })
    }

    /// Its first octet. All are initialised, readable and writable while the zone lives.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its octets, at least as many as were asked for.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.length
    }

    /// Octets of one of its pages.
    #[must_use]
    pub fn page_bytes(&self) -> u64 {
        self.parts.page
    }

    /// Where it is.
    #[must_use]
    pub fn socket(&self) -> Socket {
        u32::try_from(self.parts.socket).map_or(Socket::Any, Socket::Number)
    }
}

impl Drop for Zone {
    fn drop(&mut self) {
        // SAFETY: reserved by us, freed once; its holder is going, and so are the addresses that
        // it gave out.
        let freed = unsafe { ffi::shim_zone_free(self.parts.handle) };
        debug_assert_eq!(freed, 0, "freeing our own zone");
        self.eal.let_go();
    }
}
