//! Where the library's callbacks put what they are called with.
//!
//! The library calls back from within calls to it, on the same thread: to send a packet, and to
//! hand over a message. Neither callback does anything but put it on the desk of the endpoint
//! whose call is under way; whoever made the call looks through it afterwards. So no event is told
//! from within C, nothing is entered twice, and a closure that panics unwinds through Rust alone.
//!
//! Which desk is a variable of the thread, set for the length of a call ([`Desk::serve`]): packet
//! callbacks have no other argument that could lead to one.

use super::parcel::Parcel;
use crate::carriage::Carriage;
use crate::checksum;
use crate::roster::{Label, Token};
use crate::udp::{Address, DATAGRAM, Sent};
use libc::{c_int, c_void, size_t};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr;
use usrsctp_sys::types::{
    MSG_EOR, MSG_NOTIFICATION, SCTP_UNORDERED, sctp_rcvinfo, sctp_sockstore, socket,
};

/// Octets from which on a packet is sent at once from where the library has it: to copy it costs
/// more than what a call of the kernel's for several would spare.
const LARGE: usize = 16 << 10;

/// A path that an association uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// Of the association.
    pub(super) place: u32,
    pub(super) address: Address,
}

/// Paths by token. A token is a keyed hash: hashing it again would add nothing.
pub(super) type Paths = HashMap<Token, Path, BuildHasherDefault<AsItIs>>;

/// The hash of a number that is a hash.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        for octet in octets {
            self.0 = self.0.rotate_left(8) ^ u64::from(*octet);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// An endpoint's desk.
pub(super) struct Desk {
    /// What packets leave by.
    pub(super) carriage: Carriage,
    /// Messages and notifications, in order.
    pub(super) parcels: VecDeque<Parcel>,
    /// The paths of all associations.
    pub(super) paths: Paths,
    /// Where the packet being taken came from: the only path that may be answered without an
    /// association.
    pub(super) visitor: Option<(Token, Address)>,
    /// Packets that found no room and were dropped, as a network would.
    pub(super) crowded: u64,
}

thread_local! {
    /// The desk of the call under way on this thread, or null.
    static DESK: Cell<*mut Desk> = const { Cell::new(ptr::null_mut()) };
}

impl Desk {
    /// Serves a call to the library.
    ///
    /// # Safety
    ///
    /// The desk lives through the call and nothing else touches it meanwhile.
    pub(super) unsafe fn serve<T>(desk: *mut Desk, call: impl FnOnce() -> T) -> T {
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                DESK.set(ptr::null_mut());
            }
        }
        debug_assert!(DESK.get().is_null(), "no call within a call");
        DESK.set(desk);
        let _leave = Leave;
        call()
    }

    /// Sends the datagrams that wait.
    pub(super) fn flush(&mut self) -> Sent {
        self.carriage.flush()
    }

    fn send(&mut self, token: Token, packet: &mut [u8]) {
        let to = match self.paths.get(&token) {
            Some(path) => path.address,
            None => match self.visitor {
                Some((visitor, address)) if visitor == token => address,
                // Of an association that is gone.
                _ => return,
            },
        };
        if packet.len() >= LARGE && self.flush() == Sent::All {
            checksum::put(packet);
            if self.carriage.pass(packet, to) {
                return;
            }
        }
        if self.put(packet, to) {
            return;
        }
        self.flush();
        if !self.put(packet, to) {
            self.crowded += 1;
        }
    }

    fn put(&mut self, packet: &[u8], to: Address) -> bool {
        let Some(place) = self.carriage.room(packet.len(), to) else {
            return false;
        };
        place.copy_from_slice(packet);
        checksum::put(place);
        true
    }
}

/// Sends a packet of the library's: `conn_output`.
pub(super) unsafe extern "C" fn send_packet(
    address: *mut c_void,
    packet: *mut c_void,
    len: size_t,
    _tos: u8,
    _do_not_fragment: u8,
) -> c_int {
    let desk = DESK.get();
    if desk.is_null() || len > DATAGRAM {
        return libc::ENOBUFS;
    }
    // SAFETY: `serve` was promised that nothing else touches the desk now.
    let desk = unsafe { &mut *desk };
    // SAFETY: the library gives a packet of that length, made for this call, in whose checksum it
    // would write itself otherwise.
    let packet = unsafe { std::slice::from_raw_parts_mut(packet.cast::<u8>(), len) };
    desk.send(address as usize as Token, packet);
    0
}

/// Takes a message or notification: `receive_cb`.
pub(super) unsafe extern "C" fn take_message(
    _socket: *mut socket,
    from: sctp_sockstore,
    data: *mut c_void,
    len: size_t,
    info: sctp_rcvinfo,
    flags: c_int,
    _ulp_info: *mut c_void,
) -> c_int {
    // SAFETY: on AF_CONN sockets the address is of this kind.
    let from = unsafe { from.sconn };
    let label = (flags & MSG_NOTIFICATION == 0).then_some(Label {
        stream: info.rcv_sid,
        ppid: u32::from_be(info.rcv_ppid),
        unordered: info.rcv_flags & SCTP_UNORDERED != 0,
        complete: flags & MSG_EOR != 0,
    });
    let token = from.sconn_addr as usize as Token;
    // SAFETY: the library allocated it, and it is the callee's to free.
    let parcel = unsafe { Parcel::adopt(data, len, token, label) };
    let desk = DESK.get();
    if let Some(parcel) = parcel
        && !desk.is_null()
    {
        // SAFETY: `serve` was promised that nothing else touches the desk now.
        unsafe { (*desk).parcels.push_back(parcel) };
    }
    1
}
