//! What a device says of itself: its asynchronous events.
//!
//! Each is acknowledged at once: what it is about cannot be destroyed before.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use crate::error::Fault;
use crate::object::Device;
use rdma_core_sys as rdma;
use rpcrdma_fabric::datagram::LinkChange;

/// A queue pair, as events have it: its address, and its number. What one fabric reads another may
/// hear later, when the address is another queue pair's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairName {
    pub(crate) address: usize,
    pub(crate) number: u32,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A link, from 1, is down.
    LinkDown(u32),
    /// A link is up.
    LinkUp(u32),
    /// The device has failed or was taken away.
    Gone,
    /// A completion queue, by address, is broken: its port is lost.
    QueueBroken(usize),
    /// A queue pair has failed.
    PairBroken(PairName),
    /// A message came to a queue pair before the last word of its handshake.
    PairReached(PairName),
    /// Something of a link is another one.
    Changed(u32, LinkChange),
    /// Nothing that is heeded here.
    Other,
}

/// The next event of a device, if there is one.
pub(crate) fn next(device: &Device) -> Option<News> {
    let verbs = &device.library().verbs;
    let mut event = rdma::ibv_async_event::default();
    let context = device.context().raw();
    // SAFETY: the context lives, and the place through the call.
    if unsafe { verbs.ibv_get_async_event(context, &raw mut event) } != 0 {
        let fault = Fault::last("ibv_get_async_event");
        // The kernel has taken the device from us.
        return [libc::EIO, libc::ENODEV]
            .contains(&fault.errno)
            .then_some(News::Gone);
    }
    let news = read(&event);
    // SAFETY: taken above, acknowledged once.
    unsafe { verbs.ibv_ack_async_event(&raw mut event) };
    Some(news)
}

fn read(event: &rdma::ibv_async_event) -> News {
    match event.event_type {
        rdma::IBV_EVENT_PORT_ERR => News::LinkDown(link(event)),
        rdma::IBV_EVENT_PORT_ACTIVE => News::LinkUp(link(event)),
        rdma::IBV_EVENT_LID_CHANGE => News::Changed(link(event), LinkChange::Lid),
        rdma::IBV_EVENT_SM_CHANGE => News::Changed(link(event), LinkChange::SubnetManager),
        rdma::IBV_EVENT_CLIENT_REREGISTER => News::Changed(link(event), LinkChange::Reregister),
        rdma::IBV_EVENT_PKEY_CHANGE => News::Changed(link(event), LinkChange::PKeys),
        rdma::IBV_EVENT_GID_CHANGE => News::Changed(link(event), LinkChange::Gids),
        rdma::IBV_EVENT_DEVICE_FATAL => News::Gone,
        rdma::IBV_EVENT_CQ_ERR => {
            // SAFETY: an event of this kind has a completion queue.
            News::QueueBroken(unsafe { event.element.cq }.addr())
        }
        rdma::IBV_EVENT_QP_FATAL | rdma::IBV_EVENT_QP_REQ_ERR | rdma::IBV_EVENT_QP_ACCESS_ERR => {
            News::PairBroken(pair(event))
        }
        rdma::IBV_EVENT_COMM_EST => News::PairReached(pair(event)),
        _ => News::Other,
    }
}

fn link(event: &rdma::ibv_async_event) -> u32 {
    // SAFETY: an event of a port has its number.
    u32::try_from(unsafe { event.element.port_num }).unwrap_or(0)
}

fn pair(event: &rdma::ibv_async_event) -> PairName {
    // SAFETY: an event of a queue pair has it.
    let pair = unsafe { event.element.qp };
    PairName {
        address: pair.addr(),
        // SAFETY: it is not destroyed before the event is acknowledged.
        number: unsafe { (*pair).qp_num },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_by_their_kind() {
        let mut event = rdma::ibv_async_event {
            event_type: rdma::IBV_EVENT_PORT_ERR,
            ..rdma::ibv_async_event::default()
        };
        event.element.port_num = 2;
        assert_eq!(read(&event), News::LinkDown(2));
        event.event_type = rdma::IBV_EVENT_PORT_ACTIVE;
        assert_eq!(read(&event), News::LinkUp(2));
        let mut pair = rdma::ibv_qp {
            qp_num: 18,
            ..rdma::ibv_qp::default()
        };
        event.element.qp = &raw mut pair;
        let name = PairName {
            address: (&raw const pair).addr(),
            number: 18,
        };
        event.event_type = rdma::IBV_EVENT_QP_ACCESS_ERR;
        assert_eq!(read(&event), News::PairBroken(name));
        event.event_type = rdma::IBV_EVENT_COMM_EST;
        assert_eq!(read(&event), News::PairReached(name));
        event.event_type = rdma::IBV_EVENT_DEVICE_FATAL;
        assert_eq!(read(&event), News::Gone);
        event.event_type = rdma::IBV_EVENT_SQ_DRAINED;
        assert_eq!(read(&event), News::Other);
    }

    #[test]
    fn what_changes_of_a_link_is_told_with_its_number() {
        let mut event = rdma::ibv_async_event::default();
        event.element.port_num = 2;
        for (kind, change) in [
            (rdma::IBV_EVENT_LID_CHANGE, LinkChange::Lid),
            (rdma::IBV_EVENT_SM_CHANGE, LinkChange::SubnetManager),
            (rdma::IBV_EVENT_CLIENT_REREGISTER, LinkChange::Reregister),
            (rdma::IBV_EVENT_PKEY_CHANGE, LinkChange::PKeys),
            (rdma::IBV_EVENT_GID_CHANGE, LinkChange::Gids),
        ] {
            event.event_type = kind;
            assert_eq!(read(&event), News::Changed(2, change));
        }
    }
}
