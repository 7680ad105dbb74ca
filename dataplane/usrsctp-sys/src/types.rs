//! Structures and constants of `usrsctp.h`.

use libc::{c_char, c_int, c_void, size_t, sockaddr_in6, sockaddr_storage};
use std::marker::{PhantomData, PhantomPinned};

/// A socket of the library's.
#[repr(C)]
#[derive(Debug)]
pub struct socket {
    _opaque: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// Sends a packet, from the SCTP header on; address, packet, octets, TOS, whether not to fragment.
pub type ConnOutput = unsafe extern "C" fn(*mut c_void, *mut c_void, size_t, u8, u8) -> c_int;
/// Says something for people.
pub type DebugPrintf = unsafe extern "C" fn(*const c_char, ...);
/// Takes a message or notification: its memory is the callee's.
pub type Receive = unsafe extern "C" fn(
    *mut socket,
    sctp_sockstore,
    *mut c_void,
    size_t,
    sctp_rcvinfo,
    c_int,
    *mut c_void,
) -> c_int;
/// Says that there is room to send.
pub type SendRoom = unsafe extern "C" fn(*mut socket, u32, *mut c_void) -> c_int;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sockaddr_conn {
    pub sconn_family: u16,
    pub sconn_port: u16,
    pub sconn_addr: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union sctp_sockstore {
    pub sin6: sockaddr_in6,
    pub sconn: sockaddr_conn,
}

/// Declares plain structures, which may be all zeros.
macro_rules! structures {
    ($($name:ident { $($field:ident: $kind:ty),* $(,)? })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy, Debug, Default)]
            pub struct $name { $(pub $field: $kind),* }
        )*
    };
}

structures! {
    sctp_rcvinfo {
        rcv_sid: u16, rcv_ssn: u16, rcv_flags: u16, rcv_ppid: u32, rcv_tsn: u32, rcv_cumtsn: u32,
        rcv_context: u32, rcv_assoc_id: u32,
    }
    sctp_sndinfo { snd_sid: u16, snd_flags: u16, snd_ppid: u32, snd_context: u32, snd_assoc_id: u32 }
    sctp_assoc_change {
        sac_type: u16, sac_flags: u16, sac_length: u32, sac_state: u16, sac_error: u16,
        sac_outbound_streams: u16, sac_inbound_streams: u16, sac_assoc_id: u32,
    }
    sctp_adaptation_event {
        sai_type: u16, sai_flags: u16, sai_length: u32, sai_adaptation_ind: u32, sai_assoc_id: u32,
    }
    sctp_event { se_assoc_id: u32, se_type: u16, se_on: u8 }
    sctp_initmsg {
        sinit_num_ostreams: u16, sinit_max_instreams: u16, sinit_max_attempts: u16,
        sinit_max_init_timeo: u16,
    }
    sctp_rtoinfo { srto_assoc_id: u32, srto_initial: u32, srto_max: u32, srto_min: u32 }
    sctp_assocparams {
        sasoc_assoc_id: u32, sasoc_peer_rwnd: u32, sasoc_local_rwnd: u32, sasoc_cookie_life: u32,
        sasoc_asocmaxrxt: u16, sasoc_number_peer_destinations: u16,
    }
    sctp_setadaptation { ssb_adaptation_ind: u32 }
    sctp_assoc_value { assoc_id: u32, assoc_value: u32 }
    sctp_sack_info { sack_assoc_id: u32, sack_delay: u32, sack_freq: u32 }
}

#[repr(C)]
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "an address in libc's form")]
pub struct sctp_paddrparams {
    pub spp_address: sockaddr_storage,
    pub spp_assoc_id: u32,
    pub spp_hbinterval: u32,
    pub spp_pathmtu: u32,
    pub spp_flags: u32,
    pub spp_ipv6_flowlabel: u32,
    pub spp_pathmaxrxt: u16,
    pub spp_dscp: u8,
}

pub const AF_CONN: u16 = 123;
pub const MSG_NOTIFICATION: c_int = 0x2000;
pub const MSG_EOR: c_int = 0x80;

pub const SCTP_SENDV_SNDINFO: u32 = 1;
pub const SCTP_EOF: u16 = 0x0100;
pub const SCTP_ABORT: u16 = 0x0200;
pub const SCTP_UNORDERED: u16 = 0x0400;

pub const SCTP_ASSOC_CHANGE: u16 = 0x0001;
pub const SCTP_SHUTDOWN_EVENT: u16 = 0x0005;
pub const SCTP_ADAPTATION_INDICATION: u16 = 0x0006;
pub const SCTP_PARTIAL_DELIVERY_EVENT: u16 = 0x0007;
pub const SCTP_SENDER_DRY_EVENT: u16 = 0x000a;

pub const SCTP_COMM_UP: u16 = 1;
pub const SCTP_COMM_LOST: u16 = 2;
pub const SCTP_RESTART: u16 = 3;
pub const SCTP_SHUTDOWN_COMP: u16 = 4;
pub const SCTP_CANT_STR_ASSOC: u16 = 5;

pub const SCTP_RTOINFO: c_int = 0x01;
pub const SCTP_ASSOCINFO: c_int = 0x02;
pub const SCTP_INITMSG: c_int = 0x03;
pub const SCTP_NODELAY: c_int = 0x04;
pub const SCTP_ADAPTATION_LAYER: c_int = 0x08;
pub const SCTP_DISABLE_FRAGMENTS: c_int = 0x09;
pub const SCTP_PEER_ADDR_PARAMS: c_int = 0x0a;
pub const SCTP_DELAYED_SACK: c_int = 0x0f;
pub const SCTP_FRAGMENT_INTERLEAVE: c_int = 0x10;
pub const SCTP_PARTIAL_DELIVERY_POINT: c_int = 0x11;
pub const SCTP_MAX_BURST: c_int = 0x19;
pub const SCTP_EVENT: c_int = 0x1e;
pub const SPP_HB_ENABLE: u32 = 0x01;
pub const SPP_PMTUD_DISABLE: u32 = 0x10;
