//! Sending datagrams, many a call.
//!
//! They lie one after the other in one piece of memory, from which the kernel takes them. Nothing
//! is lost where the socket has no room: it is tried again at the next flush, and only what finds
//! the outbox full is dropped, as a network would.

use super::inbox::{empty_header, last_errno};
use super::{Address, DATAGRAM};
use libc::{iovec, mmsghdr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Octets that wait, at most.
const ROOM: usize = 1 << 20;
/// Datagrams that wait, at most.
const ENTRIES: usize = 1024;
/// Datagrams of one call.
const BATCH: usize = 64;

/// What a flush came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Nothing waits.
    All,
    /// The socket has no room.
    Part,
}

#[derive(Clone, Copy)]
struct Entry {
    offset: usize,
    len: usize,
    to: Address,
}

/// Datagrams on their way out.
pub(crate) struct Outbox {
    octets: Box<[u8]>,
    used: usize,
    entries: Vec<Entry>,
    /// Entries before this one are out.
    head: usize,
    /// Datagrams that the kernel would not take at all.
    refused: u64,
}

impl Outbox {
    pub(crate) fn new() -> Outbox {
        Outbox {
            octets: vec![0; ROOM].into_boxed_slice(),
            used: 0,
            entries: Vec::with_capacity(ENTRIES),
            head: 0,
            refused: 0,
        }
    }

    /// Room for a datagram of that length; `None` when it is to be dropped, or flushed first.
    pub(crate) fn room(&mut self, len: usize, to: Address) -> Option<&mut [u8]> {
        if self.entries.len() == ENTRIES || len > DATAGRAM {
            return None;
        }
        let offset = self.used;
        let place = self.octets.get_mut(offset..offset.checked_add(len)?)?;
        self.entries.push(Entry { offset, len, to });
        self.used += len;
        Some(place)
    }

    /// Nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Datagrams that the kernel refused, so far.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Gives the kernel what it takes.
    pub(crate) fn flush(&mut self, socket: BorrowedFd<'_>) -> Sent {
        while self.head < self.entries.len() {
            match self.send_batch(socket) {
                0 => match last_errno() {
                    libc::EINTR => {}
                    libc::EAGAIN | libc::ENOBUFS => return Sent::Part,
                    // This one cannot go: the address is not to be reached, or ICMP told so.
                    _ => {
                        self.refused += 1;
                        self.head += 1;
                    }
                },
                count => self.head += count,
            }
        }
        self.entries.clear();
        self.head = 0;
        self.used = 0;
        Sent::All
    }

    /// How many of the next batch the kernel took; with none, errno says why.
    fn send_batch(&mut self, socket: BorrowedFd<'_>) -> usize {
        let mut vectors = [iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        }; BATCH];
        let mut headers: [mmsghdr; BATCH] = [empty_header(); BATCH];
        let batch = self.entries[self.head..].iter_mut().take(BATCH);
        let mut count: libc::c_uint = 0;
        for ((entry, vector), header) in batch.zip(&mut vectors).zip(&mut headers) {
            let octets = &mut self.octets[entry.offset..entry.offset + entry.len];
            vector.iov_base = octets.as_mut_ptr().cast();
            vector.iov_len = entry.len;
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_name = ptr::from_mut(&mut entry.to).cast();
            header.msg_hdr.msg_namelen = entry.to.len();
            count += 1;
        }
        // SAFETY: `count` headers lead to vectors above and to memory of this outbox, which is
        // borrowed mutably; the kernel reads what they lead to.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                count,
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            )
        };
        usize::try_from(sent).unwrap_or(0)
    }
}
