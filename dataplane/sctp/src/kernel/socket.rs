//! One socket of the one-to-many style, and its calls in safe words.

use crate::llp::Error;
use crate::roster::Label;
use crate::settings::{Settings, milliseconds};
use crate::udp::{Address, octets_of};
use libc::{c_int, c_void};
use socket2::{Domain, Protocol, Type};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;
use usrsctp_sys::types::{sctp_event, sctp_initmsg, sctp_rtoinfo, sctp_sack_info, sctp_sndinfo};

// Of linux/sctp.h, as far as libc has not got them.
const SCTP_SOCKOPT_CONNECTX3: c_int = 111;
const SCTP_EVENT: c_int = 127;
const SCTP_REMOTE_UDP_ENCAPS_PORT: c_int = 132;
const MSG_NOTIFICATION: c_int = 0x8000;
const EVENTS: [u16; 5] = [0x8001, 0x8005, 0x8006, 0x8007, 0x8009];
const UNORDERED: u16 = 1;
const ABORT: u16 = 4;
const EOF: u16 = 0x200;

/// Where the kernel says whether it takes SCTP in UDP.
const UDP_PORT: &str = "/proc/sys/net/sctp/udp_port";

/// How an association is ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// At once.
    Abort,
    /// When everything has arrived.
    ShutDown,
}

/// A message or notification.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) len: usize,
    pub(super) from: Address,
    /// The association's, with a message.
    pub(super) number: u32,
    /// Of a message; `None` with a notification.
    pub(super) label: Option<Label>,
}

/// The socket.
#[derive(Debug)]
pub(super) struct Socket(socket2::Socket);

impl Socket {
    pub(super) fn open(at: SocketAddr, settings: &Settings) -> Result<Socket, Error> {
        let protocol = Some(Protocol::from(libc::IPPROTO_SCTP));
        let kind = Type::from(libc::SOCK_SEQPACKET);
        let socket = socket2::Socket::new(Domain::for_address(at), kind, protocol);
        let socket = Socket(socket.map_err(|source| match source.raw_os_error() {
            Some(libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT) => {
                Error::Absent("no SCTP: the kernel has none; modprobe sctp".into())
            }
            _ => os("socket", source),
        })?);
        socket
            .0
            .set_nonblocking(true)
            .map_err(|source| os("fcntl", source))?;
        socket.configure(settings)?;
        socket
            .0
            .bind(&at.into())
            .map_err(|source| os("bind", source))?;
        Ok(socket)
    }

    fn configure(&self, settings: &Settings) -> Result<(), Error> {
        let buffers = self
            .0
            .set_send_buffer_size(settings.send_bytes as usize)
            .and_then(|()| self.0.set_recv_buffer_size(settings.receive_bytes as usize));
        buffers.map_err(|source| os("setsockopt", source))?;
        self.set(libc::SCTP_NODELAY, &1_i32)?;
        self.set(libc::SCTP_RECVRCVINFO, &1_i32)?;
        for event in EVENTS {
            let event = sctp_event {
                se_assoc_id: 0,
                se_type: event,
                se_on: 1,
            };
            self.set(SCTP_EVENT, &event)?;
        }
        if let Some(value) = settings.indication {
            self.set(libc::SCTP_ADAPTATION_LAYER, &value)?;
        }
        let most = milliseconds(settings.rto_max).max(1);
        let least = milliseconds(settings.rto_min).clamp(1, most);
        let init = sctp_initmsg {
            sinit_num_ostreams: settings.streams,
            sinit_max_instreams: settings.streams,
            sinit_max_attempts: settings.attempts,
            sinit_max_init_timeo: u16::try_from(most).unwrap_or(u16::MAX),
        };
        self.set(libc::SCTP_INITMSG, &init)?;
        let rto = sctp_rtoinfo {
            srto_assoc_id: 0,
            srto_initial: milliseconds(settings.rto_initial).clamp(least, most),
            srto_max: most,
            srto_min: least,
        };
        self.set(libc::SCTP_RTOINFO, &rto)?;
        // The kernel's order of fields is not the library's: association, retransmissions, and
        // what stays as it is.
        let [low, high] = settings.retransmissions.to_ne_bytes();
        let mut association = [0_u8; 20];
        association[4..6].copy_from_slice(&[low, high]);
        self.set(libc::SCTP_ASSOCINFO, &association)?;
        let sack = sctp_sack_info {
            sack_assoc_id: 0,
            sack_delay: milliseconds(settings.sack_delay).min(500),
            sack_freq: 2,
        };
        self.set(libc::SCTP_DELAYED_SACK, &sack)
    }

    pub(super) fn listen(&self, backlog: u32) -> Result<(), Error> {
        let backlog = c_int::try_from(backlog.max(1)).unwrap_or(c_int::MAX);
        self.0
            .listen(backlog)
            .map_err(|source| os("listen", source))
    }

    /// Has associations asked for from here on go in UDP to that port.
    pub(super) fn encapsulate(&self, port: u16) -> Result<(), Error> {
        let local = std::fs::read_to_string(UDP_PORT).unwrap_or_default();
        if matches!(local.trim(), "" | "0") {
            let line =
                "no SCTP in UDP: the kernel has no port for it; sysctl net.sctp.udp_port=9899";
            return Err(Error::Absent(line.into()));
        }
        // struct sctp_udpencaps: association, address of any family, port in network order.
        #[repr(C)]
        struct Encapsulation {
            number: u32,
            address: [u64; 16],
            port: u16,
        }
        let value = Encapsulation {
            number: 0,
            address: [0; 16],
            port: port.to_be(),
        };
        self.set(SCTP_REMOTE_UDP_ENCAPS_PORT, &value)
    }

    pub(super) fn local_address(&self) -> Result<SocketAddr, Error> {
        let address = self
            .0
            .local_addr()
            .map_err(|source| os("getsockname", source))?;
        address
            .as_socket()
            .ok_or_else(|| os("getsockname", io::ErrorKind::Unsupported.into()))
    }

    fn set<T>(&self, option: c_int, value: &T) -> Result<(), Error> {
        let value: *const c_void = ptr::from_ref(value).cast();
        // SAFETY: value and length are those of one object that lives through the call.
        let outcome = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_SCTP,
                option,
                value,
                octets_of::<T>(),
            )
        };
        if outcome != 0 {
            return Err(os("setsockopt", io::Error::last_os_error()));
        }
        Ok(())
    }

    /// Has the kernel fill a value in, part of which may be a question.
    fn ask<T>(&self, option: c_int, value: &mut T) -> io::Result<()> {
        let mut len = octets_of::<T>();
        // SAFETY: value and length are those of one object that lives through the call, and any
        // octets are a value of the types asked with here.
        let outcome = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_SCTP,
                option,
                ptr::from_mut(value).cast(),
                &raw mut len,
            )
        };
        if outcome != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Asks for an association; its number.
    pub(super) fn connect(&self, to: SocketAddr) -> Result<u32, Error> {
        // struct sctp_getaddrs_old.
        #[repr(C)]
        struct Question {
            number: u32,
            octets: c_int,
            addresses: *const c_void,
        }
        let address = Address::from(to);
        let mut question = Question {
            number: 0,
            octets: c_int::try_from(address.len()).unwrap_or(0),
            addresses: ptr::from_ref(&address).cast(),
        };
        match self.ask(SCTP_SOCKOPT_CONNECTX3, &mut question) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
                Err(os("connect", error))
            }
            _ => Ok(question.number),
        }
    }

    /// Octets of user data of a chunk that is not fragmented.
    pub(super) fn fragmentation_point(&self, number: u32) -> Option<u32> {
        // struct sctp_status begins: association, state, window, two and two counts, this.
        let mut status = [0_u32; 64];
        status[0] = number;
        self.ask(libc::SCTP_STATUS, &mut status).ok()?;
        Some(status[5] & !3)
    }

    /// Whether the socket takes messages.
    pub(super) fn has_room(&self) -> bool {
        let mut poll = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLOUT,
            revents: 0,
        };
        // SAFETY: one structure, which lives through the call.
        let count = unsafe { libc::poll(&raw mut poll, 1, 0) };
        count > 0
    }

    pub(super) fn send(
        &self,
        number: u32,
        stream: u16,
        ppid: u32,
        octets: &[u8],
    ) -> io::Result<()> {
        self.transmit(
            sctp_sndinfo {
                snd_sid: stream,
                snd_flags: UNORDERED,
                snd_ppid: ppid.to_be(),
                snd_context: 0,
                snd_assoc_id: number,
            },
            octets,
        )
    }

    pub(super) fn end(&self, number: u32, how: End) -> io::Result<()> {
        let info = sctp_sndinfo {
            snd_flags: match how {
                End::Abort => ABORT,
                End::ShutDown => EOF,
            },
            snd_assoc_id: number,
            ..Default::default()
        };
        self.transmit(info, &[])
    }

    fn transmit(&self, info: sctp_sndinfo, octets: &[u8]) -> io::Result<()> {
        #[repr(C)]
        struct Control {
            header: libc::cmsghdr,
            info: sctp_sndinfo,
        }
        let mut control = Control {
            header: libc::cmsghdr {
                cmsg_len: size_of::<libc::cmsghdr>() + size_of::<sctp_sndinfo>(),
                cmsg_level: libc::IPPROTO_SCTP,
                cmsg_type: libc::SCTP_SNDINFO,
            },
            info,
        };
        let mut vector = libc::iovec {
            iov_base: octets.as_ptr().cast_mut().cast(),
            iov_len: octets.len(),
        };
        let mut header = empty_header();
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = usize::from(!octets.is_empty());
        header.msg_control = ptr::from_mut(&mut control).cast();
        header.msg_controllen = size_of::<Control>();
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: everything the header leads to lives through the call, which only reads it.
        let sent = unsafe { libc::sendmsg(self.0.as_raw_fd(), &raw const header, flags) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Takes a message or notification into `room`, if there is one. One that is longer, or comes
    /// in parts, is not complete.
    pub(super) fn receive(&self, room: &mut [u8]) -> Option<Arrival> {
        let mut from = Address::NONE;
        let mut control = [0_u64; 16];
        let mut vector = libc::iovec {
            iov_base: room.as_mut_ptr().cast(),
            iov_len: room.len(),
        };
        let mut header = empty_header();
        header.msg_name = ptr::from_mut(&mut from).cast();
        header.msg_namelen = octets_of::<Address>();
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control);
        let descriptor = self.0.as_raw_fd();
        // SAFETY: everything the header leads to lives through the call and is ours to write.
        let len = unsafe { libc::recvmsg(descriptor, &raw mut header, libc::MSG_DONTWAIT) };
        let len = usize::try_from(len).ok().filter(|len| *len > 0)?;
        let info = receive_info(&control, header.msg_controllen);
        let complete = header.msg_flags & libc::MSG_EOR != 0;
        let is_message = header.msg_flags & MSG_NOTIFICATION == 0;
        Some(Arrival {
            len,
            from,
            number: info.number,
            label: is_message.then_some(Label {
                stream: info.stream,
                ppid: info.ppid,
                unordered: info.unordered,
                complete,
            }),
        })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[derive(Default)]
struct Info {
    number: u32,
    stream: u16,
    ppid: u32,
    unordered: bool,
}

/// Reads `struct sctp_rcvinfo`, which alone has been asked for, from a control message.
fn receive_info(control: &[u64; 16], len: usize) -> Info {
    if len < size_of::<libc::cmsghdr>() + 28 {
        return Info::default();
    }
    // A header of two words; then 16-bit stream, SSN and flags, padding, and 32-bit words:
    // identifier, TSN, cumulative TSN, context, association.
    let word = |at: usize| control[at].to_ne_bytes();
    let (first, second, fourth) = (word(2), word(3), word(5));
    let short = |from: [u8; 8], at: usize| u16::from_ne_bytes([from[at], from[at + 1]]);
    Info {
        stream: short(first, 0),
        unordered: short(first, 4) & UNORDERED != 0,
        ppid: u32::from_be_bytes([second[0], second[1], second[2], second[3]]),
        number: u32::from_ne_bytes([fourth[0], fourth[1], fourth[2], fourth[3]]),
    }
}

fn empty_header() -> libc::msghdr {
    // SAFETY: null pointers and zero lengths are a value of this structure.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

fn os(call: &'static str, source: io::Error) -> Error {
    Error::Os { call, source }
}
