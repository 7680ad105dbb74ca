//! Ids of the connection manager: one of each listener and each connection.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use super::{Address, Channel, Parameters};
use crate::error::Fault;
use crate::object::Context;
use crate::port::Raw;
use rdma_core_sys as rdma;
use std::net::SocketAddr;
use std::ptr;
use std::sync::Arc;

/// Requests that wait in the kernel for one listener.
const BACKLOG: libc::c_int = 128;

/// An id. Its number comes with each of its events.
#[derive(Debug)]
pub(crate) struct Identifier {
    raw: Raw<rdma::rdma_cm_id>,
    channel: Arc<Channel>,
}

impl Identifier {
    /// A new id for connections as of TCP.
    pub(crate) fn new(channel: &Arc<Channel>, number: u64) -> Result<Identifier, Fault> {
        let id = Identifier::of_space(channel, rdma::RDMA_PS_TCP)?;
        id.set_number(number);
        Ok(id)
    }

    /// A new id for datagrams, without a number.
    pub(crate) fn for_datagrams(
        channel: &Arc<Channel>,
        space: rdma::rdma_port_space,
    ) -> Result<Identifier, Fault> {
        Identifier::of_space(channel, space)
    }

    fn of_space(channel: &Arc<Channel>, space: rdma::rdma_port_space) -> Result<Identifier, Fault> {
        let mut raw = ptr::null_mut();
        let manager = &channel.library().manager;
        // SAFETY: the channel lives as long as the id, and the place through the call.
        let returned =
            unsafe { manager.rdma_create_id(channel.raw(), &raw mut raw, ptr::null_mut(), space) };
        Fault::check("rdma_create_id", returned)?;
        // SAFETY: just made, and nobody else's.
        Ok(unsafe { Identifier::own(raw, channel) })
    }

    /// # Safety
    ///
    /// The id is of this channel, and nobody else destroys it.
    pub(super) unsafe fn own(raw: *mut rdma::rdma_cm_id, channel: &Arc<Channel>) -> Identifier {
        Identifier {
            raw: Raw(raw),
            channel: Arc::clone(channel),
        }
    }

    pub(crate) fn raw(&self) -> *mut rdma::rdma_cm_id {
        self.raw.0
    }

    fn manager(&self) -> &'static rdma::ConnectionManager {
        &self.channel.library().manager
    }

    /// What its events call it from now on.
    pub(crate) fn set_number(&self, number: u64) {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        // SAFETY: the id lives; this field is for its owner, and is never followed.
        unsafe { (*self.raw()).context = ptr::without_provenance_mut(number) };
    }

    /// The device it is bound to: known once resolved, or with a request.
    pub(crate) fn context(&self) -> Option<Context> {
        // SAFETY: the id lives.
        let context = unsafe { (*self.raw()).verbs };
        // SAFETY: the manager's own, which an id keeps from being given back.
        (!context.is_null()).then(|| unsafe { Context::new(context) })
    }

    /// The device's port it is bound to, from 1; 0 for none.
    pub(crate) fn link(&self) -> u8 {
        // SAFETY: the id lives.
        unsafe { (*self.raw()).port_num }
    }

    /// The queue pair that was made on it; null for none.
    pub(crate) fn queue_pair(&self) -> *mut rdma::ibv_qp {
        // SAFETY: the id lives.
        unsafe { (*self.raw()).qp }
    }

    /// The other side's address.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        // SAFETY: the id lives.
        let addresses = unsafe { &(*self.raw()).route.addr };
        // SAFETY: every form of this union may be read as octets.
        Address::read(unsafe { &addresses.__bindgen_anon_2.dst_storage })
    }

    /// This side's address.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        // SAFETY: the id lives.
        let addresses = unsafe { &(*self.raw()).route.addr };
        // SAFETY: every form of this union may be read as octets.
        Address::read(unsafe { &addresses.__bindgen_anon_1.src_storage })
    }

    fn set_option<T>(&self, option: u32, mut value: T) -> Result<(), Fault> {
        let level = libc::c_int::try_from(rdma::RDMA_OPTION_ID).unwrap_or_default();
        let option = libc::c_int::try_from(option).unwrap_or_default();
        let (place, size) = ((&raw mut value).cast(), size_of::<T>());
        // SAFETY: the id lives, and the value through the call.
        let returned = unsafe {
            self.manager()
                .rdma_set_option(self.raw(), level, option, place, size)
        };
        Fault::check("rdma_set_option", returned)
    }

    /// Lets others have had this address a moment ago.
    pub(crate) fn reuse_address(&self) -> Result<(), Fault> {
        self.set_option(rdma::RDMA_OPTION_ID_REUSEADDR, libc::c_int::from(true))
    }

    /// How long a sender waits for an acknowledgement: 4.096 us times two to this power. Kernels
    /// before 5.1 choose it themselves, and so does iWARP.
    pub(crate) fn set_acknowledge_timeout(&self, exponent: u8) -> Result<(), Fault> {
        self.set_option(rdma::RDMA_OPTION_ID_ACK_TIMEOUT, exponent)
    }

    pub(crate) fn bind(&self, address: SocketAddr) -> Result<(), Fault> {
        let mut address = Address::from(address);
        // SAFETY: the id lives, and the address through the call.
        let returned = unsafe {
            self.manager()
                .rdma_bind_addr(self.raw(), address.as_mut_ptr())
        };
        Fault::check("rdma_bind_addr", returned)
    }

    pub(crate) fn listen(&self) -> Result<(), Fault> {
        // SAFETY: the id lives.
        let returned = unsafe { self.manager().rdma_listen(self.raw(), BACKLOG) };
        Fault::check("rdma_listen", returned)
    }

    /// Looks for the device that leads to an address, from `source` where one is given.
    pub(crate) fn resolve_address(
        &self,
        source: Option<SocketAddr>,
        address: SocketAddr,
        timeout_ms: i32,
    ) -> Result<(), Fault> {
        let mut address = Address::from(address);
        let mut source = source.map(Address::from);
        let from = source.as_mut().map_or(ptr::null_mut(), Address::as_mut_ptr);
        let to = address.as_mut_ptr();
        // SAFETY: the id lives, and the addresses through the call.
        let returned = unsafe {
            self.manager()
                .rdma_resolve_addr(self.raw(), from, to, timeout_ms)
        };
        Fault::check("rdma_resolve_addr", returned)
    }

    /// Looks for the path on that device.
    pub(crate) fn resolve_route(&self, timeout_ms: i32) -> Result<(), Fault> {
        // SAFETY: the id lives.
        let returned = unsafe { self.manager().rdma_resolve_route(self.raw(), timeout_ms) };
        Fault::check("rdma_resolve_route", returned)
    }

    pub(crate) fn connect(&self, with: &Parameters, private_data: &[u8]) -> Result<(), Fault> {
        let mut with = parameters(with, private_data);
        // SAFETY: the id lives, and parameters and private data through the call.
        let returned = unsafe { self.manager().rdma_connect(self.raw(), &raw mut with) };
        Fault::check("rdma_connect", returned)
    }

    pub(crate) fn accept(&self, with: &Parameters, private_data: &[u8]) -> Result<(), Fault> {
        let mut with = parameters(with, private_data);
        // SAFETY: the id lives, and parameters and private data through the call.
        let returned = unsafe { self.manager().rdma_accept(self.raw(), &raw mut with) };
        Fault::check("rdma_accept", returned)
    }

    pub(crate) fn reject(&self, private_data: &[u8]) -> Result<(), Fault> {
        let len = u8::try_from(private_data.len()).unwrap_or(u8::MAX);
        let start = private_data.as_ptr().cast();
        // SAFETY: the id lives, and the private data through the call.
        let returned = unsafe { self.manager().rdma_reject(self.raw(), start, len) };
        Fault::check("rdma_reject", returned)
    }

    /// Moves the queue pair to error and says goodbye to the peer.
    pub(crate) fn disconnect(&self) -> Result<(), Fault> {
        // SAFETY: the id lives.
        let returned = unsafe { self.manager().rdma_disconnect(self.raw()) };
        Fault::check("rdma_disconnect", returned)
    }

    /// Begins to join a multicast group, which events call `number`. Whoever is only to send to it
    /// is not attached.
    pub(crate) fn join(
        &self,
        group: SocketAddr,
        send_only: bool,
        number: usize,
    ) -> Result<(), Fault> {
        let mut group = Address::from(group);
        let flags = if send_only {
            rdma::RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
        } else {
            rdma::RDMA_MC_JOIN_FLAG_FULLMEMBER
        };
        let mut with = rdma::rdma_cm_join_mc_attr_ex {
            comp_mask: rdma::RDMA_CM_JOIN_MC_ATTR_ADDRESS | rdma::RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
            join_flags: flags,
            addr: group.as_mut_ptr(),
        };
        let number = ptr::without_provenance_mut(number);
        let manager = self.manager();
        // SAFETY: the id lives, address and attributes through the call; the number is given back
        // with events, and never followed.
        let returned = unsafe { manager.rdma_join_multicast_ex(self.raw(), &raw mut with, number) };
        Fault::check("rdma_join_multicast_ex", returned)
    }

    /// Leaves it, or ceases to join it: there will be no event of it.
    pub(crate) fn leave(&self, group: SocketAddr) -> Result<(), Fault> {
        let mut group = Address::from(group);
        let manager = self.manager();
        // SAFETY: the id lives, and the address through the call. Its events were acknowledged when
        // they were read, so that this does not wait.
        let returned = unsafe { manager.rdma_leave_multicast(self.raw(), group.as_mut_ptr()) };
        Fault::check("rdma_leave_multicast", returned)
    }

    /// Tells the manager what it cannot see for itself: that the peer has sent already, though
    /// its last word of the handshake was lost.
    pub(crate) fn note_established(&self) -> Result<(), Fault> {
        let event = rdma::IBV_EVENT_COMM_EST;
        // SAFETY: the id lives.
        let returned = unsafe { self.manager().rdma_notify(self.raw(), event) };
        Fault::check("rdma_notify", returned)
    }
}

fn parameters(from: &Parameters, private_data: &[u8]) -> rdma::rdma_conn_param {
    rdma::rdma_conn_param {
        private_data: private_data.as_ptr().cast(),
        private_data_len: u8::try_from(private_data.len()).unwrap_or(u8::MAX),
        responder_resources: from.responder_resources,
        initiator_depth: from.initiator_depth,
        retry_count: from.retry_count,
        rnr_retry_count: from.rnr_retry_count,
        ..rdma::rdma_conn_param::default()
    }
}

impl Drop for Identifier {
    fn drop(&mut self) {
        // SAFETY: nobody else's, and destroyed once, after its queue pair. Its events were
        // acknowledged when they were read, so that this does not wait.
        let returned = unsafe { self.manager().rdma_destroy_id(self.raw()) };
        crate::object::note_destroyed("rdma_destroy_id", returned);
    }
}
