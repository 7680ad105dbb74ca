//! Asking a device.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use super::{Gid, GidKind, Limits};
use crate::error::Fault;
use crate::object::{CompletionQueue, Context, Depths, Device, try_inline};
use crate::port::{MOST_INLINE, invalidating_flags};
use rdma_core_sys as rdma;
use rdma_core_sys::Library;
use rdma_core_sys::inline as ibv;
use std::sync::Arc;

/// Most entries of GID tables that are read.
const GIDS_MOST: usize = 4096;

/// The attributes of a device.
pub(crate) fn attributes(
    library: &Library,
    context: Context,
) -> Result<rdma::ibv_device_attr, Fault> {
    let mut all = rdma::ibv_device_attr_ex::default();
    // SAFETY: the context lives.
    let returned = unsafe { ibv::ibv_query_device_ex(&library.verbs, context.raw(), &mut all) };
    Fault::check("ibv_query_device_ex", returned)?;
    Ok(all.orig_attr)
}

/// The attributes of a link, from 1.
pub(crate) fn link(context: Context, number: u8) -> Result<rdma::ibv_port_attr, Fault> {
    let mut all = rdma::ibv_port_attr::default();
    // SAFETY: the context lives.
    let returned = unsafe { ibv::ibv_query_port(context.raw(), number, &mut all) };
    Fault::check("ibv_query_port", returned)?;
    Ok(all)
}

/// What a device can do.
pub(crate) fn limits(device: &Arc<Device>) -> Result<Limits, Fault> {
    let context = device.context();
    let all = attributes(device.library(), context)?;
    let mut message_bytes = u32::MAX;
    for number in 1..=all.phys_port_cnt {
        message_bytes = message_bytes.min(link(context, number)?.max_msg_sz);
    }
    let positive = |n: libc::c_int| u32::try_from(n).unwrap_or(0);
    let flags = all.device_cap_flags;
    let type_2 = rdma::IBV_DEVICE_MEM_WINDOW_TYPE_2A | rdma::IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    Ok(Limits {
        queue_pairs: positive(all.max_qp),
        depth: positive(all.max_qp_wr),
        gather: positive(all.max_sge),
        gather_reads: positive(all.max_sge_rd),
        completions: positive(all.max_cqe),
        message_bytes,
        inline_bytes: inline_bytes(device),
        reads_served: positive(all.max_qp_rd_atom),
        reads_issued: positive(all.max_qp_init_rd_atom),
        regions: positive(all.max_mr),
        windows: if flags & type_2 == 0 {
            0
        } else {
            positive(all.max_mw)
        },
        invalidate: flags & rdma::IBV_DEVICE_MEM_MGT_EXTENSIONS != 0,
        lazy_bytes: if is_siw(&all) {
            SIW_LAZY_BYTES
        } else {
            Limits::NONE_LAZY
        },
        overtakes_reads: is_siw(&all),
        writes_sinks: writes_sinks(context.transport(), is_siw(&all)),
        invalidated_flags: invalidating_flags(is_rxe(&all)),
        // rxe's, as of rdma-core 44, ends the poll by itself with the last completion; ending it
        // as is proper moves past the end of its ring, and every poll after that finds rubbish.
        // And of a Send in pieces it takes all to be as long as the first.
        extended_calls: !is_rxe(&all),
        links: all.phys_port_cnt,
    })
}

/// Software RoCE: its device may have any name.
fn is_rxe(all: &rdma::ibv_device_attr) -> bool {
    const RXE_VENDOR: u32 = 0x00ff_ffff;
    all.vendor_id == RXE_VENDOR
}

/// From a page on siw sends without copying what is not signalled (its `SENDPAGE_THRESH`).
const SIW_LAZY_BYTES: u32 = 4096;

/// Software iWARP: its device may have any name.
fn is_siw(all: &rdma::ibv_device_attr) -> bool {
    const SIW_VENDOR: u32 = 0x0062_6d74;
    all.vendor_id == SIW_VENDOR
}

/// Whether the memory that an RDMA Read goes to needs the right of remote write: on iWARP. siw
/// (kernel 6.12) looks for the right of local write alone.
fn writes_sinks(transport: rdma::ibv_transport_type, siw: bool) -> bool {
    transport == rdma::IBV_TRANSPORT_IWARP && !siw
}

/// No attribute says how much goes inline: it is tried.
fn inline_bytes(device: &Arc<Device>) -> u32 {
    let Ok(queue) = CompletionQueue::new(device, 16, 0, false) else {
        return 0;
    };
    let most = u32::try_from(MOST_INLINE).unwrap_or(u32::MAX);
    let mut wanted = most;
    while wanted >= 32 {
        let depths = Depths {
            send: 8,
            receive: 8,
            gather: 1,
            inline_bytes: wanted,
            extended: false,
        };
        if let Some(given) = try_inline(device, &queue, depths) {
            return given.min(most);
        }
        wanted /= 2;
    }
    0
}

/// An entry of the P_Key table of a link, from 1; `None` beyond its end.
pub(crate) fn p_key(library: &Library, context: Context, number: u8, index: u16) -> Option<u16> {
    let mut p_key = 0;
    // SAFETY: the context lives, and the place through the call.
    let returned = unsafe {
        library
            .verbs
            .ibv_query_pkey(context.raw(), number, index.into(), &raw mut p_key)
    };
    (returned == 0).then(|| u16::from_be(p_key))
}

/// The GID table of a link, from 1. Empty where there is none.
pub(super) fn gids(library: &Library, context: Context, number: u8, entries: usize) -> Vec<Gid> {
    let room = entries.clamp(1, GIDS_MOST);
    let mut table = vec![rdma::ibv_gid_entry::default(); room];
    // SAFETY: the context lives, and the table has as many entries as it says.
    let filled = unsafe { ibv::ibv_query_gid_table(&library.verbs, context.raw(), &mut table) };
    let filled = usize::try_from(filled).unwrap_or(0).min(room);
    table[..filled]
        .iter()
        .filter(|entry| entry.port_num == u32::from(number))
        .map(|entry| Gid {
            index: entry.gid_index,
            kind: match entry.gid_type {
                rdma::IBV_GID_TYPE_ROCE_V1 => GidKind::RoceV1,
                rdma::IBV_GID_TYPE_ROCE_V2 => GidKind::RoceV2,
                _ => GidKind::InfiniBand,
            },
            // SAFETY: every form of this union may be read as octets.
            octets: unsafe { entry.gid.raw },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_need_the_right_of_remote_write_on_iwarp_alone() {
        assert!(writes_sinks(rdma::IBV_TRANSPORT_IWARP, false));
        assert!(!writes_sinks(rdma::IBV_TRANSPORT_IWARP, true));
        assert!(!writes_sinks(rdma::IBV_TRANSPORT_IB, false));
    }
}
