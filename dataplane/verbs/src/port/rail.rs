//! The calls into the device that post work.
//!
//! Each queue pair is posted to in one of two ways, chosen when it was made: by the calls of
//! `ibv_wr_*` where its provider has them for all that is needed here, else by lists of work
//! requests. Either way a run of requests is one doorbell. The requests themselves are put
//! together in [`super::batch`], in the form of the second way, which the first reads.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use rdma_core_sys as rdma;
use rdma_core_sys::inline as ibv;
use std::ptr;

/// The name of an object of rdma-core's, to be carried about. Whether it is alive is known by
/// who carries it.
pub(crate) struct Raw<T>(pub(crate) *mut T);

impl<T> std::fmt::Debug for Raw<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:p}", self.0)
    }
}

impl<T> Clone for Raw<T> {
    fn clone(&self) -> Raw<T> {
        *self
    }
}

impl<T> Copy for Raw<T> {}

// SAFETY: rdma-core's objects may be used from any thread.
unsafe impl<T> Send for Raw<T> {}

// SAFETY: as above, and the name itself never changes.
unsafe impl<T> Sync for Raw<T> {}

impl Raw<rdma::ibv_mw> {
    /// Notes the key of a window's last use where providers look for it: nobody else does that
    /// for a binding by work request, and rxe's kernel half refuses the next one without.
    #[inline]
    pub(crate) fn note_key(self, rkey: u32) {
        if !self.0.is_null() {
            // SAFETY: the port that has a window has it to itself, and control destroys it only
            // when it has come back.
            unsafe { (*self.0).rkey = rkey };
        }
    }
}

/// Requests of a run that were posted before one that was not, and errno for that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub(crate) posted: usize,
    pub(crate) errno: i32,
}

/// A queue pair as it is posted to. Copied out of its owner, which its port keeps for as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rail {
    /// Lists of work requests.
    Plain(*mut rdma::ibv_qp),
    /// `ibv_wr_*`.
    Extended(*mut rdma::ibv_qp_ex),
}

// SAFETY: a name of an object that may be used from any thread; who uses it, and for how long it
// is there, is the business of the port that has it.
unsafe impl Send for Rail {}

// SAFETY: as above, and the name itself never changes.
unsafe impl Sync for Rail {}

impl Rail {
    /// The queue pair as every call but `ibv_wr_*` wants it.
    pub(crate) fn plain(self) -> *mut rdma::ibv_qp {
        match self {
            Rail::Plain(qp) => qp,
            // The plain one is what an extended one begins with.
            Rail::Extended(qp) => qp.cast(),
        }
    }

    /// Posts a run of send requests, each with its elements in the row of its number.
    ///
    /// # Safety
    ///
    /// The queue pair is alive, and everything that the requests and their elements point at is
    /// what they say.
    #[inline]
    pub(crate) unsafe fn post_sends<const N: usize>(
        self,
        requests: &mut [rdma::ibv_send_wr],
        elements: &mut [[rdma::ibv_sge; N]],
    ) -> Result<(), Stopped> {
        match self {
            Rail::Plain(qp) => {
                link(requests, elements);
                // SAFETY: the caller's promise; the list was just linked, and ends.
                unsafe { post_list(qp, requests) }
            }
            Rail::Extended(qp) => {
                // SAFETY: the caller's promise.
                unsafe { post_calls(qp, requests, elements) }
            }
        }
    }

    /// Posts a run of receives, each of one element.
    ///
    /// # Safety
    ///
    /// As [`Rail::post_sends`].
    #[inline]
    pub(crate) unsafe fn post_receives(
        self,
        requests: &mut [rdma::ibv_recv_wr],
        elements: &mut [rdma::ibv_sge],
    ) -> Result<(), Stopped> {
        let count = requests.len();
        let first = requests.as_mut_ptr();
        for (n, (request, element)) in requests.iter_mut().zip(elements).enumerate() {
            request.sg_list = element;
            request.next = if n + 1 < count {
                first.wrapping_add(n + 1)
            } else {
                ptr::null_mut()
            };
        }
        let mut bad = ptr::null_mut();
        // SAFETY: the caller's promise; the list was just linked, and ends.
        match unsafe { ibv::ibv_post_recv(self.plain(), first, &raw mut bad) } {
            0 => Ok(()),
            errno => Err(stopped(first, bad, count, errno)),
        }
    }
}

/// Makes requests a list, each with its own row of elements.
fn link<const N: usize>(requests: &mut [rdma::ibv_send_wr], elements: &mut [[rdma::ibv_sge; N]]) {
    let count = requests.len();
    let first = requests.as_mut_ptr();
    for (n, (request, row)) in requests.iter_mut().zip(elements).enumerate() {
        request.sg_list = row.as_mut_ptr();
        request.next = if n + 1 < count {
            first.wrapping_add(n + 1)
        } else {
            ptr::null_mut()
        };
    }
}

/// # Safety
///
/// As [`Rail::post_sends`], and the requests are a list in their order.
#[inline]
unsafe fn post_list(
    qp: *mut rdma::ibv_qp,
    requests: &mut [rdma::ibv_send_wr],
) -> Result<(), Stopped> {
    let first = requests.as_mut_ptr();
    let mut bad = ptr::null_mut();
    // SAFETY: the caller's promise.
    match unsafe { ibv::ibv_post_send(qp, first, &raw mut bad) } {
        0 => Ok(()),
        errno => Err(stopped(first, bad, requests.len(), errno)),
    }
}

/// Where a list was stopped. Providers that say nothing usable are taken to have posted nothing;
/// some give errno its kernel's sign.
#[cold]
fn stopped<T>(first: *mut T, bad: *mut T, count: usize, errno: i32) -> Stopped {
    let octets = bad.addr().wrapping_sub(first.addr());
    let posted = octets / size_of::<T>();
    Stopped {
        posted: if posted < count { posted } else { 0 },
        errno: errno.wrapping_abs(),
    }
}

/// All or nothing: a batch that one request spoils is not posted at all.
///
/// # Safety
///
/// As [`Rail::post_sends`].
#[inline]
unsafe fn post_calls<const N: usize>(
    qp: *mut rdma::ibv_qp_ex,
    requests: &[rdma::ibv_send_wr],
    elements: &[[rdma::ibv_sge; N]],
) -> Result<(), Stopped> {
    // SAFETY: the caller's promise.
    unsafe { ibv::ibv_wr_start(qp) };
    for (request, row) in requests.iter().zip(elements) {
        // SAFETY: alive, and between start and complete ours to set.
        unsafe { (*qp).wr_id = request.wr_id };
        // SAFETY: as above.
        unsafe { (*qp).wr_flags = request.send_flags };
        // SAFETY: the caller's promise.
        let has_elements = unsafe { begin(qp, request) };
        if has_elements {
            let count = usize::try_from(request.num_sge).unwrap_or_default();
            let row = row.get(..count).unwrap_or_default();
            let inline = request.send_flags & rdma::IBV_SEND_INLINE != 0;
            // SAFETY: the caller's promise.
            unsafe { set_memory(qp, row, inline) };
        }
    }
    // SAFETY: started above.
    match unsafe { ibv::ibv_wr_complete(qp) } {
        0 => Ok(()),
        errno => Err(Stopped { posted: 0, errno }),
    }
}

/// The call for a request's kind. True when memory is to be set.
///
/// # Safety
///
/// As [`Rail::post_sends`], within a started batch.
#[inline]
unsafe fn begin(qp: *mut rdma::ibv_qp_ex, request: &rdma::ibv_send_wr) -> bool {
    match request.opcode {
        rdma::IBV_WR_SEND => {
            // SAFETY: the caller's promise.
            unsafe { ibv::ibv_wr_send(qp) };
            true
        }
        rdma::IBV_WR_SEND_WITH_INV => {
            // SAFETY: a Send With Invalidate was given its key, a number.
            let rkey = unsafe { request.__bindgen_anon_1.invalidate_rkey };
            // SAFETY: the caller's promise.
            unsafe { ibv::ibv_wr_send_inv(qp, rkey) };
            true
        }
        rdma::IBV_WR_RDMA_READ => {
            // SAFETY: an RDMA Read was given its target, numbers.
            let target = unsafe { request.wr.rdma };
            // SAFETY: the caller's promise.
            unsafe { ibv::ibv_wr_rdma_read(qp, target.rkey, target.remote_addr) };
            true
        }
        rdma::IBV_WR_RDMA_WRITE => {
            // SAFETY: an RDMA Write was given its target, numbers.
            let target = unsafe { request.wr.rdma };
            // SAFETY: the caller's promise.
            unsafe { ibv::ibv_wr_rdma_write(qp, target.rkey, target.remote_addr) };
            true
        }
        rdma::IBV_WR_LOCAL_INV => {
            // SAFETY: a local invalidation was given its key, a number.
            let rkey = unsafe { request.__bindgen_anon_1.invalidate_rkey };
            // SAFETY: the caller's promise.
            unsafe { ibv::ibv_wr_local_inv(qp, rkey) };
            false
        }
        _ => {
            debug_assert_eq!(request.opcode, rdma::IBV_WR_BIND_MW);
            // SAFETY: a binding was given all it needs, numbers and pointers.
            let bind = unsafe { &request.__bindgen_anon_2.bind_mw };
            // SAFETY: the caller's promise.
            unsafe { ibv::ibv_wr_bind_mw(qp, bind.mw, bind.rkey, &raw const bind.bind_info) };
            false
        }
    }
}

/// # Safety
///
/// As [`begin`].
#[inline]
unsafe fn set_memory(qp: *mut rdma::ibv_qp_ex, row: &[rdma::ibv_sge], inline: bool) {
    match row {
        [one] if inline => {
            let address = usize::try_from(one.addr).unwrap_or_default();
            let octets = ptr::with_exposed_provenance_mut(address);
            // SAFETY: the caller's promise.
            unsafe { ibv::ibv_wr_set_inline_data(qp, octets, one.length as usize) };
        }
        [one] => {
            // SAFETY: the caller's promise.
            unsafe { ibv::ibv_wr_set_sge(qp, one.lkey, one.addr, one.length) };
        }
        row => {
            // SAFETY: the caller's promise.
            unsafe { ibv::ibv_wr_set_sge_list(qp, row.len(), row.as_ptr()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_where_it_was_stopped() {
        let mut list = [0_u64; 4];
        let first = list.as_mut_ptr();
        let at = |n: usize| stopped(first, first.wrapping_add(n), 4, 22);
        assert_eq!(at(0).posted, 0);
        assert_eq!(at(3).posted, 3);
        assert_eq!(at(4).posted, 0, "not one of the list");
        assert_eq!(stopped(first, ptr::null_mut(), 4, 22).posted, 0);
        assert_eq!(at(1).errno, 22);
        assert_eq!(stopped(first, first, 4, -22).errno, 22);
    }

    #[test]
    fn a_run_becomes_a_list_with_an_end() {
        let mut requests = [rdma::ibv_send_wr::default(); 3];
        let mut rows = [[rdma::ibv_sge::default(); 2]; 3];
        link(&mut requests, &mut rows);
        assert_eq!(requests[0].next.cast_const(), &raw const requests[1]);
        assert_eq!(requests[1].next.cast_const(), &raw const requests[2]);
        assert!(requests[2].next.is_null());
        assert_eq!(requests[2].sg_list.cast_const(), rows[2].as_ptr());
    }
}
