//! The channel that the connection manager's events come by.
//!
//! An event is copied and acknowledged at once, in one place: an id cannot be destroyed while
//! one of its events is not.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use super::{GroupNews, Happening, Identifier, Offer, What};
use crate::error::{Error, Fault};
use crate::object::do_not_wait_borrowed;
use crate::port::Raw;
use rdma_core_sys as rdma;
use rdma_core_sys::{Absent, Library};
use rpcrdma_fabric::datagram::AddressVector;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr;
use std::sync::Arc;

/// A channel. Read by one thread.
#[derive(Debug)]
pub(crate) struct Channel {
    raw: Raw<rdma::rdma_event_channel>,
    library: &'static Library,
}

// SAFETY: the channel may be used from any thread; ids elsewhere only keep it.
unsafe impl Sync for Channel {}

impl Channel {
    pub(crate) fn open(library: &'static Library) -> Result<Arc<Channel>, Error> {
        // SAFETY: takes nothing.
        let raw = unsafe { library.manager.rdma_create_event_channel() };
        if raw.is_null() {
            let Fault { call, errno } = Fault::last("rdma_create_event_channel");
            return Err(Error::Absent(Absent::by_errno(call, errno)));
        }
        let channel = Channel {
            raw: Raw(raw),
            library,
        };
        do_not_wait_borrowed(channel.as_fd())?;
        Ok(Arc::new(channel))
    }

    pub(crate) fn library(&self) -> &'static Library {
        self.library
    }

    pub(super) fn raw(&self) -> *mut rdma::rdma_event_channel {
        self.raw.0
    }

    /// The next event, if there is one.
    pub(crate) fn next(self: &Arc<Channel>) -> Option<Happening> {
        let manager = &self.library.manager;
        let mut event = ptr::null_mut();
        // SAFETY: the channel lives, and the place through the call.
        if unsafe { manager.rdma_get_cm_event(self.raw(), &raw mut event) } != 0 {
            return None;
        }
        // SAFETY: just taken, and there until it is acknowledged.
        let happening = self.copy(unsafe { &*event });
        // SAFETY: taken above, acknowledged once.
        unsafe { manager.rdma_ack_cm_event(event) };
        Some(happening)
    }

    fn copy(self: &Arc<Channel>, event: &rdma::rdma_cm_event) -> Happening {
        let what = What::from(event.event);
        // A request's own id is new, and has nothing of ours in it yet: the listener's has.
        let known = if what == What::Request {
            event.listen_id
        } else {
            event.id
        };
        // SAFETY: ids of events live until they are destroyed, by this thread.
        let number = unsafe { (*known).context }.addr();
        let of_group = matches!(what, What::GroupJoined | What::GroupFailed);
        // SAFETY: both forms are numbers, and an address that is followed in this one alone.
        let with = unsafe { &event.param.conn };
        Happening {
            number: number as u64,
            what,
            status: event.status,
            private_data: if of_group {
                Vec::new()
            } else {
                private_data(with)
            },
            // SAFETY: an event of this kind has this form.
            group: of_group.then(|| group(unsafe { &event.param.ud })),
            offer: Offer {
                responder_resources: with.responder_resources,
                initiator_depth: with.initiator_depth,
            },
            // SAFETY: a new id of this channel, which the receiver of the event destroys.
            id: (what == What::Request).then(|| unsafe { Identifier::own(event.id, self) }),
        }
    }
}

/// What was given when the group was joined stands in the place of private data.
fn group(with: &rdma::rdma_ud_param) -> GroupNews {
    let way = &with.ah_attr;
    // SAFETY: every form of this union may be read as octets.
    let gid = unsafe { way.grh.dgid.raw };
    GroupNews {
        number: with.private_data.addr(),
        to: AddressVector {
            lid: way.dlid,
            gid: Some(gid),
            queue_pair: with.qp_num,
            q_key: with.qkey,
            service_level: way.sl,
            traffic_class: way.grh.traffic_class,
            flow_label: way.grh.flow_label,
            hop_limit: way.grh.hop_limit,
            rate: way.static_rate,
        },
    }
}

/// At most 255 octets. Padded by some transports: RFC 8797 section 5.2 says what to do with it.
fn private_data(with: &rdma::rdma_conn_param) -> Vec<u8> {
    if with.private_data.is_null() {
        return Vec::new();
    }
    let len = usize::from(with.private_data_len);
    // SAFETY: the event has as many octets there until it is acknowledged.
    unsafe { std::slice::from_raw_parts(with.private_data.cast::<u8>(), len) }.to_vec()
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel lives.
        let descriptor = unsafe { (*self.raw()).fd };
        // SAFETY: open as long as the channel.
        unsafe { BorrowedFd::borrow_raw(descriptor) }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: made here, destroyed once, and after its ids, which keep it.
        unsafe { self.library.manager.rdma_destroy_event_channel(self.raw()) };
    }
}
