//! The library, and ordinary sockets: as little around it as works.
//!
//! One association of one process, on a connected UDP socket. A packet goes when the library wants
//! it to, by `send`, and comes by one `recv` a turn. CRC32c is computed by the processor's
//! instruction here too, or its table would be most of what is measured.

use super::{End, Result};
use libc::{c_int, c_void, size_t};
use rpcrdma_sctp::Settings;
use socket2::SockRef;
use std::cell::Cell;
use std::io::{Error, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::ptr;
use std::sync::OnceLock;
use std::time::Instant;
use usrsctp_sys::Instance;
use usrsctp_sys::types as sys;

/// Stands for the other end in the library, which does not follow it.
const PEER: *mut c_void = ptr::without_provenance_mut(1);
const PORT: u16 = 20_049;
/// Octets of SCTP's header, and where its checksum is.
const HEADER: usize = 12;
const SUM: std::ops::Range<usize> = 8..HEADER;
/// Octets of IPv4's and UDP's headers.
const ENVELOPE: u32 = 28;
/// Milliseconds between two looks at timers.
const TICK: u32 = 10;

static WIRE: OnceLock<UdpSocket> = OnceLock::new();

thread_local! {
    /// Messages that came in the call under way, and the association of the last.
    static CAME: Cell<u64> = const { Cell::new(0) };
    static ASSOCIATION: Cell<u32> = const { Cell::new(0) };
}

/// One association of the library's.
pub(super) struct Raw {
    library: Instance,
    socket: *mut sys::socket,
    wire: &'static UdpSocket,
    packet: Vec<u8>,
    octets: Vec<u8>,
    /// Up to when the library has been told the time.
    told: Instant,
}

impl Raw {
    /// Asks for an association.
    pub(super) fn ask(to: SocketAddr, settings: &Settings) -> Result<Raw> {
        let wire = UdpSocket::bind("127.0.0.1:0")?;
        wire.connect(to)?;
        let mut end = Raw::over(wire, settings)?;
        let mut name = address(PEER, PORT);
        // SAFETY: the socket is open, and the name is one of the kind it takes.
        let outcome =
            unsafe { (end.library.usrsctp_connect)(end.socket, &raw mut name, len_of(&name)) };
        if outcome != 0 && Error::last_os_error().raw_os_error() != Some(libc::EINPROGRESS) {
            return Err(Error::last_os_error().into());
        }
        // SAFETY: as above.
        let number = unsafe { (end.library.usrsctp_getassocid)(end.socket, &raw mut name) };
        ASSOCIATION.set(number);
        end.octets.fill(1);
        Ok(end)
    }

    /// Tells of its address, and waits for an association.
    pub(super) fn serve(settings: &Settings, tell: impl FnOnce(SocketAddr)) -> Result<Raw> {
        let wire = UdpSocket::bind("127.0.0.1:0")?;
        tell(wire.local_addr()?);
        let (_, peer) = wire.peek_from(&mut [0; 1])?;
        wire.connect(peer)?;
        let end = Raw::over(wire, settings)?;
        // SAFETY: the socket is open.
        done(unsafe { (end.library.usrsctp_listen)(end.socket, 1) })?;
        Ok(end)
    }

    fn over(wire: UdpSocket, settings: &Settings) -> Result<Raw> {
        wire.set_nonblocking(true)?;
        SockRef::from(&wire).set_send_buffer_size(8 << 20)?;
        SockRef::from(&wire).set_recv_buffer_size(8 << 20)?;
        let wire = WIRE.get_or_init(|| wire);
        let library = Instance::take().map_err(|absent| absent.to_string())?;
        let (domain, kind) = (c_int::from(sys::AF_CONN), libc::SOCK_SEQPACKET);
        // SAFETY: the first call to this copy; the callback lives as long as the program.
        unsafe { (library.usrsctp_init_nothreads)(0, Some(send_packet), None) };
        // SAFETY: the copy is set up.
        unsafe { (library.usrsctp_enable_crc32c_offload)() };
        // SAFETY: the token is never followed.
        unsafe { (library.usrsctp_register_address)(PEER) };
        // SAFETY: constants and a callback that lives as long as the program.
        let socket = unsafe {
            (library.usrsctp_socket)(
                domain,
                kind,
                libc::IPPROTO_SCTP,
                Some(take_message),
                None,
                0,
                ptr::null_mut(),
            )
        };
        if socket.is_null() {
            return Err(Error::last_os_error().into());
        }
        let end = Raw {
            library,
            socket,
            wire,
            packet: vec![0; 1 << 16],
            octets: vec![0; 1 << 16],
            told: Instant::now(),
        };
        end.configure(settings)?;
        Ok(end)
    }

    fn configure(&self, settings: &Settings) -> Result<()> {
        // SAFETY: the socket is open.
        done(unsafe { (self.library.usrsctp_set_non_blocking)(self.socket, 1) })?;
        let sctp = libc::IPPROTO_SCTP;
        self.set(libc::SOL_SOCKET, libc::SO_SNDBUF, &settings.send_bytes)?;
        self.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &settings.receive_bytes)?;
        self.set(sctp, sys::SCTP_NODELAY, &1_i32)?;
        // SAFETY: numbers and an address without family are all there is in it.
        let mut path: sys::sctp_paddrparams = unsafe { std::mem::zeroed() };
        path.spp_address.ss_family = sys::AF_CONN;
        path.spp_flags = sys::SPP_PMTUD_DISABLE;
        path.spp_pathmtu = ((settings.path_mtu - ENVELOPE) & !3) - 12;
        self.set(sctp, sys::SCTP_PEER_ADDR_PARAMS, &path)?;
        let mut name = address(ptr::null_mut(), PORT);
        // SAFETY: the socket is open, and the name is one of the kind it takes.
        done(unsafe { (self.library.usrsctp_bind)(self.socket, &raw mut name, len_of(&name)) })
    }

    fn set<T>(&self, level: c_int, option: c_int, value: &T) -> Result<()> {
        let (len, value) = (len_of(value), ptr::from_ref(value).cast());
        // SAFETY: the socket is open, and value and length are those of one object.
        done(unsafe { (self.library.usrsctp_setsockopt)(self.socket, level, option, value, len) })
    }

    fn pass_time(&mut self) {
        let passed = u32::try_from(self.told.elapsed().as_millis()).unwrap_or(TICK);
        if passed >= TICK {
            self.told = Instant::now();
            // SAFETY: nobody else uses this copy.
            unsafe { (self.library.usrsctp_handle_timers)(passed) };
        }
    }
}

impl End for Raw {
    fn send(&mut self, octets: usize) -> Result<bool> {
        let mut info = sys::sctp_sndinfo {
            snd_flags: sys::SCTP_UNORDERED,
            snd_ppid: 16_u32.to_be(),
            snd_assoc_id: ASSOCIATION.get(),
            ..Default::default()
        };
        let octets = self.octets.get(..octets).ok_or("too long")?;
        // SAFETY: the socket is open, and octets and information live through the call.
        let sent = unsafe {
            (self.library.usrsctp_sendv)(
                self.socket,
                octets.as_ptr().cast(),
                octets.len(),
                ptr::null_mut(),
                0,
                &raw mut info,
                len_of(&info),
                sys::SCTP_SENDV_SNDINFO,
                0,
            )
        };
        if sent >= 0 {
            return Ok(true);
        }
        match Error::last_os_error() {
            error if error.kind() == ErrorKind::WouldBlock => Ok(false),
            error => Err(error.into()),
        }
    }

    fn turn(&mut self) -> Result<u64> {
        match self.wire.recv(&mut self.packet) {
            Ok(len) => {
                let packet = &mut self.packet[..len];
                let sum: [u8; 4] = packet.get(SUM).ok_or("short")?.try_into()?;
                if checksum(packet) == sum {
                    // SAFETY: the packet is readable for its length.
                    unsafe {
                        (self.library.usrsctp_conninput)(PEER, packet.as_ptr().cast(), len, 0);
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        self.pass_time();
        Ok(CAME.take())
    }
}

/// Of a packet, whose field it clears.
fn checksum(packet: &mut [u8]) -> [u8; 4] {
    packet[SUM].fill(0);
    crc32c::crc32c(packet).to_le_bytes()
}

/// `conn_output`.
unsafe extern "C" fn send_packet(
    _address: *mut c_void,
    packet: *mut c_void,
    len: size_t,
    _tos: u8,
    _do_not_fragment: u8,
) -> c_int {
    // SAFETY: the library gives a packet of that length, to be changed as one likes.
    let packet = unsafe { std::slice::from_raw_parts_mut(packet.cast::<u8>(), len) };
    let sum = checksum(packet);
    packet[SUM].copy_from_slice(&sum);
    let Some(wire) = WIRE.get() else {
        return libc::ENOTCONN;
    };
    match wire.send(packet) {
        Ok(_) => 0,
        Err(_) => libc::ENOBUFS,
    }
}

/// `receive_cb`.
unsafe extern "C" fn take_message(
    _socket: *mut sys::socket,
    _from: sys::sctp_sockstore,
    data: *mut c_void,
    _len: size_t,
    info: sys::sctp_rcvinfo,
    _flags: c_int,
    _ulp_info: *mut c_void,
) -> c_int {
    if !data.is_null() {
        CAME.set(CAME.get() + 1);
        ASSOCIATION.set(info.rcv_assoc_id);
        // SAFETY: the library allocated it, and it is the callee's to free.
        unsafe { libc::free(data) };
    }
    1
}

fn address(token: *mut c_void, port: u16) -> sys::sockaddr_conn {
    sys::sockaddr_conn {
        sconn_family: sys::AF_CONN,
        sconn_port: port.to_be(),
        sconn_addr: token,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "small structures")]
fn len_of<T>(_: &T) -> libc::socklen_t {
    size_of::<T>() as libc::socklen_t
}

fn done(outcome: c_int) -> Result<()> {
    if outcome == 0 {
        Ok(())
    } else {
        Err(Error::last_os_error().into())
    }
}
