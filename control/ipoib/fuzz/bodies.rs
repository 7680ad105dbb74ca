//! What is asked of any octets at all. The fuzz targets and the ordinary tests share this file, so a corpus replayed by one
//! means what it meant to the other.

use crate::{describe, oracle};
use rpcrdma_ipoib::mad::{
    Mad, McMember, McMemberTemplate, Method, Path, PathTemplate, TABLE_BYTES, emit,
};
use rpcrdma_ipoib::packet::{self, Packet};

/// A management datagram: the crate and the oracle must be of one mind, and what was taken must come back when it is
/// emitted again.
pub(crate) fn mad(octets: &[u8]) {
    for limit in [300, TABLE_BYTES] {
        let says = describe::mad(octets, limit);
        assert_eq!(says, oracle::mad::describe(octets, limit));
    }
    let Ok(mad) = Mad::parse(octets, TABLE_BYTES) else {
        return;
    };
    if let Ok(member) = mad.record::<McMember>() {
        let again = emit::reply(&mad, mad.status, Some(&member));
        assert_eq!(Mad::parse(&again, 256).unwrap().record(), Ok(member));
    }
    if let Ok(path) = mad.record::<Path>() {
        let again = emit::reply(&mad, mad.status, Some(&path));
        assert_eq!(Mad::parse(&again, 256).unwrap().record(), Ok(path));
    }
    if let Ok(template) = mad.template::<McMemberTemplate>() {
        let again = emit::request(mad.method, mad.tid, &template);
        assert_eq!(Mad::parse(&again, 256).unwrap().template(), Ok(template));
    }
    if let Ok(template) = mad.template::<PathTemplate>() {
        let again = emit::request(mad.method, mad.tid, &template);
        assert_eq!(Mad::parse(&again, 256).unwrap().template(), Ok(template));
    }
    if let Ok(table) = mad.table::<McMember>() {
        let members: Vec<McMember> = table.filter_map(Result::ok).collect();
        let mut again = Vec::new();
        emit::reply_table(&mad, &members, &mut again);
        let again = Mad::parse(&again, usize::MAX).unwrap();
        if mad.method.response() == Method::GetTableResp {
            assert_eq!(again.method, Method::GetTableResp);
        }
        let found: Result<Vec<McMember>, _> = again.table().unwrap().collect();
        assert_eq!(found, Ok(members));
    }
}

/// A frame as it is, and with its checksums made right: otherwise nothing would come to what is behind them.
pub(crate) fn encapsulation(frame: &[u8]) {
    judge(frame);
    judge(&summed(frame.to_vec()));
}

/// A message of ARP.
pub(crate) fn arp(message: &[u8]) {
    judge(&[&[0x08, 0x06, 0, 0], message].concat());
}

/// A message of neighbour discovery, its first 32 octets the addresses of its packet.
pub(crate) fn discovery(octets: &[u8]) {
    let Some((ends, message)) = octets.split_at_checked(32) else {
        return;
    };
    let length = u16::try_from(message.len()).unwrap_or(0).to_be_bytes();
    let head = [
        &[0x86, 0xDD, 0, 0, 0x60, 0, 0, 0],
        &length[..],
        &[58, 255],
        ends,
    ];
    encapsulation(&[&head.concat(), message].concat());
}

/// The crate and the oracle must be of one mind, and what was taken must come back when it is emitted again.
fn judge(frame: &[u8]) {
    let says = describe::frame(frame);
    assert_eq!(says, oracle::packet::describe(frame));
    let Ok(found) = Packet::parse(frame) else {
        return;
    };
    let again = match &found {
        Packet::Arp(arp) => arp.frame(),
        Packet::Solicitation(solicitation) => solicitation.frame(),
        Packet::Advertisement(advertisement) => advertisement.frame(),
        Packet::Udp(datagram) => {
            let mut again = Vec::new();
            assert!(packet::emit_udp(&mut again, datagram));
            again
        }
    };
    assert_eq!(Packet::parse(&again), Ok(found));
}

/// Puts the right checksums where a frame has its own.
fn summed(mut frame: Vec<u8>) -> Vec<u8> {
    let Some(packet) = frame.get_mut(4..) else {
        return frame;
    };
    let (head, protocol, ends) = match packet {
        [0x40..=0x4F, ..] if packet.len() >= 20 => {
            let head = usize::from(packet[0] & 0xF) * 4;
            if let Some(header) = packet.get_mut(..head).filter(|header| header.len() >= 20) {
                header[10..12].fill(0);
                let sum = internet_sum(header);
                header[10..12].copy_from_slice(&sum);
            }
            (head, packet[9], 12..20)
        }
        [0x60..=0x6F, ..] if packet.len() >= 40 => (40, packet[6], 8..40),
        _ => return frame,
    };
    let total = match packet[0] >> 4 {
        4 => usize::from(u16::from_be_bytes([packet[2], packet[3]])),
        _ => 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]])),
    };
    let mut pseudo = packet[ends].to_vec();
    let Some(mut message) = packet.get_mut(head..total) else {
        return frame;
    };
    let at = match protocol {
        17 if message.len() >= 8 => {
            let says = usize::from(u16::from_be_bytes([message[4], message[5]]));
            let bytes = if (8..=message.len()).contains(&says) {
                says
            } else {
                message.len()
            };
            message = &mut message[..bytes];
            6
        }
        58 if message.len() >= 4 => 2,
        _ => return frame,
    };
    message[at..at + 2].fill(0);
    pseudo.extend([0, protocol]);
    pseudo.extend(u16::try_from(message.len()).unwrap_or(0).to_be_bytes());
    pseudo.extend_from_slice(message);
    message[at..at + 2].copy_from_slice(&internet_sum(&pseudo));
    frame
}

/// As RFC 1071 section 4.1 has it.
fn internet_sum(octets: &[u8]) -> [u8; 2] {
    let mut sum = 0_u32;
    for pair in octets.chunks(2) {
        let low = pair.get(1).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([pair[0], low]));
    }
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    let sum = if sum == 0xFFFF { 0 } else { sum };
    (!u16::try_from(sum).unwrap_or(0)).to_be_bytes()
}
