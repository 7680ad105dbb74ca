// Made by generate.sh from the headers of rdma-core (Linux-OpenIB licence: see LICENSE-rdma-core). Not edited by hand.
use super::types::*;

pub struct Verbs {
    __library: ::libloading::Library,
    pub ibv_wc_status_str: unsafe extern "C" fn(status: ibv_wc_status) -> *const libc::c_char,
    pub ibv_qp_to_qp_ex: unsafe extern "C" fn(qp: *mut ibv_qp) -> *mut ibv_qp_ex,
    pub ibv_get_device_list:
        unsafe extern "C" fn(num_devices: *mut libc::c_int) -> *mut *mut ibv_device,
    pub ibv_free_device_list: unsafe extern "C" fn(list: *mut *mut ibv_device),
    pub ibv_get_device_name: unsafe extern "C" fn(device: *mut ibv_device) -> *const libc::c_char,
    pub ibv_get_device_guid: unsafe extern "C" fn(device: *mut ibv_device) -> __be64,
    pub ibv_open_device: unsafe extern "C" fn(device: *mut ibv_device) -> *mut ibv_context,
    pub ibv_close_device: unsafe extern "C" fn(context: *mut ibv_context) -> libc::c_int,
    pub ibv_get_async_event:
        unsafe extern "C" fn(context: *mut ibv_context, event: *mut ibv_async_event) -> libc::c_int,
    pub ibv_ack_async_event: unsafe extern "C" fn(event: *mut ibv_async_event),
    pub ibv_query_device: unsafe extern "C" fn(
        context: *mut ibv_context,
        device_attr: *mut ibv_device_attr,
    ) -> libc::c_int,
    pub _ibv_query_gid_table: unsafe extern "C" fn(
        context: *mut ibv_context,
        entries: *mut ibv_gid_entry,
        max_entries: usize,
        flags: u32,
        entry_size: usize,
    ) -> isize,
    pub ibv_query_pkey: unsafe extern "C" fn(
        context: *mut ibv_context,
        port_num: u8,
        index: libc::c_int,
        pkey: *mut __be16,
    ) -> libc::c_int,
    pub ibv_alloc_pd: unsafe extern "C" fn(context: *mut ibv_context) -> *mut ibv_pd,
    pub ibv_dealloc_pd: unsafe extern "C" fn(pd: *mut ibv_pd) -> libc::c_int,
    pub ibv_reg_mr: unsafe extern "C" fn(
        pd: *mut ibv_pd,
        addr: *mut libc::c_void,
        length: usize,
        access: libc::c_int,
    ) -> *mut ibv_mr,
    pub ibv_dereg_mr: unsafe extern "C" fn(mr: *mut ibv_mr) -> libc::c_int,
    pub ibv_create_comp_channel:
        unsafe extern "C" fn(context: *mut ibv_context) -> *mut ibv_comp_channel,
    pub ibv_destroy_comp_channel:
        unsafe extern "C" fn(channel: *mut ibv_comp_channel) -> libc::c_int,
    pub ibv_create_cq: unsafe extern "C" fn(
        context: *mut ibv_context,
        cqe: libc::c_int,
        cq_context: *mut libc::c_void,
        channel: *mut ibv_comp_channel,
        comp_vector: libc::c_int,
    ) -> *mut ibv_cq,
    pub ibv_destroy_cq: unsafe extern "C" fn(cq: *mut ibv_cq) -> libc::c_int,
    pub ibv_get_cq_event: unsafe extern "C" fn(
        channel: *mut ibv_comp_channel,
        cq: *mut *mut ibv_cq,
        cq_context: *mut *mut libc::c_void,
    ) -> libc::c_int,
    pub ibv_ack_cq_events: unsafe extern "C" fn(cq: *mut ibv_cq, nevents: libc::c_uint),
    pub ibv_create_qp:
        unsafe extern "C" fn(pd: *mut ibv_pd, qp_init_attr: *mut ibv_qp_init_attr) -> *mut ibv_qp,
    pub ibv_modify_qp: unsafe extern "C" fn(
        qp: *mut ibv_qp,
        attr: *mut ibv_qp_attr,
        attr_mask: libc::c_int,
    ) -> libc::c_int,
    pub ibv_query_qp: unsafe extern "C" fn(
        qp: *mut ibv_qp,
        attr: *mut ibv_qp_attr,
        attr_mask: libc::c_int,
        init_attr: *mut ibv_qp_init_attr,
    ) -> libc::c_int,
    pub ibv_destroy_qp: unsafe extern "C" fn(qp: *mut ibv_qp) -> libc::c_int,
    pub ibv_create_ah: unsafe extern "C" fn(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah,
    pub ibv_create_ah_from_wc: unsafe extern "C" fn(
        pd: *mut ibv_pd,
        wc: *mut ibv_wc,
        grh: *mut ibv_grh,
        port_num: u8,
    ) -> *mut ibv_ah,
    pub ibv_destroy_ah: unsafe extern "C" fn(ah: *mut ibv_ah) -> libc::c_int,
    pub ibv_attach_mcast:
        unsafe extern "C" fn(qp: *mut ibv_qp, gid: *const ibv_gid, lid: u16) -> libc::c_int,
    pub ibv_detach_mcast:
        unsafe extern "C" fn(qp: *mut ibv_qp, gid: *const ibv_gid, lid: u16) -> libc::c_int,
    pub ibv_node_type_str: unsafe extern "C" fn(node_type: ibv_node_type) -> *const libc::c_char,
    pub ibv_port_state_str: unsafe extern "C" fn(port_state: ibv_port_state) -> *const libc::c_char,
    pub ibv_event_type_str: unsafe extern "C" fn(event: ibv_event_type) -> *const libc::c_char,
}
impl Verbs {
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
        let ibv_wc_status_str = __library.get(b"ibv_wc_status_str\0").map(|sym| *sym)?;
        let ibv_qp_to_qp_ex = __library.get(b"ibv_qp_to_qp_ex\0").map(|sym| *sym)?;
        let ibv_get_device_list = __library.get(b"ibv_get_device_list\0").map(|sym| *sym)?;
        let ibv_free_device_list = __library.get(b"ibv_free_device_list\0").map(|sym| *sym)?;
        let ibv_get_device_name = __library.get(b"ibv_get_device_name\0").map(|sym| *sym)?;
        let ibv_get_device_guid = __library.get(b"ibv_get_device_guid\0").map(|sym| *sym)?;
        let ibv_open_device = __library.get(b"ibv_open_device\0").map(|sym| *sym)?;
        let ibv_close_device = __library.get(b"ibv_close_device\0").map(|sym| *sym)?;
        let ibv_get_async_event = __library.get(b"ibv_get_async_event\0").map(|sym| *sym)?;
        let ibv_ack_async_event = __library.get(b"ibv_ack_async_event\0").map(|sym| *sym)?;
        let ibv_query_device = __library.get(b"ibv_query_device\0").map(|sym| *sym)?;
        let _ibv_query_gid_table = __library.get(b"_ibv_query_gid_table\0").map(|sym| *sym)?;
        let ibv_query_pkey = __library.get(b"ibv_query_pkey\0").map(|sym| *sym)?;
        let ibv_alloc_pd = __library.get(b"ibv_alloc_pd\0").map(|sym| *sym)?;
        let ibv_dealloc_pd = __library.get(b"ibv_dealloc_pd\0").map(|sym| *sym)?;
        let ibv_reg_mr = __library.get(b"ibv_reg_mr\0").map(|sym| *sym)?;
        let ibv_dereg_mr = __library.get(b"ibv_dereg_mr\0").map(|sym| *sym)?;
        let ibv_create_comp_channel = __library
            .get(b"ibv_create_comp_channel\0")
            .map(|sym| *sym)?;
        let ibv_destroy_comp_channel = __library
            .get(b"ibv_destroy_comp_channel\0")
            .map(|sym| *sym)?;
        let ibv_create_cq = __library.get(b"ibv_create_cq\0").map(|sym| *sym)?;
        let ibv_destroy_cq = __library.get(b"ibv_destroy_cq\0").map(|sym| *sym)?;
        let ibv_get_cq_event = __library.get(b"ibv_get_cq_event\0").map(|sym| *sym)?;
        let ibv_ack_cq_events = __library.get(b"ibv_ack_cq_events\0").map(|sym| *sym)?;
        let ibv_create_qp = __library.get(b"ibv_create_qp\0").map(|sym| *sym)?;
        let ibv_modify_qp = __library.get(b"ibv_modify_qp\0").map(|sym| *sym)?;
        let ibv_query_qp = __library.get(b"ibv_query_qp\0").map(|sym| *sym)?;
        let ibv_destroy_qp = __library.get(b"ibv_destroy_qp\0").map(|sym| *sym)?;
        let ibv_create_ah = __library.get(b"ibv_create_ah\0").map(|sym| *sym)?;
        let ibv_create_ah_from_wc = __library.get(b"ibv_create_ah_from_wc\0").map(|sym| *sym)?;
        let ibv_destroy_ah = __library.get(b"ibv_destroy_ah\0").map(|sym| *sym)?;
        let ibv_attach_mcast = __library.get(b"ibv_attach_mcast\0").map(|sym| *sym)?;
        let ibv_detach_mcast = __library.get(b"ibv_detach_mcast\0").map(|sym| *sym)?;
        let ibv_node_type_str = __library.get(b"ibv_node_type_str\0").map(|sym| *sym)?;
        let ibv_port_state_str = __library.get(b"ibv_port_state_str\0").map(|sym| *sym)?;
        let ibv_event_type_str = __library.get(b"ibv_event_type_str\0").map(|sym| *sym)?;
        Ok(Verbs {
            __library,
            ibv_wc_status_str,
            ibv_qp_to_qp_ex,
            ibv_get_device_list,
            ibv_free_device_list,
            ibv_get_device_name,
            ibv_get_device_guid,
            ibv_open_device,
            ibv_close_device,
            ibv_get_async_event,
            ibv_ack_async_event,
            ibv_query_device,
            _ibv_query_gid_table,
            ibv_query_pkey,
            ibv_alloc_pd,
            ibv_dealloc_pd,
            ibv_reg_mr,
            ibv_dereg_mr,
            ibv_create_comp_channel,
            ibv_destroy_comp_channel,
            ibv_create_cq,
            ibv_destroy_cq,
            ibv_get_cq_event,
            ibv_ack_cq_events,
            ibv_create_qp,
            ibv_modify_qp,
            ibv_query_qp,
            ibv_destroy_qp,
            ibv_create_ah,
            ibv_create_ah_from_wc,
            ibv_destroy_ah,
            ibv_attach_mcast,
            ibv_detach_mcast,
            ibv_node_type_str,
            ibv_port_state_str,
            ibv_event_type_str,
        })
    }
    pub unsafe fn ibv_wc_status_str(&self, status: ibv_wc_status) -> *const libc::c_char {
        (self.ibv_wc_status_str)(status)
    }
    pub unsafe fn ibv_qp_to_qp_ex(&self, qp: *mut ibv_qp) -> *mut ibv_qp_ex {
        (self.ibv_qp_to_qp_ex)(qp)
    }
    pub unsafe fn ibv_get_device_list(
        &self,
        num_devices: *mut libc::c_int,
    ) -> *mut *mut ibv_device {
        (self.ibv_get_device_list)(num_devices)
    }
    pub unsafe fn ibv_free_device_list(&self, list: *mut *mut ibv_device) {
        (self.ibv_free_device_list)(list)
    }
    pub unsafe fn ibv_get_device_name(&self, device: *mut ibv_device) -> *const libc::c_char {
        (self.ibv_get_device_name)(device)
    }
    pub unsafe fn ibv_get_device_guid(&self, device: *mut ibv_device) -> __be64 {
        (self.ibv_get_device_guid)(device)
    }
    pub unsafe fn ibv_open_device(&self, device: *mut ibv_device) -> *mut ibv_context {
        (self.ibv_open_device)(device)
    }
    pub unsafe fn ibv_close_device(&self, context: *mut ibv_context) -> libc::c_int {
        (self.ibv_close_device)(context)
    }
    pub unsafe fn ibv_get_async_event(
        &self,
        context: *mut ibv_context,
        event: *mut ibv_async_event,
    ) -> libc::c_int {
        (self.ibv_get_async_event)(context, event)
    }
    pub unsafe fn ibv_ack_async_event(&self, event: *mut ibv_async_event) {
        (self.ibv_ack_async_event)(event)
    }
    pub unsafe fn ibv_query_device(
        &self,
        context: *mut ibv_context,
        device_attr: *mut ibv_device_attr,
    ) -> libc::c_int {
        (self.ibv_query_device)(context, device_attr)
    }
    pub unsafe fn _ibv_query_gid_table(
        &self,
        context: *mut ibv_context,
        entries: *mut ibv_gid_entry,
        max_entries: usize,
        flags: u32,
        entry_size: usize,
    ) -> isize {
        (self._ibv_query_gid_table)(context, entries, max_entries, flags, entry_size)
    }
    pub unsafe fn ibv_query_pkey(
        &self,
        context: *mut ibv_context,
        port_num: u8,
        index: libc::c_int,
        pkey: *mut __be16,
    ) -> libc::c_int {
        (self.ibv_query_pkey)(context, port_num, index, pkey)
    }
    pub unsafe fn ibv_alloc_pd(&self, context: *mut ibv_context) -> *mut ibv_pd {
        (self.ibv_alloc_pd)(context)
    }
    pub unsafe fn ibv_dealloc_pd(&self, pd: *mut ibv_pd) -> libc::c_int {
        (self.ibv_dealloc_pd)(pd)
    }
    pub unsafe fn ibv_reg_mr(
        &self,
        pd: *mut ibv_pd,
        addr: *mut libc::c_void,
        length: usize,
        access: libc::c_int,
    ) -> *mut ibv_mr {
        (self.ibv_reg_mr)(pd, addr, length, access)
    }
    pub unsafe fn ibv_dereg_mr(&self, mr: *mut ibv_mr) -> libc::c_int {
        (self.ibv_dereg_mr)(mr)
    }
    pub unsafe fn ibv_create_comp_channel(
        &self,
        context: *mut ibv_context,
    ) -> *mut ibv_comp_channel {
        (self.ibv_create_comp_channel)(context)
    }
    pub unsafe fn ibv_destroy_comp_channel(&self, channel: *mut ibv_comp_channel) -> libc::c_int {
        (self.ibv_destroy_comp_channel)(channel)
    }
    pub unsafe fn ibv_create_cq(
        &self,
        context: *mut ibv_context,
        cqe: libc::c_int,
        cq_context: *mut libc::c_void,
        channel: *mut ibv_comp_channel,
        comp_vector: libc::c_int,
    ) -> *mut ibv_cq {
        (self.ibv_create_cq)(context, cqe, cq_context, channel, comp_vector)
    }
    pub unsafe fn ibv_destroy_cq(&self, cq: *mut ibv_cq) -> libc::c_int {
        (self.ibv_destroy_cq)(cq)
    }
    pub unsafe fn ibv_get_cq_event(
        &self,
        channel: *mut ibv_comp_channel,
        cq: *mut *mut ibv_cq,
        cq_context: *mut *mut libc::c_void,
    ) -> libc::c_int {
        (self.ibv_get_cq_event)(channel, cq, cq_context)
    }
    pub unsafe fn ibv_ack_cq_events(&self, cq: *mut ibv_cq, nevents: libc::c_uint) {
        (self.ibv_ack_cq_events)(cq, nevents)
    }
    pub unsafe fn ibv_create_qp(
        &self,
        pd: *mut ibv_pd,
        qp_init_attr: *mut ibv_qp_init_attr,
    ) -> *mut ibv_qp {
        (self.ibv_create_qp)(pd, qp_init_attr)
    }
    pub unsafe fn ibv_modify_qp(
        &self,
        qp: *mut ibv_qp,
        attr: *mut ibv_qp_attr,
        attr_mask: libc::c_int,
    ) -> libc::c_int {
        (self.ibv_modify_qp)(qp, attr, attr_mask)
    }
    pub unsafe fn ibv_query_qp(
        &self,
        qp: *mut ibv_qp,
        attr: *mut ibv_qp_attr,
        attr_mask: libc::c_int,
        init_attr: *mut ibv_qp_init_attr,
    ) -> libc::c_int {
        (self.ibv_query_qp)(qp, attr, attr_mask, init_attr)
    }
    pub unsafe fn ibv_destroy_qp(&self, qp: *mut ibv_qp) -> libc::c_int {
        (self.ibv_destroy_qp)(qp)
    }
    pub unsafe fn ibv_create_ah(&self, pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah {
        (self.ibv_create_ah)(pd, attr)
    }
    pub unsafe fn ibv_create_ah_from_wc(
        &self,
        pd: *mut ibv_pd,
        wc: *mut ibv_wc,
        grh: *mut ibv_grh,
        port_num: u8,
    ) -> *mut ibv_ah {
        (self.ibv_create_ah_from_wc)(pd, wc, grh, port_num)
    }
    pub unsafe fn ibv_destroy_ah(&self, ah: *mut ibv_ah) -> libc::c_int {
        (self.ibv_destroy_ah)(ah)
    }
    pub unsafe fn ibv_attach_mcast(
        &self,
        qp: *mut ibv_qp,
        gid: *const ibv_gid,
        lid: u16,
    ) -> libc::c_int {
        (self.ibv_attach_mcast)(qp, gid, lid)
    }
    pub unsafe fn ibv_detach_mcast(
        &self,
        qp: *mut ibv_qp,
        gid: *const ibv_gid,
        lid: u16,
    ) -> libc::c_int {
        (self.ibv_detach_mcast)(qp, gid, lid)
    }
    pub unsafe fn ibv_node_type_str(&self, node_type: ibv_node_type) -> *const libc::c_char {
        (self.ibv_node_type_str)(node_type)
    }
    pub unsafe fn ibv_port_state_str(&self, port_state: ibv_port_state) -> *const libc::c_char {
        (self.ibv_port_state_str)(port_state)
    }
    pub unsafe fn ibv_event_type_str(&self, event: ibv_event_type) -> *const libc::c_char {
        (self.ibv_event_type_str)(event)
    }
}
