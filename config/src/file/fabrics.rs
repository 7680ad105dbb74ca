//! How a fabric's devices are used, as the file has it.

use super::Maybe;
use crate::form;
use crate::plan::{Devices, Expose, Packets};
use crate::schema as key;
use crate::section::Section;

/// `[verbs]`, or its absence.
#[derive(Default)]
pub(crate) struct Verbs {
    pub(crate) devices: Maybe<Devices>,
    pub(crate) gid_index: Maybe<Option<u8>>,
    pub(crate) expose: Maybe<Expose>,
    pub(crate) read_depth: Maybe<u32>,
    pub(crate) retry_count: Maybe<u32>,
    pub(crate) rnr_retry: Maybe<u32>,
    pub(crate) min_rnr_timer: Maybe<u32>,
    pub(crate) resolve_timeout: Maybe<u32>,
}

impl Verbs {
    pub(super) fn below(root: &Section<'_>) -> Verbs {
        let Some(table) = root.table(&key::VERBS_TABLE) else {
            return Verbs::default();
        };
        Verbs {
            devices: table.value(&key::DEVICES, "\"all\" or a list", form::devices),
            gid_index: table.value(&key::GID_INDEX, "\"auto\" or a number", form::gid_index),
            expose: table.word(&key::EXPOSE),
            read_depth: table.integer(&key::READ_DEPTH),
            retry_count: table.integer(&key::RETRY_COUNT),
            rnr_retry: table.integer(&key::RNR_RETRY),
            min_rnr_timer: table.integer(&key::MIN_RNR_TIMER),
            resolve_timeout: table.integer(&key::RESOLVE_TIMEOUT),
        }
    }
}

/// `[iwarp_sctp]`, or its absence.
#[derive(Default)]
pub(crate) struct IwarpSctp {
    pub(crate) packets: Maybe<Packets>,
    pub(crate) sctp_port: Maybe<u32>,
    pub(crate) streams: Maybe<u32>,
    pub(crate) chunk_bytes: Maybe<u32>,
    pub(crate) path_mtu: Maybe<u32>,
    pub(crate) read_depth: Maybe<u32>,
}

impl IwarpSctp {
    pub(super) fn below(root: &Section<'_>) -> IwarpSctp {
        let Some(table) = root.table(&key::IWARP_SCTP_TABLE) else {
            return IwarpSctp::default();
        };
        IwarpSctp {
            packets: table.word(&key::PACKETS),
            sctp_port: table.integer(&key::SCTP_PORT),
            streams: table.integer(&key::STREAMS),
            chunk_bytes: table.integer(&key::CHUNK_BYTES),
            path_mtu: table.integer(&key::PATH_MTU),
            read_depth: table.integer(&key::READS),
        }
    }
}
