//! What a port's own agent is asked: directed-route SMPs of no hops, and its answers (IBA 14.2.1.2, 14.2.5).

use crate::{PortMtu, PortState};
use rpcrdma_ipoib::gid::Lid;
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::pkey::PKey;
use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// P_Keys of one block of the table (IBA 14.2.5.7).
pub(crate) const KEYS_OF_BLOCK: usize = 32;
const GET: u8 = 0x01;
const GET_RESP: u8 = 0x81;
const PERMISSIVE: u16 = 0xFFFF;
/// All of the status but the bit that says which way an SMP goes.
const STATUS: u16 = 0x7FFF;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// PortInfo of the port that hears it.
    PortInfo,
    /// A block of its P_Key table.
    Keys(u16),
}

impl Question {
    /// Attribute and modifier.
    const fn attribute(self) -> (u16, u32) {
        match self {
            Question::PortInfo => (0x0015, 0),
            Question::Keys(block) => (0x0016, block as u32),
        }
    }
}

/// A directed-route SMP.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Smp {
    base_version: u8,
    class: u8,
    class_version: u8,
    method: u8,
    status: U16,
    hop_pointer: u8,
    hop_count: u8,
    transaction: U64,
    attribute: U16,
    reserved: U16,
    modifier: U32,
    m_key: U64,
    source_lid: U16,
    target_lid: U16,
    reserved_too: [u8; 28],
    data: [u8; 64],
    initial_path: [u8; 64],
    return_path: [u8; 64],
}

/// PortInfo, in part.
#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Wire {
    m_key: U64,
    gid_prefix: U64,
    lid: U16,
    sm_lid: U16,
    capabilities: U32,
    diagnostics: U16,
    m_key_lease: U16,
    local_port: u8,
    width_enabled: u8,
    width_supported: u8,
    width_active: u8,
    speed_supported_and_state: u8,
    physical_and_default_state: u8,
    protection_and_lmc: u8,
    speed_active_and_enabled: u8,
    mtu_active_and_sm_sl: u8,
    lanes: [u8; 4],
    init_and_mtu_most: u8,
    rest: [u8; 20],
    speed_extended: u8,
    last: u8,
}

/// The question, ready to be sent to the permissive LID.
pub(crate) fn emit(question: Question, transaction: u32) -> [u8; 256] {
    let mut smp = Smp::new_zeroed();
    smp.base_version = 1;
    smp.class = 0x81;
    smp.class_version = 1;
    smp.method = GET;
    smp.transaction = u64::from(transaction).into();
    let (attribute, modifier) = question.attribute();
    smp.attribute = attribute.into();
    smp.modifier = modifier.into();
    smp.source_lid = PERMISSIVE.into();
    smp.target_lid = PERMISSIVE.into();
    zerocopy::transmute!(smp)
}

/// The transaction and data of a good answer to `question`.
pub(crate) fn answer(question: Question, mad: &[u8]) -> Option<(u32, &[u8; 64])> {
    let (smp, _) = Smp::ref_from_prefix(mad).ok()?;
    let sound = smp.method == GET_RESP
        && smp.status.get() & STATUS == 0
        && (smp.attribute.get(), smp.modifier.get()) == question.attribute();
    #[expect(clippy::cast_possible_truncation, reason = "the rest is the kernel's")]
    sound.then(|| (smp.transaction.get() as u32, &smp.data))
}

/// What a port says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortInfo {
    pub(crate) state: PortState,
    pub(crate) lid: Lid,
    pub(crate) lmc: u8,
    pub(crate) sm_lid: Lid,
    pub(crate) sm_sl: u8,
    pub(crate) gid_prefix: u64,
    pub(crate) capabilities: u32,
    pub(crate) rate_mbps: Option<u32>,
    pub(crate) mtu: Option<PortMtu>,
}

impl PortInfo {
    /// `None` for a port without any prefix: no port answers so.
    pub(crate) fn parse(data: &[u8; 64]) -> Option<Self> {
        let (wire, _) = Wire::ref_from_prefix(data).ok()?;
        let mtu = Mtu::from_code(wire.mtu_active_and_sm_sl >> 4)
            .zip(Mtu::from_code(wire.init_and_mtu_most & 15))
            .map(|(active, most)| PortMtu { active, most });
        (wire.gid_prefix.get() != 0).then(|| Self {
            state: PortState::from_code(u32::from(wire.speed_supported_and_state & 15)),
            lid: Lid(wire.lid.get()),
            lmc: wire.protection_and_lmc & 7,
            sm_lid: Lid(wire.sm_lid.get()),
            sm_sl: wire.mtu_active_and_sm_sl & 15,
            gid_prefix: wire.gid_prefix.get(),
            capabilities: wire.capabilities.get(),
            rate_mbps: rate_mbps(
                wire.width_active,
                wire.speed_active_and_enabled >> 4,
                wire.speed_extended >> 4,
            ),
            mtu,
        })
    }
}

/// Lanes times their signalling rate, as rates are named: a 4X EDR port has 100 Gb/s.
fn rate_mbps(width: u8, speed: u8, extended: u8) -> Option<u32> {
    let lanes = match width {
        1 => 1,
        2 => 4,
        4 => 8,
        8 => 12,
        16 => 2,
        _ => return None,
    };
    let lane = match (extended, speed) {
        (1, _) => 14_000,
        (2, _) => 25_000,
        (4, _) => 50_000,
        (8, _) => 100_000,
        (_, 1) => 2_500,
        (_, 2) => 5_000,
        (_, 4) => 10_000,
        _ => return None,
    };
    Some(lanes * lane)
}

/// The keys of a block.
pub(crate) fn keys(data: &[u8; 64]) -> [PKey; KEYS_OF_BLOCK] {
    let keys: &[U16; KEYS_OF_BLOCK] = zerocopy::transmute_ref!(data);
    keys.map(|key| PKey(key.get()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// PortInfo of an active port of 4X SDR with LID 5, as ibsim answers.
    pub(crate) fn port_info() -> [u8; 64] {
        let mut data = [0; 64];
        data[8..16].copy_from_slice(&0xFE80_0000_0000_0000_u64.to_be_bytes());
        data[16..18].copy_from_slice(&5_u16.to_be_bytes());
        data[18..20].copy_from_slice(&1_u16.to_be_bytes());
        data[31] = 2;
        data[32] = 0x14;
        data[35] = 0x11;
        data[36] = 0x40;
        data[41] = 0x05;
        data
    }

    /// An answer to a question.
    pub(crate) fn answered(question: Question, transaction: u32, data: [u8; 64]) -> Vec<u8> {
        let mut mad = emit(question, transaction).to_vec();
        mad[3] = GET_RESP;
        mad[4] = 0x80;
        mad[64..128].copy_from_slice(&data);
        mad
    }

    #[test]
    fn a_question_goes_no_further_than_the_port() {
        let mad = emit(Question::Keys(2), 7);
        assert_eq!(mad[..4], [1, 0x81, 1, 1]);
        assert_eq!(mad[6..8], [0, 0], "no hops");
        assert_eq!(
            mad[8..24],
            [0, 0, 0, 0, 0, 0, 0, 7, 0, 0x16, 0, 0, 0, 0, 0, 2]
        );
        assert_eq!(mad[32..36], [0xFF; 4]);
    }

    #[test]
    fn fields_of_port_info_are_where_they_should_be() {
        let info = PortInfo::parse(&port_info()).expect("an answer");
        assert_eq!(info.state, PortState::Active);
        assert_eq!((info.lid, info.sm_lid), (Lid(5), Lid(1)));
        assert_eq!(info.rate_mbps, Some(10_000));
        let mtu = PortMtu {
            active: Mtu::M2048,
            most: Mtu::M4096,
        };
        assert_eq!(info.mtu, Some(mtu));
        assert_eq!(PortInfo::parse(&[0; 64]), None);
    }

    #[test]
    fn answers_to_something_else_and_refusals_are_none() {
        let good = answered(Question::PortInfo, 9, port_info());
        assert_eq!(answer(Question::PortInfo, &good), Some((9, &port_info())));
        assert_eq!(answer(Question::Keys(0), &good), None);
        for (at, octet) in [(3, GET), (5, 0x0C), (17, 0x16)] {
            let mut bad = good.clone();
            bad[at] = octet;
            assert_eq!(answer(Question::PortInfo, &bad), None, "octet {at}");
        }
        for short in 0..good.len() {
            assert_eq!(answer(Question::PortInfo, &good[..short]), None);
        }
    }

    #[test]
    fn rates_are_lanes_times_their_signalling() {
        assert_eq!(rate_mbps(2, 4, 0), Some(40_000));
        assert_eq!(rate_mbps(2, 4, 2), Some(100_000));
        assert_eq!(rate_mbps(16, 0, 8), Some(200_000));
        assert_eq!(rate_mbps(3, 1, 0), None);
        assert_eq!(rate_mbps(2, 0, 0), None);
    }
}
