// Made by generate.sh from the headers of rdma-core (Linux-OpenIB licence: see LICENSE-rdma-core). Not edited by hand.
use super::types::*;
use libc::sockaddr;

pub struct ConnectionManager {
    __library: ::libloading::Library,
    pub rdma_create_event_channel: unsafe extern "C" fn() -> *mut rdma_event_channel,
    pub rdma_destroy_event_channel: unsafe extern "C" fn(channel: *mut rdma_event_channel),
    pub rdma_create_id: unsafe extern "C" fn(
        channel: *mut rdma_event_channel,
        id: *mut *mut rdma_cm_id,
        context: *mut libc::c_void,
        ps: rdma_port_space,
    ) -> libc::c_int,
    pub rdma_destroy_id: unsafe extern "C" fn(id: *mut rdma_cm_id) -> libc::c_int,
    pub rdma_bind_addr:
        unsafe extern "C" fn(id: *mut rdma_cm_id, addr: *mut sockaddr) -> libc::c_int,
    pub rdma_resolve_addr: unsafe extern "C" fn(
        id: *mut rdma_cm_id,
        src_addr: *mut sockaddr,
        dst_addr: *mut sockaddr,
        timeout_ms: libc::c_int,
    ) -> libc::c_int,
    pub rdma_resolve_route:
        unsafe extern "C" fn(id: *mut rdma_cm_id, timeout_ms: libc::c_int) -> libc::c_int,
    pub rdma_create_qp: unsafe extern "C" fn(
        id: *mut rdma_cm_id,
        pd: *mut ibv_pd,
        qp_init_attr: *mut ibv_qp_init_attr,
    ) -> libc::c_int,
    pub rdma_create_qp_ex: unsafe extern "C" fn(
        id: *mut rdma_cm_id,
        qp_init_attr: *mut ibv_qp_init_attr_ex,
    ) -> libc::c_int,
    pub rdma_destroy_qp: unsafe extern "C" fn(id: *mut rdma_cm_id),
    pub rdma_connect:
        unsafe extern "C" fn(id: *mut rdma_cm_id, conn_param: *mut rdma_conn_param) -> libc::c_int,
    pub rdma_establish: unsafe extern "C" fn(id: *mut rdma_cm_id) -> libc::c_int,
    pub rdma_listen: unsafe extern "C" fn(id: *mut rdma_cm_id, backlog: libc::c_int) -> libc::c_int,
    pub rdma_accept:
        unsafe extern "C" fn(id: *mut rdma_cm_id, conn_param: *mut rdma_conn_param) -> libc::c_int,
    pub rdma_reject: unsafe extern "C" fn(
        id: *mut rdma_cm_id,
        private_data: *const libc::c_void,
        private_data_len: u8,
    ) -> libc::c_int,
    pub rdma_notify:
        unsafe extern "C" fn(id: *mut rdma_cm_id, event: ibv_event_type) -> libc::c_int,
    pub rdma_disconnect: unsafe extern "C" fn(id: *mut rdma_cm_id) -> libc::c_int,
    pub rdma_join_multicast: unsafe extern "C" fn(
        id: *mut rdma_cm_id,
        addr: *mut sockaddr,
        context: *mut libc::c_void,
    ) -> libc::c_int,
    pub rdma_leave_multicast:
        unsafe extern "C" fn(id: *mut rdma_cm_id, addr: *mut sockaddr) -> libc::c_int,
    pub rdma_join_multicast_ex: unsafe extern "C" fn(
        id: *mut rdma_cm_id,
        mc_join_attr: *mut rdma_cm_join_mc_attr_ex,
        context: *mut libc::c_void,
    ) -> libc::c_int,
    pub rdma_get_cm_event: unsafe extern "C" fn(
        channel: *mut rdma_event_channel,
        event: *mut *mut rdma_cm_event,
    ) -> libc::c_int,
    pub rdma_ack_cm_event: unsafe extern "C" fn(event: *mut rdma_cm_event) -> libc::c_int,
    pub rdma_get_src_port: unsafe extern "C" fn(id: *mut rdma_cm_id) -> __be16,
    pub rdma_get_dst_port: unsafe extern "C" fn(id: *mut rdma_cm_id) -> __be16,
    pub rdma_get_devices:
        unsafe extern "C" fn(num_devices: *mut libc::c_int) -> *mut *mut ibv_context,
    pub rdma_free_devices: unsafe extern "C" fn(list: *mut *mut ibv_context),
    pub rdma_event_str: unsafe extern "C" fn(event: rdma_cm_event_type) -> *const libc::c_char,
    pub rdma_set_option: unsafe extern "C" fn(
        id: *mut rdma_cm_id,
        level: libc::c_int,
        optname: libc::c_int,
        optval: *mut libc::c_void,
        optlen: usize,
    ) -> libc::c_int,
    pub rdma_init_qp_attr: unsafe extern "C" fn(
        id: *mut rdma_cm_id,
        qp_attr: *mut ibv_qp_attr,
        qp_attr_mask: *mut libc::c_int,
    ) -> libc::c_int,
}
impl ConnectionManager {
    pub unsafe fn new<P>(path: P) -> Result<Self, ::libloading::Error>
    where
        P: AsRef<::std::ffi::OsStr>,
    {
        let path = path.as_ref();
        let library = ::libloading::Library::new(path)?;
        Self::from_library(library)
    }
    pub unsafe fn from_library<L>(library: L) -> Result<Self, ::libloading::Error>
    where
        L: Into<::libloading::Library>,
    {
        let __library = library.into();
        let rdma_create_event_channel = __library
            .get(b"rdma_create_event_channel\0")
            .map(|sym| *sym)?;
        let rdma_destroy_event_channel = __library
            .get(b"rdma_destroy_event_channel\0")
            .map(|sym| *sym)?;
        let rdma_create_id = __library.get(b"rdma_create_id\0").map(|sym| *sym)?;
        let rdma_destroy_id = __library.get(b"rdma_destroy_id\0").map(|sym| *sym)?;
        let rdma_bind_addr = __library.get(b"rdma_bind_addr\0").map(|sym| *sym)?;
        let rdma_resolve_addr = __library.get(b"rdma_resolve_addr\0").map(|sym| *sym)?;
        let rdma_resolve_route = __library.get(b"rdma_resolve_route\0").map(|sym| *sym)?;
        let rdma_create_qp = __library.get(b"rdma_create_qp\0").map(|sym| *sym)?;
        let rdma_create_qp_ex = __library.get(b"rdma_create_qp_ex\0").map(|sym| *sym)?;
        let rdma_destroy_qp = __library.get(b"rdma_destroy_qp\0").map(|sym| *sym)?;
        let rdma_connect = __library.get(b"rdma_connect\0").map(|sym| *sym)?;
        let rdma_establish = __library.get(b"rdma_establish\0").map(|sym| *sym)?;
        let rdma_listen = __library.get(b"rdma_listen\0").map(|sym| *sym)?;
        let rdma_accept = __library.get(b"rdma_accept\0").map(|sym| *sym)?;
        let rdma_reject = __library.get(b"rdma_reject\0").map(|sym| *sym)?;
        let rdma_notify = __library.get(b"rdma_notify\0").map(|sym| *sym)?;
        let rdma_disconnect = __library.get(b"rdma_disconnect\0").map(|sym| *sym)?;
        let rdma_join_multicast = __library.get(b"rdma_join_multicast\0").map(|sym| *sym)?;
        let rdma_leave_multicast = __library.get(b"rdma_leave_multicast\0").map(|sym| *sym)?;
        let rdma_join_multicast_ex = __library.get(b"rdma_join_multicast_ex\0").map(|sym| *sym)?;
        let rdma_get_cm_event = __library.get(b"rdma_get_cm_event\0").map(|sym| *sym)?;
        let rdma_ack_cm_event = __library.get(b"rdma_ack_cm_event\0").map(|sym| *sym)?;
        let rdma_get_src_port = __library.get(b"rdma_get_src_port\0").map(|sym| *sym)?;
        let rdma_get_dst_port = __library.get(b"rdma_get_dst_port\0").map(|sym| *sym)?;
        let rdma_get_devices = __library.get(b"rdma_get_devices\0").map(|sym| *sym)?;
        let rdma_free_devices = __library.get(b"rdma_free_devices\0").map(|sym| *sym)?;
        let rdma_event_str = __library.get(b"rdma_event_str\0").map(|sym| *sym)?;
        let rdma_set_option = __library.get(b"rdma_set_option\0").map(|sym| *sym)?;
        let rdma_init_qp_attr = __library.get(b"rdma_init_qp_attr\0").map(|sym| *sym)?;
        Ok(ConnectionManager {
            __library,
            rdma_create_event_channel,
            rdma_destroy_event_channel,
            rdma_create_id,
            rdma_destroy_id,
            rdma_bind_addr,
            rdma_resolve_addr,
            rdma_resolve_route,
            rdma_create_qp,
            rdma_create_qp_ex,
            rdma_destroy_qp,
            rdma_connect,
            rdma_establish,
            rdma_listen,
            rdma_accept,
            rdma_reject,
            rdma_notify,
            rdma_disconnect,
            rdma_join_multicast,
            rdma_leave_multicast,
            rdma_join_multicast_ex,
            rdma_get_cm_event,
            rdma_ack_cm_event,
            rdma_get_src_port,
            rdma_get_dst_port,
            rdma_get_devices,
            rdma_free_devices,
            rdma_event_str,
            rdma_set_option,
            rdma_init_qp_attr,
        })
    }
    pub unsafe fn rdma_create_event_channel(&self) -> *mut rdma_event_channel {
        (self.rdma_create_event_channel)()
    }
    pub unsafe fn rdma_destroy_event_channel(&self, channel: *mut rdma_event_channel) {
        (self.rdma_destroy_event_channel)(channel)
    }
    pub unsafe fn rdma_create_id(
        &self,
        channel: *mut rdma_event_channel,
        id: *mut *mut rdma_cm_id,
        context: *mut libc::c_void,
        ps: rdma_port_space,
    ) -> libc::c_int {
        (self.rdma_create_id)(channel, id, context, ps)
    }
    pub unsafe fn rdma_destroy_id(&self, id: *mut rdma_cm_id) -> libc::c_int {
        (self.rdma_destroy_id)(id)
    }
    pub unsafe fn rdma_bind_addr(&self, id: *mut rdma_cm_id, addr: *mut sockaddr) -> libc::c_int {
        (self.rdma_bind_addr)(id, addr)
    }
    pub unsafe fn rdma_resolve_addr(
        &self,
        id: *mut rdma_cm_id,
        src_addr: *mut sockaddr,
        dst_addr: *mut sockaddr,
        timeout_ms: libc::c_int,
    ) -> libc::c_int {
        (self.rdma_resolve_addr)(id, src_addr, dst_addr, timeout_ms)
    }
    pub unsafe fn rdma_resolve_route(
        &self,
        id: *mut rdma_cm_id,
        timeout_ms: libc::c_int,
    ) -> libc::c_int {
        (self.rdma_resolve_route)(id, timeout_ms)
    }
    pub unsafe fn rdma_create_qp(
        &self,
        id: *mut rdma_cm_id,
        pd: *mut ibv_pd,
        qp_init_attr: *mut ibv_qp_init_attr,
    ) -> libc::c_int {
        (self.rdma_create_qp)(id, pd, qp_init_attr)
    }
    pub unsafe fn rdma_create_qp_ex(
        &self,
        id: *mut rdma_cm_id,
        qp_init_attr: *mut ibv_qp_init_attr_ex,
    ) -> libc::c_int {
        (self.rdma_create_qp_ex)(id, qp_init_attr)
    }
    pub unsafe fn rdma_destroy_qp(&self, id: *mut rdma_cm_id) {
        (self.rdma_destroy_qp)(id)
    }
    pub unsafe fn rdma_connect(
        &self,
        id: *mut rdma_cm_id,
        conn_param: *mut rdma_conn_param,
    ) -> libc::c_int {
        (self.rdma_connect)(id, conn_param)
    }
    pub unsafe fn rdma_establish(&self, id: *mut rdma_cm_id) -> libc::c_int {
        (self.rdma_establish)(id)
    }
    pub unsafe fn rdma_listen(&self, id: *mut rdma_cm_id, backlog: libc::c_int) -> libc::c_int {
        (self.rdma_listen)(id, backlog)
    }
    pub unsafe fn rdma_accept(
        &self,
        id: *mut rdma_cm_id,
        conn_param: *mut rdma_conn_param,
    ) -> libc::c_int {
        (self.rdma_accept)(id, conn_param)
    }
    pub unsafe fn rdma_reject(
        &self,
        id: *mut rdma_cm_id,
        private_data: *const libc::c_void,
        private_data_len: u8,
    ) -> libc::c_int {
        (self.rdma_reject)(id, private_data, private_data_len)
    }
    pub unsafe fn rdma_notify(&self, id: *mut rdma_cm_id, event: ibv_event_type) -> libc::c_int {
        (self.rdma_notify)(id, event)
    }
    pub unsafe fn rdma_disconnect(&self, id: *mut rdma_cm_id) -> libc::c_int {
        (self.rdma_disconnect)(id)
    }
    pub unsafe fn rdma_join_multicast(
        &self,
        id: *mut rdma_cm_id,
        addr: *mut sockaddr,
        context: *mut libc::c_void,
    ) -> libc::c_int {
        (self.rdma_join_multicast)(id, addr, context)
    }
    pub unsafe fn rdma_leave_multicast(
        &self,
        id: *mut rdma_cm_id,
        addr: *mut sockaddr,
    ) -> libc::c_int {
        (self.rdma_leave_multicast)(id, addr)
    }
    pub unsafe fn rdma_join_multicast_ex(
        &self,
        id: *mut rdma_cm_id,
        mc_join_attr: *mut rdma_cm_join_mc_attr_ex,
        context: *mut libc::c_void,
    ) -> libc::c_int {
        (self.rdma_join_multicast_ex)(id, mc_join_attr, context)
    }
    pub unsafe fn rdma_get_cm_event(
        &self,
        channel: *mut rdma_event_channel,
        event: *mut *mut rdma_cm_event,
    ) -> libc::c_int {
        (self.rdma_get_cm_event)(channel, event)
    }
    pub unsafe fn rdma_ack_cm_event(&self, event: *mut rdma_cm_event) -> libc::c_int {
        (self.rdma_ack_cm_event)(event)
    }
    pub unsafe fn rdma_get_src_port(&self, id: *mut rdma_cm_id) -> __be16 {
        (self.rdma_get_src_port)(id)
    }
    pub unsafe fn rdma_get_dst_port(&self, id: *mut rdma_cm_id) -> __be16 {
        (self.rdma_get_dst_port)(id)
    }
    pub unsafe fn rdma_get_devices(&self, num_devices: *mut libc::c_int) -> *mut *mut ibv_context {
        (self.rdma_get_devices)(num_devices)
    }
    pub unsafe fn rdma_free_devices(&self, list: *mut *mut ibv_context) {
        (self.rdma_free_devices)(list)
    }
    pub unsafe fn rdma_event_str(&self, event: rdma_cm_event_type) -> *const libc::c_char {
        (self.rdma_event_str)(event)
    }
    pub unsafe fn rdma_set_option(
        &self,
        id: *mut rdma_cm_id,
        level: libc::c_int,
        optname: libc::c_int,
        optval: *mut libc::c_void,
        optlen: usize,
    ) -> libc::c_int {
        (self.rdma_set_option)(id, level, optname, optval, optlen)
    }
    pub unsafe fn rdma_init_qp_attr(
        &self,
        id: *mut rdma_cm_id,
        qp_attr: *mut ibv_qp_attr,
        qp_attr_mask: *mut libc::c_int,
    ) -> libc::c_int {
        (self.rdma_init_qp_attr)(id, qp_attr, qp_attr_mask)
    }
}
