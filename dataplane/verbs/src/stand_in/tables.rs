//! The calls of the stand-in, as tables have them.

#![expect(unsafe_code, reason = "called as a foreign interface is")]

use super::carry::address;
use super::{Books, Receive, Request, Taken};
use crate::port::Calls;
use rdma_core_sys as rdma;
use std::cell::RefCell;
use std::ptr;
use std::rc::Rc;

/// A completion queue, and what is behind it.
#[repr(C)]
pub(super) struct QueueObject {
    pub(super) queue: rdma::ibv_cq,
    pub(super) number: usize,
    pub(super) books: Rc<RefCell<Books>>,
}

/// A queue pair, and what is behind it.
#[repr(C)]
pub(super) struct PairObject {
    pub(super) pair: rdma::ibv_qp,
    pub(super) books: Rc<RefCell<Books>>,
}

/// A context's table.
pub(super) fn operations() -> rdma::ibv_context_ops {
    rdma::ibv_context_ops {
        poll_cq: Some(poll),
        req_notify_cq: Some(notify),
        post_send: Some(post_send),
        post_recv: Some(post_receive),
        ..rdma::ibv_context_ops::default()
    }
}

/// What the library would do.
pub(crate) fn calls() -> Calls {
    Calls {
        modify_qp: modify,
        get_cq_event: no_event,
        ack_cq_events: acknowledge,
    }
}

unsafe extern "C" fn poll(
    queue: *mut rdma::ibv_cq,
    count: libc::c_int,
    room: *mut rdma::ibv_wc,
) -> libc::c_int {
    // SAFETY: every queue of this context was made as a `QueueObject`.
    let object = unsafe { &*queue.cast::<QueueObject>() };
    let mut books = object.books.borrow_mut();
    let ready = &mut books.queues[object.number];
    let mut taken = 0;
    while taken < count
        && let Some(completion) = ready.pop_front()
    {
        // SAFETY: there is room for `count`.
        let place = unsafe { room.offset(taken as isize) };
        // SAFETY: as above.
        unsafe { place.write(completion) };
        taken += 1;
    }
    taken
}

unsafe extern "C" fn notify(_: *mut rdma::ibv_cq, _: libc::c_int) -> libc::c_int {
    0
}

unsafe extern "C" fn no_event(
    _: *mut rdma::ibv_comp_channel,
    _: *mut *mut rdma::ibv_cq,
    _: *mut *mut libc::c_void,
) -> libc::c_int {
    -1
}

unsafe extern "C" fn acknowledge(_: *mut rdma::ibv_cq, _: libc::c_uint) {}

unsafe extern "C" fn modify(
    pair: *mut rdma::ibv_qp,
    attributes: *mut rdma::ibv_qp_attr,
    _: libc::c_int,
) -> libc::c_int {
    // SAFETY: every queue pair of this context was made as a `PairObject`.
    let object = unsafe { &*pair.cast::<PairObject>() };
    // SAFETY: the caller's attributes live through the call.
    let state = unsafe { (*attributes).qp_state };
    assert_eq!(state, rdma::IBV_QPS_ERR, "no other state is asked for");
    object.books.borrow_mut().fail(object.pair.qp_num);
    0
}

unsafe extern "C" fn post_send(
    pair: *mut rdma::ibv_qp,
    list: *mut rdma::ibv_send_wr,
    bad: *mut *mut rdma::ibv_send_wr,
) -> libc::c_int {
    let next = |request: &rdma::ibv_send_wr| request.next;
    let hand_over = |books: &mut Books, number, request: &_| {
        // SAFETY: its elements are what they say.
        let taken = unsafe { take(request) };
        books.post(number, taken);
    };
    // SAFETY: the caller's promise.
    unsafe { post(pair, list, bad, next, hand_over) }
}

/// Hands over the requests of a list one by one, as many as the queue pair takes.
///
/// # Safety
///
/// `list` is a list of requests that ends, `next` says what follows in it, and `bad` is a place
/// for the one that is not taken.
unsafe fn post<R>(
    pair: *mut rdma::ibv_qp,
    mut list: *mut R,
    bad: *mut *mut R,
    next: impl Fn(&R) -> *mut R,
    mut hand_over: impl FnMut(&mut Books, u32, &R),
) -> libc::c_int {
    // SAFETY: every queue pair of this context was made as a `PairObject`.
    let object = unsafe { &*pair.cast::<PairObject>() };
    let number = object.pair.qp_num;
    let mut books = object.books.borrow_mut();
    let refusal = books.pairs[number as usize].refusal.take();
    books.pairs[number as usize].lists += 1;
    let mut posted = 0;
    while !list.is_null() {
        if let Some((first, errno)) = refusal
            && posted == first
        {
            // SAFETY: the caller's promise.
            unsafe { *bad = list };
            return errno;
        }
        // SAFETY: the caller's promise.
        let request = unsafe { &*list };
        hand_over(&mut books, number, request);
        posted += 1;
        list = next(request);
    }
    0
}

/// # Safety
///
/// The request's elements are what they say.
unsafe fn take(request: &rdma::ibv_send_wr) -> Taken {
    let count = usize::try_from(request.num_sge).expect("a number of elements");
    let elements = match count {
        0 => &[],
        // SAFETY: as many as the request says.
        _ => unsafe { std::slice::from_raw_parts(request.sg_list, count) },
    };
    let mut octets = Vec::new();
    if matches!(
        request.opcode,
        rdma::IBV_WR_SEND | rdma::IBV_WR_SEND_WITH_INV
    ) {
        for element in elements {
            let from = ptr::with_exposed_provenance(address(element.addr));
            // SAFETY: the caller's promise.
            octets.extend_from_slice(unsafe {
                std::slice::from_raw_parts(from, element.length as usize)
            });
        }
    }
    let first = elements.first().copied().unwrap_or_default();
    let mut taken = Request {
        ticket: request.wr_id,
        opcode: request.opcode,
        signalled: request.send_flags & rdma::IBV_SEND_SIGNALED != 0,
        key: 0,
        remote: 0,
        local: first.addr,
        length: first.length,
        access: 0,
    };
    match request.opcode {
        rdma::IBV_WR_RDMA_READ | rdma::IBV_WR_RDMA_WRITE => {
            // SAFETY: numbers.
            let target = unsafe { request.wr.rdma };
            (taken.key, taken.remote) = (target.rkey, target.remote_addr);
        }
        rdma::IBV_WR_SEND_WITH_INV | rdma::IBV_WR_LOCAL_INV => {
            // SAFETY: a number.
            taken.key = unsafe { request.__bindgen_anon_1.invalidate_rkey };
        }
        rdma::IBV_WR_BIND_MW => {
            // SAFETY: numbers and pointers.
            let bind = unsafe { request.__bindgen_anon_2.bind_mw };
            // SAFETY: the window lives as long as the device.
            let made = unsafe { (*bind.mw).rkey };
            assert_eq!(
                made >> 8,
                bind.rkey >> 8,
                "the device's part of a key stays"
            );
            assert_ne!(made, bind.rkey, "the key of the last use");
            // SAFETY: a number.
            let imm_data = unsafe { request.__bindgen_anon_1.imm_data };
            assert_eq!((imm_data, count), (0, 0), "as strict as rxe");
            taken.key = bind.rkey;
            taken.local = bind.bind_info.addr;
            taken.length = u32::try_from(bind.bind_info.length).expect("below 4 GiB");
            taken.access = bind.bind_info.mw_access_flags;
        }
        _ => {}
    }
    Taken {
        request: taken,
        octets,
    }
}

unsafe extern "C" fn post_receive(
    pair: *mut rdma::ibv_qp,
    list: *mut rdma::ibv_recv_wr,
    bad: *mut *mut rdma::ibv_recv_wr,
) -> libc::c_int {
    let next = |request: &rdma::ibv_recv_wr| request.next;
    let hand_over = |books: &mut Books, number, request: &rdma::ibv_recv_wr| {
        let mut receive = Receive {
            ticket: request.wr_id,
            address: 0,
            room: 0,
        };
        if request.num_sge > 0 {
            // SAFETY: as many as the request says.
            let element = unsafe { *request.sg_list };
            (receive.address, receive.room) = (element.addr, element.length);
        }
        books.receive(number, receive);
    };
    // SAFETY: the caller's promise.
    unsafe { post(pair, list, bad, next, hand_over) }
}
