//! The run of work requests that is being put together.
//!
//! A port does not post at once: it collects what one queue pair is given, and posts it in one
//! go when another queue pair's turn comes, when the run is full, or with the turn's `ring`. A
//! Read list's Reads, a Reply's Writes and its Send, a burst of Replies: each is one doorbell (on
//! software RDMA one system call), and only the last of a run needs a completion. There is one
//! batch for each port, so it stays in the cache whatever the number of connections.
//!
//! Receives go ahead of the sends of the same run: the grant that a message carries is covered
//! before it leaves.

use super::parts::Registered;
use super::ticket::Ticket;
use rdma_core_sys as rdma;
use rpcrdma_fabric::{Handle, Segment, Span};

/// Send requests of one run.
const SENDS: usize = 32;
/// Receives of one run.
const RECEIVES: usize = 16;
/// Elements of one request.
pub(crate) const MOST_ELEMENTS: usize = 16;
/// Longest message that goes inline, whatever a device allows: beyond this copying costs more
/// than the device's fetching.
pub(crate) const MOST_INLINE: usize = 512;

/// Nobody's index.
const NOBODY: u32 = u32::MAX;

type Row = [rdma::ibv_sge; MOST_ELEMENTS];

/// A run of requests for one queue pair.
pub(crate) struct Batch {
    owner: u32,
    requests: Box<[rdma::ibv_send_wr; SENDS]>,
    rows: Box<[Row; SENDS]>,
    octets: Box<[[u8; MOST_INLINE]; SENDS]>,
    sends: usize,
    /// Flags of every request but a Read.
    behind_reads: u32,
    receive_requests: Box<[rdma::ibv_recv_wr; RECEIVES]>,
    receive_elements: Box<[rdma::ibv_sge; RECEIVES]>,
    receives: usize,
}

/// The place of the next request of a run.
pub(crate) struct Slot<'a> {
    request: &'a mut rdma::ibv_send_wr,
    row: &'a mut Row,
    pub(crate) octets: &'a mut [u8; MOST_INLINE],
    count: &'a mut usize,
    behind_reads: u32,
    elements: usize,
}

/// A run that is ready to be posted.
pub(crate) struct Ready<'a> {
    pub(crate) requests: &'a mut [rdma::ibv_send_wr],
    pub(crate) rows: &'a mut [Row],
    pub(crate) receive_requests: &'a mut [rdma::ibv_recv_wr],
    pub(crate) receive_elements: &'a mut [rdma::ibv_sge],
}

impl Batch {
    /// An empty one. With `fenced` nothing in it begins before all Reads before it are done.
    pub(crate) fn new(fenced: bool) -> Batch {
        Batch {
            owner: NOBODY,
            requests: Box::new([rdma::ibv_send_wr::default(); SENDS]),
            rows: Box::new([[rdma::ibv_sge::default(); MOST_ELEMENTS]; SENDS]),
            octets: Box::new([[0; MOST_INLINE]; SENDS]),
            sends: 0,
            behind_reads: if fenced { rdma::IBV_SEND_FENCE } else { 0 },
            receive_requests: Box::new([rdma::ibv_recv_wr::default(); RECEIVES]),
            receive_elements: Box::new([rdma::ibv_sge::default(); RECEIVES]),
            receives: 0,
        }
    }

    /// Whether another send request of this queue pair can be put in without posting first.
    #[inline]
    pub(crate) fn takes_send(&self, owner: u32) -> bool {
        self.owner == owner && self.sends < SENDS
    }

    /// The same for a receive.
    #[inline]
    pub(crate) fn takes_receive(&self, owner: u32) -> bool {
        self.owner == owner && self.receives < RECEIVES
    }

    /// Whose it is, when there is anything in it.
    #[inline]
    pub(crate) fn owner(&self) -> Option<u32> {
        (self.sends + self.receives > 0).then_some(self.owner)
    }

    /// Makes an empty one this queue pair's.
    #[inline]
    pub(crate) fn belong_to(&mut self, owner: u32) {
        debug_assert_eq!(self.sends + self.receives, 0, "posted or dropped before");
        self.owner = owner;
    }

    /// The place of the next send request, which is in the run only once it is finished.
    #[inline]
    pub(crate) fn slot(&mut self) -> Option<Slot<'_>> {
        Some(Slot {
            request: self.requests.get_mut(self.sends)?,
            row: self.rows.get_mut(self.sends)?,
            octets: self.octets.get_mut(self.sends)?,
            count: &mut self.sends,
            behind_reads: self.behind_reads,
            elements: 0,
        })
    }

    /// Puts in a receive.
    #[inline]
    pub(crate) fn receive(&mut self, ticket: Ticket, memory: rdma::ibv_sge) {
        let request = self.receive_requests.get_mut(self.receives);
        let element = self.receive_elements.get_mut(self.receives);
        if let (Some(request), Some(place)) = (request, element) {
            request.wr_id = ticket.0;
            request.num_sge = i32::from(memory.length > 0);
            *place = memory;
            self.receives += 1;
        }
    }

    /// Has the last request of the run make a completion, if it is a send. True when it does.
    #[inline]
    pub(crate) fn signal_last(&mut self) -> bool {
        let last = self.sends.checked_sub(1);
        match last.and_then(|last| self.requests.get_mut(last)) {
            Some(request) => {
                request.send_flags |= rdma::IBV_SEND_SIGNALED;
                true
            }
            None => false,
        }
    }

    /// All that is in it, to be posted now: it is empty afterwards.
    #[inline]
    pub(crate) fn take(&mut self) -> Ready<'_> {
        let (sends, receives) = (self.sends, self.receives);
        self.clear();
        Ready {
            requests: self.requests.get_mut(..sends).unwrap_or_default(),
            rows: self.rows.get_mut(..sends).unwrap_or_default(),
            receive_requests: self
                .receive_requests
                .get_mut(..receives)
                .unwrap_or_default(),
            receive_elements: self
                .receive_elements
                .get_mut(..receives)
                .unwrap_or_default(),
        }
    }

    /// How many sends and receives are in it.
    pub(crate) fn len(&self) -> (usize, usize) {
        (self.sends, self.receives)
    }

    /// Drops all that is in it.
    #[inline]
    pub(crate) fn clear(&mut self) {
        (self.sends, self.receives) = (0, 0);
    }
}

impl Slot<'_> {
    /// Adds an element, unless it is empty: of length zero means the most to some devices. False
    /// when there is no room for one more.
    #[inline]
    pub(crate) fn element(&mut self, element: rdma::ibv_sge) -> bool {
        if element.length == 0 {
            return true;
        }
        let Some(place) = self.row.get_mut(self.elements) else {
            return false;
        };
        *place = element;
        self.elements += 1;
        true
    }

    /// Puts the request into the run.
    #[inline]
    fn finish(self, ticket: Ticket, opcode: rdma::ibv_wr_opcode, flags: u32) {
        let request = self.request;
        request.wr_id = ticket.0;
        request.opcode = opcode;
        request.send_flags = flags;
        // At most 16.
        request.num_sge = i32::try_from(self.elements).unwrap_or_default();
        *self.count += 1;
    }

    /// A Send, or Send With Invalidate, of the elements so far; or of the first `inline` of its
    /// octets.
    #[inline]
    pub(crate) fn send(
        mut self,
        ticket: Ticket,
        invalidate: Option<Handle>,
        inline: Option<u32>,
        signalled: bool,
    ) {
        let mut flags = signal(signalled) | self.behind_reads;
        if let Some(length) = inline {
            flags |= rdma::IBV_SEND_INLINE;
            let addr = self.octets.as_ptr().expose_provenance() as u64;
            self.elements = 0;
            self.element(rdma::ibv_sge {
                addr,
                length,
                lkey: 0,
            });
        }
        let opcode = match invalidate {
            None => rdma::IBV_WR_SEND,
            Some(handle) => {
                self.request.__bindgen_anon_1.invalidate_rkey = handle.0;
                // Devices disagree about where they look for it.
                self.request.wr.rdma = target(handle, 0);
                rdma::IBV_WR_SEND_WITH_INV
            }
        };
        self.finish(ticket, opcode, flags);
    }

    /// An RDMA Read of `from` into the elements so far.
    #[inline]
    pub(crate) fn read(self, ticket: Ticket, from: Segment) {
        self.request.wr.rdma = target(from.handle, from.offset);
        self.finish(ticket, rdma::IBV_WR_RDMA_READ, signal(true));
    }

    /// An RDMA Write of the elements so far to `to`.
    #[inline]
    pub(crate) fn write(self, ticket: Ticket, to: Segment, signalled: bool) {
        self.request.wr.rdma = target(to.handle, to.offset);
        let flags = signal(signalled) | self.behind_reads;
        self.finish(ticket, rdma::IBV_WR_RDMA_WRITE, flags);
    }

    /// The end of a window or region of ours.
    #[inline]
    pub(crate) fn invalidate(self, ticket: Ticket, handle: Handle) {
        self.request.__bindgen_anon_1.invalidate_rkey = handle.0;
        self.finish(ticket, rdma::IBV_WR_LOCAL_INV, signal(true));
    }

    /// The binding of a window.
    #[inline]
    pub(crate) fn bind(
        self,
        ticket: Ticket,
        binding: rdma::ibv_send_wr__bindgen_ty_4__bindgen_ty_1,
        signalled: bool,
    ) {
        // The place was another request's before: rxe refuses a binding with anything in here.
        self.request.__bindgen_anon_1.imm_data = 0;
        self.request.__bindgen_anon_2.bind_mw = binding;
        self.finish(ticket, rdma::IBV_WR_BIND_MW, signal(signalled));
    }
}

#[inline]
fn signal(signalled: bool) -> u32 {
    if signalled {
        rdma::IBV_SEND_SIGNALED
    } else {
        0
    }
}

#[inline]
fn target(handle: Handle, offset: u64) -> rdma::ibv_send_wr__bindgen_ty_2__bindgen_ty_1 {
    rdma::ibv_send_wr__bindgen_ty_2__bindgen_ty_1 {
        remote_addr: offset,
        rkey: handle.0,
    }
}

impl Registered {
    /// A span as an element.
    #[inline]
    pub(crate) fn element(&self, span: Span) -> rdma::ibv_sge {
        rdma::ibv_sge {
            addr: self.address.wrapping_add(span.offset),
            length: span.len,
            lkey: self.lkey,
        }
    }
}
