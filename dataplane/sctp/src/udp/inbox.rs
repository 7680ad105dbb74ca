//! Reading datagrams, many a call where there are many.
//!
//! A call that asks for several messages and gets one has made the kernel look for the second, and
//! one that asks for a single message in the form of many costs more than one in the plain form:
//! together a sixth of a microsecond of every round trip, at each end. So a call asks for one until
//! it gets one, and then for more: see [`Inbox::look_ahead`].

use super::{Address, DATAGRAM, octets_of};
use libc::{iovec, mmsghdr};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Messages of one call, at most.
const BATCH: usize = 32;
/// How much more a call asks for than the one before, which got all it asked for.
const FASTER: usize = 4;

/// What comes merged (`UDP_GRO`) is at most so many datagrams.
const MERGED: usize = 128;

/// Where a control message about the length of merged datagrams goes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Control {
    header: libc::cmsghdr,
    len: libc::c_int,
    _padding: libc::c_int,
}

/// A datagram: of which message, from where to where.
#[derive(Clone, Copy)]
struct Part {
    message: usize,
    start: usize,
    end: usize,
}

/// Room for one batch. Untouched pages of it cost nothing.
pub(crate) struct Inbox {
    headers: Box<[mmsghdr]>,
    /// What the headers point at, kept and not looked at here: the kernel writes into it.
    _vectors: Box<[iovec]>,
    addresses: Box<[Address]>,
    controls: Box<[Control]>,
    octets: Box<[u8]>,
    parts: Vec<Part>,
    /// Messages that the last call got.
    filled: usize,
    /// Messages that the next one asks for.
    wanted: usize,
}

// SAFETY: the pointers lead to memory that the inbox owns, wherever it is.
unsafe impl Send for Inbox {}

impl Inbox {
    pub(crate) fn new() -> Inbox {
        let mut octets = vec![0_u8; BATCH * DATAGRAM].into_boxed_slice();
        let mut addresses = vec![Address::NONE; BATCH].into_boxed_slice();
        let control = Control {
            header: libc::cmsghdr {
                cmsg_len: 0,
                cmsg_level: 0,
                cmsg_type: 0,
            },
            len: 0,
            _padding: 0,
        };
        let mut controls = vec![control; BATCH].into_boxed_slice();
        let mut vectors: Box<[iovec]> = octets
            .chunks_exact_mut(DATAGRAM)
            .map(|place| iovec {
                iov_base: place.as_mut_ptr().cast(),
                iov_len: place.len(),
            })
            .collect();
        let parts = vectors.iter_mut().zip(&mut addresses).zip(&mut controls);
        let headers = parts
            .map(|((vector, address), control)| {
                let mut header = empty_header();
                header.msg_hdr.msg_name = ptr::from_mut(address).cast();
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header.msg_hdr.msg_control = ptr::from_mut(control).cast();
                header
            })
            .collect();
        Inbox {
            headers,
            _vectors: vectors,
            addresses,
            controls,
            octets,
            parts: Vec::with_capacity(BATCH * MERGED),
            filled: BATCH,
            wanted: 1,
        }
    }

    /// Reads some of what is there, up to a batch of messages; how many datagrams that was. Errors
    /// that tell of a datagram sent before (ICMP) are none of reading.
    pub(crate) fn fill(&mut self, socket: BorrowedFd<'_>) -> usize {
        // Those that the last call used, which before the first is all of them.
        for header in &mut self.headers[..self.filled] {
            header.msg_hdr.msg_namelen = octets_of::<Address>();
            header.msg_hdr.msg_controllen = size_of::<Control>();
        }
        self.filled = if self.wanted == 1 {
            self.read_one(socket)
        } else {
            self.read_many(socket)
        };
        self.look_ahead();
        self.parts.clear();
        for message in 0..self.filled {
            self.part(message);
        }
        self.parts.len()
    }

    fn read_one(&mut self, socket: BorrowedFd<'_>) -> usize {
        let Some(header) = self.headers.first_mut() else {
            return 0;
        };
        let header_of = ptr::from_mut(&mut header.msg_hdr);
        // SAFETY: the header leads to memory of this inbox, and it is borrowed mutably.
        let len = unsafe { libc::recvmsg(socket.as_raw_fd(), header_of, libc::MSG_DONTWAIT) };
        let Ok(len) = libc::c_uint::try_from(len) else {
            return 0;
        };
        header.msg_len = len;
        1
    }

    fn read_many(&mut self, socket: BorrowedFd<'_>) -> usize {
        let wanted = libc::c_uint::try_from(self.wanted).unwrap_or(1);
        // SAFETY: every header leads to memory of this inbox, and it is borrowed mutably; as many
        // are asked for as there are at most.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                wanted,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        usize::try_from(count).unwrap_or(0)
    }

    /// Decides on the next call: more messages, if this one got all it asked for.
    fn look_ahead(&mut self) {
        let next = if self.filled == self.wanted {
            self.wanted * FASTER
        } else {
            self.filled.next_power_of_two()
        };
        self.wanted = next.min(BATCH);
    }

    /// Notes the datagrams of a message.
    fn part(&mut self, message: usize) {
        let base = message * DATAGRAM;
        let end = base + self.headers[message].msg_len as usize;
        let step = self.datagram_len(message).unwrap_or(DATAGRAM);
        let mut start = base;
        loop {
            let next = end.min(start + step);
            self.parts.push(Part {
                message,
                start,
                end: next,
            });
            start = next;
            if start >= end {
                break;
            }
        }
    }

    /// Octets of each datagram of a message that was merged.
    fn datagram_len(&self, message: usize) -> Option<usize> {
        if self.headers[message].msg_hdr.msg_controllen < size_of::<libc::cmsghdr>() + 4 {
            return None;
        }
        let control = &self.controls[message];
        let header = &control.header;
        let told = (header.cmsg_level, header.cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO);
        let len = usize::try_from(control.len).ok();
        len.filter(|len| told && *len > 0)
    }

    /// Whether the last call got less than a whole batch. There may be more, for the next turn:
    /// first comes what there is to do about these.
    pub(crate) fn is_short(&self) -> bool {
        self.filled < BATCH
    }

    /// A datagram of the last batch, and who sent it.
    pub(crate) fn datagram(&self, index: usize) -> Option<(Address, &[u8])> {
        let part = self.parts.get(index)?;
        let octets = self.octets.get(part.start..part.end)?;
        Some((*self.addresses.get(part.message)?, octets))
    }
}

/// Has the kernel hand over datagrams of one sender and length merged, where it can.
pub(crate) fn take_merged(socket: BorrowedFd<'_>) {
    let on: libc::c_int = 1;
    // SAFETY: value and length are those of one object. Where there is no such option datagrams
    // come one by one.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_GRO,
            (&raw const on).cast(),
            octets_of::<libc::c_int>(),
        );
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
