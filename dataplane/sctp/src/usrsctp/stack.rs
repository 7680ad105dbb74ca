//! The library, one socket of it, and the desk: everything that is called, in safe words.

use super::desk::{Desk, Path, Paths, send_packet, take_message};
use crate::carriage::Carriage;
use crate::checksum::HEADER_OCTETS;
use crate::llp::Error;
use crate::roster::Token;
use crate::settings::{Settings, milliseconds};
use crate::udp::octets_of;
use libc::{c_int, c_void};
use std::collections::VecDeque;
use std::io;
use std::ptr::{self, NonNull};
use usrsctp_sys::{Instance, types as sys};

/// Chunks that an association queues, sent or not: DDP has at most 32767 of a stream out.
const CHUNKS: u32 = 8192;

/// Packets that one SACK may set free at once. Without a limit, a peer that acknowledges a whole
/// window is answered by a whole window, which no socket buffer holds.
const BURST: u32 = 32;

/// An endpoint in a copy of the library that is this endpoint's alone.
pub(super) struct Stack {
    copy: Instance,
    socket: NonNull<sys::socket>,
    /// From `Box::into_raw`: callbacks use it through the thread's variable.
    desk: NonNull<Desk>,
}

// SAFETY: whoever has the stack has its copy of the library, its socket and its desk alone; none
// is bound to a thread.
unsafe impl Send for Stack {}

impl Stack {
    /// A socket on a copy of the library.
    pub(super) fn open(
        carriage: Carriage,
        settings: &Settings,
        listens: bool,
    ) -> Result<Stack, Error> {
        let copy = Instance::take().map_err(|absent| Error::Absent(absent.to_string()))?;
        if copy.is_fresh() {
            set_up(&copy);
        }
        // SAFETY: constants and a callback that lives as long as the program.
        let socket = unsafe {
            (copy.usrsctp_socket)(
                c_int::from(sys::AF_CONN),
                libc::SOCK_SEQPACKET,
                libc::IPPROTO_SCTP,
                Some(take_message),
                None,
                0,
                ptr::null_mut(),
            )
        };
        let Some(socket) = NonNull::new(socket) else {
            return Err(failed("usrsctp_socket"));
        };
        let desk = Box::new(Desk {
            carriage,
            parcels: VecDeque::with_capacity(256),
            paths: Paths::default(),
            visitor: None,
            crowded: 0,
        });
        let mut stack = Stack {
            copy,
            socket,
            desk: NonNull::from(Box::leak(desk)),
        };
        stack.configure(settings)?;
        stack.bind(settings, listens)?;
        Ok(stack)
    }

    /// The desk, between calls.
    pub(super) fn desk(&mut self) -> &mut Desk {
        // SAFETY: it lives as long as the stack, which is borrowed mutably.
        unsafe { self.desk.as_mut() }
    }

    /// The desk, to look at.
    pub(super) fn peek(&self) -> &Desk {
        // SAFETY: it lives as long as the stack, which is borrowed.
        unsafe { self.desk.as_ref() }
    }

    /// Makes a call, with the desk open for its callbacks.
    fn call<T>(&mut self, call: impl FnOnce(&Instance, *mut sys::socket) -> T) -> T {
        let (copy, socket) = (&self.copy, self.socket.as_ptr());
        // SAFETY: the desk lives as long as the stack, which is borrowed mutably, and `call` has
        // no way to it.
        unsafe { Desk::serve(self.desk.as_ptr(), || call(copy, socket)) }
    }

    fn set<T>(&mut self, level: c_int, option: c_int, value: &T) -> Result<(), Error> {
        let len = octets_of::<T>();
        let value = ptr::from_ref(value).cast::<c_void>();
        let outcome = self.call(|copy, socket| {
            // SAFETY: the socket is open, and value and length are those of one object.
            unsafe { (copy.usrsctp_setsockopt)(socket, level, option, value, len) }
        });
        done(outcome, "usrsctp_setsockopt")
    }

    fn configure(&mut self, settings: &Settings) -> Result<(), Error> {
        let sctp = libc::IPPROTO_SCTP;
        let bytes = |octets: u32| c_int::try_from(octets).unwrap_or(c_int::MAX);
        self.set(
            libc::SOL_SOCKET,
            libc::SO_SNDBUF,
            &bytes(settings.send_bytes),
        )?;
        self.set(
            libc::SOL_SOCKET,
            libc::SO_RCVBUF,
            &bytes(settings.receive_bytes),
        )?;
        self.set(sctp, sys::SCTP_NODELAY, &1_i32)?;
        // Whole messages only: one that SCTP had to fragment is put together first.
        self.set(sctp, sys::SCTP_FRAGMENT_INTERLEAVE, &0_i32)?;
        self.set(
            sctp,
            sys::SCTP_PARTIAL_DELIVERY_POINT,
            &(settings.receive_bytes / 2),
        )?;
        for event in [
            sys::SCTP_ASSOC_CHANGE,
            sys::SCTP_ADAPTATION_INDICATION,
            sys::SCTP_SHUTDOWN_EVENT,
            sys::SCTP_PARTIAL_DELIVERY_EVENT,
        ] {
            self.listen_for(event, 0, true)?;
        }
        if let Some(value) = settings.indication {
            let indication = sys::sctp_setadaptation {
                ssb_adaptation_ind: value,
            };
            self.set(sctp, sys::SCTP_ADAPTATION_LAYER, &indication)?;
        }
        self.pace(settings)
    }

    /// Has the library tell of something, or not: on one association, or on all to come.
    fn listen_for(&mut self, event: u16, number: u32, on: bool) -> Result<(), Error> {
        let event = sys::sctp_event {
            se_assoc_id: number,
            se_type: event,
            se_on: on.into(),
        };
        self.set(libc::IPPROTO_SCTP, sys::SCTP_EVENT, &event)
    }

    /// Has the library tell when all that was sent on an association has been acknowledged, at
    /// once if it has been; or not any more.
    pub(super) fn tell_dry(&mut self, number: u32, on: bool) -> Result<(), Error> {
        self.listen_for(sys::SCTP_SENDER_DRY_EVENT, number, on)
    }

    /// Options that have to do with time.
    fn pace(&mut self, settings: &Settings) -> Result<(), Error> {
        let sctp = libc::IPPROTO_SCTP;
        let short = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
        let init = sys::sctp_initmsg {
            sinit_num_ostreams: settings.streams,
            sinit_max_instreams: settings.streams,
            sinit_max_attempts: settings.attempts,
            sinit_max_init_timeo: short(milliseconds(settings.rto_max)),
        };
        self.set(sctp, sys::SCTP_INITMSG, &init)?;
        let most = milliseconds(settings.rto_max).max(1);
        let least = milliseconds(settings.rto_min).clamp(1, most);
        let rto = sys::sctp_rtoinfo {
            srto_assoc_id: 0,
            srto_initial: milliseconds(settings.rto_initial).clamp(least, most),
            srto_max: most,
            srto_min: least,
        };
        self.set(sctp, sys::SCTP_RTOINFO, &rto)?;
        let association = sys::sctp_assocparams {
            sasoc_asocmaxrxt: settings.retransmissions,
            ..Default::default()
        };
        self.set(sctp, sys::SCTP_ASSOCINFO, &association)?;
        let sack = sys::sctp_sack_info {
            sack_assoc_id: 0,
            sack_delay: milliseconds(settings.sack_delay),
            sack_freq: 2,
        };
        self.set(sctp, sys::SCTP_DELAYED_SACK, &sack)?;
        let mut path = path_parameters();
        path.spp_flags = sys::SPP_HB_ENABLE;
        path.spp_hbinterval = milliseconds(settings.heartbeat);
        path.spp_pathmaxrxt = settings.retransmissions;
        self.set(sctp, sys::SCTP_PEER_ADDR_PARAMS, &path)
    }

    fn bind(&mut self, settings: &Settings, listens: bool) -> Result<(), Error> {
        // Who only asks takes any port: peers tell their associations apart by it.
        let port = if listens { settings.sctp_port } else { 0 };
        let mut name = address(0, port);
        let outcome = self.call(|copy, socket| {
            // SAFETY: the socket is open, and the name is one of the kind it takes.
            unsafe { (copy.usrsctp_bind)(socket, &raw mut name, ADDRESS_LEN) }
        });
        done(outcome, "usrsctp_bind")?;
        let outcome = self.call(|copy, socket| {
            // SAFETY: the socket is open.
            unsafe { (copy.usrsctp_set_non_blocking)(socket, 1) }
        });
        done(outcome, "usrsctp_set_non_blocking")?;
        if !listens {
            return Ok(());
        }
        let backlog = c_int::try_from(settings.associations).unwrap_or(c_int::MAX);
        let outcome = self.call(|copy, socket| {
            // SAFETY: the socket is open.
            unsafe { (copy.usrsctp_listen)(socket, backlog.max(1)) }
        });
        done(outcome, "usrsctp_listen")
    }

    /// Octets of the longest packet, SCTP header included, of associations that come to be from
    /// now on. The library counts without the header.
    pub(super) fn set_packet_bytes(&mut self, packet_bytes: u32) -> Result<(), Error> {
        self.narrow(0, packet_bytes)
    }

    /// The same for one association, which takes a lower number only.
    pub(super) fn narrow(&mut self, number: u32, packet_bytes: u32) -> Result<(), Error> {
        let mut path = path_parameters();
        path.spp_assoc_id = number;
        path.spp_flags = sys::SPP_PMTUD_DISABLE;
        path.spp_pathmtu = packet_bytes - HEADER_OCTETS;
        self.set(libc::IPPROTO_SCTP, sys::SCTP_PEER_ADDR_PARAMS, &path)
    }

    /// Opens a path: packets on it go out, and come in as those of an association.
    ///
    /// The library believes both ends of a packet to have its path for an address, and looks for
    /// it among this end's own: a list, walked for each packet that comes. Who is not in it can
    /// begin an association and do nothing else.
    pub(super) fn open_path(&mut self, token: Token, path: Path) {
        self.desk().paths.insert(token, path);
        self.call(|copy, _| {
            // SAFETY: the token is never followed.
            unsafe { (copy.usrsctp_register_address)(pointer(token)) }
        });
    }

    /// Closes a path.
    pub(super) fn close_path(&mut self, token: Token) {
        self.desk().paths.remove(&token);
        self.call(|copy, _| {
            // SAFETY: the token is never followed.
            unsafe { (copy.usrsctp_deregister_address)(pointer(token)) }
        });
    }

    /// Asks for an association.
    pub(super) fn connect(&mut self, token: Token, port: u16) -> Result<(), Error> {
        let mut name = address(token, port);
        let outcome = self.call(|copy, socket| {
            // SAFETY: the socket is open, and the name is one of the kind it takes.
            unsafe { (copy.usrsctp_connect)(socket, &raw mut name, ADDRESS_LEN) }
        });
        match done(outcome, "usrsctp_connect") {
            Err(Error::Library { source, .. })
                if source.raw_os_error() == Some(libc::EINPROGRESS) =>
            {
                Ok(())
            }
            other => other,
        }
    }

    /// The library's number of an association that is being asked for, or is there.
    pub(super) fn number_of(&mut self, token: Token, port: u16) -> Option<u32> {
        let mut name = address(token, port);
        let number = self.call(|copy, socket| {
            // SAFETY: the socket is open, and the name is one of the kind it takes.
            unsafe { (copy.usrsctp_getassocid)(socket, &raw mut name) }
        });
        (number != 0).then_some(number)
    }

    /// Takes a packet from a path.
    pub(super) fn input(&mut self, token: Token, packet: &[u8]) {
        self.call(|copy, _| {
            // SAFETY: the packet is readable for its length; the token is never followed.
            unsafe {
                (copy.usrsctp_conninput)(pointer(token), packet.as_ptr().cast(), packet.len(), 0);
            }
        });
    }

    /// Lets time pass.
    pub(super) fn elapse(&mut self, milliseconds: u32) {
        self.call(|copy, _| {
            // SAFETY: nobody else uses this copy.
            unsafe { (copy.usrsctp_handle_timers)(milliseconds) }
        });
    }

    /// Sends one chunk, or none with flags that end the association.
    pub(super) fn send(&mut self, to: &sys::sctp_sndinfo, octets: &[u8]) -> io::Result<()> {
        let mut info = *to;
        let sent = self.call(|copy, socket| {
            // SAFETY: the socket is open, and octets and information live through the call.
            unsafe {
                (copy.usrsctp_sendv)(
                    socket,
                    octets.as_ptr().cast(),
                    octets.len(),
                    ptr::null_mut(),
                    0,
                    &raw mut info,
                    octets_of::<sys::sctp_sndinfo>(),
                    sys::SCTP_SENDV_SNDINFO,
                    0,
                )
            }
        });
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Ends an association, by [`sys::SCTP_ABORT`] or [`sys::SCTP_EOF`].
    pub(super) fn end(&mut self, number: u32, how: u16) -> io::Result<()> {
        let info = sys::sctp_sndinfo {
            snd_assoc_id: number,
            snd_flags: how,
            ..Default::default()
        };
        self.send(&info, &[])
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.call(|copy, socket| {
            // SAFETY: the socket is open and is closed once.
            unsafe { (copy.usrsctp_close)(socket) }
        });
        self.desk().flush();
        // SAFETY: it came from a box, and nothing leads to it any more.
        drop(unsafe { Box::from_raw(self.desk.as_ptr()) });
    }
}

/// Sets a copy of the library up, which only its first user does.
fn set_up(copy: &Instance) {
    // SAFETY: the first call to this copy; the callback lives as long as the program.
    unsafe { (copy.usrsctp_init_nothreads)(0, Some(send_packet), None) };
    // SAFETY: the copy is set up; this and what follows only store numbers.
    unsafe { (copy.usrsctp_enable_crc32c_offload)() };
    // What DDP has no use for is not on offer to a peer.
    let off = [
        copy.usrsctp_sysctl_set_sctp_ecn_enable,
        copy.usrsctp_sysctl_set_sctp_pr_enable,
        copy.usrsctp_sysctl_set_sctp_asconf_enable,
        copy.usrsctp_sysctl_set_sctp_auto_asconf,
        copy.usrsctp_sysctl_set_sctp_auth_enable,
        copy.usrsctp_sysctl_set_sctp_reconfig_enable,
        copy.usrsctp_sysctl_set_sctp_blackhole,
    ];
    for setting in off {
        // SAFETY: as above.
        unsafe { setting(0) };
    }
    // SAFETY: as above.
    unsafe { (copy.usrsctp_sysctl_set_sctp_max_chunks_on_queue)(CHUNKS) };
    // SAFETY: as above.
    unsafe { (copy.usrsctp_sysctl_set_sctp_max_burst_default)(BURST) };
    // SAFETY: as above.
    unsafe { (copy.usrsctp_sysctl_set_sctp_fr_max_burst_default)(BURST) };
}

const ADDRESS_LEN: libc::socklen_t = octets_of::<sys::sockaddr_conn>();

fn pointer(token: Token) -> *mut c_void {
    ptr::without_provenance_mut(usize::try_from(token).unwrap_or(usize::MAX))
}

fn address(token: Token, port: u16) -> sys::sockaddr_conn {
    sys::sockaddr_conn {
        sconn_family: sys::AF_CONN,
        sconn_port: port.to_be(),
        sconn_addr: pointer(token),
    }
}

/// Of every path, and changing nothing.
fn path_parameters() -> sys::sctp_paddrparams {
    // SAFETY: numbers and an address without family are all there is in it.
    let mut parameters: sys::sctp_paddrparams = unsafe { std::mem::zeroed() };
    parameters.spp_address.ss_family = sys::AF_CONN;
    parameters
}

fn failed(call: &'static str) -> Error {
    Error::Library {
        call,
        source: io::Error::last_os_error(),
    }
}

fn done(outcome: c_int, call: &'static str) -> Result<(), Error> {
    if outcome == 0 {
        Ok(())
    } else {
        Err(failed(call))
    }
}
