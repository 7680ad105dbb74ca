//! Reading datagrams, many a call.

use super::{Address, DATAGRAM, octets_of};
use libc::{iovec, mmsghdr};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Datagrams of one call.
const BATCH: usize = 32;
const BATCH_COUNT: libc::c_uint = 32;
const _: () = assert!(BATCH_COUNT as usize == BATCH);

/// Room for one batch. Untouched pages of it cost nothing.
pub(crate) struct Inbox {
    headers: Box<[mmsghdr]>,
    /// What the headers point at, kept and not looked at here: the kernel writes into it.
    _vectors: Box<[iovec]>,
    addresses: Box<[Address]>,
    octets: Box<[u8]>,
    filled: usize,
}

// SAFETY: the pointers lead to memory that the inbox owns, wherever it is.
unsafe impl Send for Inbox {}

impl Inbox {
    pub(crate) fn new() -> Inbox {
        let mut octets = vec![0_u8; BATCH * DATAGRAM].into_boxed_slice();
        let mut addresses = vec![Address::NONE; BATCH].into_boxed_slice();
        let mut vectors: Box<[iovec]> = octets
            .chunks_exact_mut(DATAGRAM)
            .map(|place| iovec {
                iov_base: place.as_mut_ptr().cast(),
                iov_len: place.len(),
            })
            .collect();
        let headers = vectors
            .iter_mut()
            .zip(addresses.iter_mut())
            .map(|(vector, address)| {
                let mut header = empty_header();
                header.msg_hdr.msg_name = ptr::from_mut(address).cast();
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header
            })
            .collect();
        Inbox {
            headers,
            _vectors: vectors,
            addresses,
            octets,
            filled: 0,
        }
    }

    /// Reads what is there, up to a batch; how many datagrams that was. Errors that tell of a
    /// datagram sent before (ICMP) are none of reading.
    pub(crate) fn fill(&mut self, socket: BorrowedFd<'_>) -> usize {
        for header in &mut self.headers {
            header.msg_hdr.msg_namelen = octets_of::<Address>();
        }
        // SAFETY: every header leads to memory of this inbox, and it is borrowed mutably.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                BATCH_COUNT,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        self.filled = usize::try_from(count).unwrap_or(0);
        self.filled
    }

    /// Whether the last call left nothing behind, as far as it can tell.
    pub(crate) fn is_short(&self) -> bool {
        self.filled < BATCH
    }

    /// A datagram of the last batch, and who sent it.
    pub(crate) fn datagram(&self, index: usize) -> Option<(Address, &[u8])> {
        let header = self.headers.get(..self.filled)?.get(index)?;
        let len = usize::try_from(header.msg_len).ok()?;
        let start = index.checked_mul(DATAGRAM)?;
        let octets = self.octets.get(start..start.checked_add(len)?)?;
        Some((*self.addresses.get(index)?, octets))
    }
}

pub(super) fn empty_header() -> mmsghdr {
    // SAFETY: null pointers and zero lengths are a value of this structure.
    unsafe { std::mem::zeroed() }
}

/// The error of the last call.
pub(super) fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
