//! Sending datagrams, many a call.
//!
//! Large ones go at once, from where they are ([`pass`]). Others lie one after the other in one
//! piece of memory, from which the kernel takes them. Nothing is lost where the socket has no room:
//! it is tried again at the next flush, and only what finds the outbox full is dropped, as a
//! network would.
//!
//! On request, packets of one length to one peer, the last of which may be shorter, go as one piece that the
//! kernel, or the network interface, cuts up (`UDP_SEGMENT`): a window's worth of full packets
//! passes the UDP stack once and not forty times. Why not always: see
//! [`Settings::in_pieces`](crate::Settings::in_pieces).

use super::inbox::{empty_header, last_errno};
use super::{Address, DATAGRAM};
use libc::{iovec, mmsghdr};
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Octets that wait, at most.
const ROOM: usize = 1 << 20;
/// Datagrams that wait, at most.
const ENTRIES: usize = 1024;
/// Datagrams of one call.
const BATCH: usize = 64;

/// Datagrams of one piece, and its octets: limits of the kernel's.
const PIECE: usize = 64;
const PIECE_BYTES: usize = 65_000;

/// Says how long the datagrams of a piece are.
#[repr(C)]
#[derive(Clone, Copy)]
struct Cut {
    header: libc::cmsghdr,
    len: u16,
    _padding: [u16; 3],
}

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
    /// The kernel takes pieces, as far as is known.
    in_pieces: bool,
    /// Datagrams that the kernel would not take at all.
    refused: u64,
}

impl Outbox {
    pub(crate) fn new(in_pieces: bool) -> Outbox {
        Outbox {
            octets: vec![0; ROOM].into_boxed_slice(),
            used: 0,
            entries: Vec::with_capacity(ENTRIES),
            head: 0,
            in_pieces,
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
    #[inline]
    pub(crate) fn flush(&mut self, socket: BorrowedFd<'_>) -> Sent {
        if self.entries.is_empty() {
            return Sent::All;
        }
        self.send_all(socket)
    }

    fn send_all(&mut self, socket: BorrowedFd<'_>) -> Sent {
        while self.head < self.entries.len() {
            let sent = match self.entries.len() - self.head {
                1 => self.send_one(socket),
                2..=8 => self.send_batch::<8>(socket),
                _ => self.send_batch::<BATCH>(socket),
            };
            match sent {
                0 => match last_errno() {
                    libc::EINTR => {}
                    libc::EAGAIN | libc::ENOBUFS => return Sent::Part,
                    // No such thing here, or the route has become narrower than these are.
                    _ if self.in_pieces && self.piece(self.head) > 1 => self.in_pieces = false,
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

    /// How many datagrams from one on go as one piece.
    fn piece(&self, start: usize) -> usize {
        let Some(first) = self.entries.get(start) else {
            return 0;
        };
        let most = (PIECE_BYTES / first.len.max(1)).clamp(1, PIECE);
        if !self.in_pieces || most == 1 {
            return 1;
        }
        let mut count = 1;
        for entry in self.entries[start + 1..].iter().take(most - 1) {
            if entry.to != first.to || entry.len > first.len {
                break;
            }
            count += 1;
            if entry.len < first.len {
                break;
            }
        }
        count
    }

    /// Sends the next datagram, as [`Outbox::send_batch`] does.
    fn send_one(&self, socket: BorrowedFd<'_>) -> usize {
        self.entries.get(self.head).map_or(0, |entry| {
            let octets = &self.octets[entry.offset..entry.offset + entry.len];
            pass(socket, octets, &entry.to)
        })
    }

    /// How many datagrams of the next batch the kernel took; with none, errno says why. A batch
    /// is of up to `N` pieces: what is set up for a single packet is not set up 64 times.
    fn send_batch<const N: usize>(&mut self, socket: BorrowedFd<'_>) -> usize {
        let mut vectors = [iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        }; N];
        let mut headers: [mmsghdr; N] = [empty_header(); N];
        let mut cuts = [CUT; N];
        let mut pieces = [0_usize; N];
        let (mut count, mut next): (libc::c_uint, usize) = (0, self.head);
        let slots = vectors.iter_mut().zip(&mut headers).zip(&mut cuts);
        for (((vector, header), cut), piece) in slots.zip(&mut pieces) {
            *piece = self.piece(next);
            let Some(first) = self.entries.get_mut(next) else {
                break;
            };
            let (offset, len) = (first.offset, first.len);
            header.msg_hdr.msg_name = ptr::from_mut(&mut first.to).cast();
            header.msg_hdr.msg_namelen = first.to.len();
            next += *piece;
            let end = self.entries[next - 1].offset + self.entries[next - 1].len;
            let octets = &mut self.octets[offset..end];
            vector.iov_base = octets.as_mut_ptr().cast();
            vector.iov_len = octets.len();
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            if *piece > 1 {
                cut.len = u16::try_from(len).unwrap_or(u16::MAX);
                header.msg_hdr.msg_control = ptr::from_mut(cut).cast();
                header.msg_hdr.msg_controllen = size_of::<Cut>();
            }
            count += 1;
        }
        // SAFETY: `count` headers lead to vectors and cuts above and to memory of this outbox,
        // which is borrowed mutably; the kernel reads what they lead to.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                count,
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            )
        };
        let sent = usize::try_from(sent).unwrap_or(0);
        pieces[..sent].iter().sum()
    }
}

/// Sends one datagram, in the plain form: it takes the kernel a fifth of a microsecond less than the
/// form of several. One, or none: then errno says why.
pub(crate) fn pass(socket: BorrowedFd<'_>, octets: &[u8], to: &Address) -> usize {
    // SAFETY: octets and address are borrowed, with their lengths; the kernel reads them.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            octets.as_ptr().cast(),
            octets.len(),
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            ptr::from_ref(to).cast(),
            to.len(),
        )
    };
    usize::from(sent >= 0)
}

const CUT: Cut = Cut {
    header: libc::cmsghdr {
        cmsg_len: size_of::<libc::cmsghdr>() + size_of::<u16>(),
        cmsg_level: libc::SOL_UDP,
        cmsg_type: libc::UDP_SEGMENT,
    },
    len: 0,
    _padding: [0; 3],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::Inbox;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    /// Packets of mixed lengths to two peers, by a kernel that merges and one that does not: the
    /// same arrive, in order.
    #[test]
    fn pieces_arrive_as_the_packets_they_were() {
        let bound = || UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let lengths = [
            100, 1200, 1200, 1200, 7, 1200, 1300, 1200, 1, 1, 1, 9000, 9000,
        ];
        for (in_pieces, merged) in [(true, true), (true, false), (false, true), (false, false)] {
            let (from, one, two) = (bound(), bound(), bound());
            let mut outbox = Outbox::new(in_pieces);
            for (at, len) in lengths.iter().enumerate() {
                for to in [&one, &one, &two] {
                    let to = to.local_addr().expect("bound").into();
                    let value = u8::try_from(at).expect("few");
                    outbox.room(*len, to).expect("room").fill(value);
                }
            }
            assert_eq!(outbox.flush(from.as_fd()), Sent::All);
            assert!(outbox.is_empty());
            assert_eq!(outbox.refused(), 0);
            for (socket, copies) in [(one, 2), (two, 1)] {
                let mut inbox = Inbox::new();
                if merged {
                    crate::udp::take_merged(socket.as_fd());
                }
                let mut arrived = Vec::new();
                for _ in 0..1000 {
                    for index in 0..inbox.fill(socket.as_fd()) {
                        let (_, octets) = inbox.datagram(index).expect("one");
                        let at = usize::from(octets[0]);
                        assert!(octets.iter().all(|octet| usize::from(*octet) == at));
                        arrived.push((at, octets.len()));
                    }
                }
                let sent = lengths.iter().copied().enumerate();
                let expected: Vec<(usize, usize)> = sent.flat_map(|it| vec![it; copies]).collect();
                assert_eq!(arrived, expected, "in pieces {in_pieces}, merged {merged}");
            }
        }
    }
}
