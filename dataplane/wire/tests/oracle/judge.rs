//! The rules, put to the numbers.

use super::model::{Limit, Part, Seg, What};
use std::collections::BTreeMap;

/// Is this MSG or NOMSG good?
pub(crate) fn rpc(
    xid: u32,
    part: &Part,
    nomsg: bool,
    reply: bool,
    payload: &[u8],
    limit: &Limit,
) -> bool {
    sizes(part, limit)
        && part.declared.is_none_or(|direction| direction <= 1)
        && message(xid, part, nomsg, payload)
        && (reply || invalidation(part))
        && match (nomsg, reply) {
            (_, true) if !part.reads.is_empty() => false,
            (true, true) => part.reply.is_some(),
            (false, true) => true,
            (nomsg, false) => chunks(part, nomsg, payload.len(), limit),
        }
}

fn sizes(part: &Part, limit: &Limit) -> bool {
    let reads: Vec<Seg> = part.reads.iter().map(|(_, segment)| *segment).collect();
    let room = |segments: &[Seg]| -> u128 { segments.iter().map(|s| u128::from(s.length)).sum() };
    let fits = |s: &Seg| u128::from(s.offset) + u128::from(s.length) < 1 << 64;
    let writes: Vec<Seg> = part.writes.concat();
    let reply = part.reply.clone().unwrap_or_default();
    reads.len() <= limit.reads
        && part.writes.len() <= limit.chunks
        && part
            .writes
            .iter()
            .all(|chunk| chunk.len() <= limit.segments)
        && reply.len() <= limit.segments
        && room(&writes) <= limit.reply
        && room(&reply) <= limit.reply
        && [reads, writes, reply].concat().iter().all(fits)
}

/// Behind the header of an MSG is an RPC message, and the right one.
fn message(xid: u32, part: &Part, nomsg: bool, payload: &[u8]) -> bool {
    if nomsg {
        return true;
    }
    if payload.len() < 8 || payload[..4] != xid.to_be_bytes() {
        return false;
    }
    let kind = u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]);
    kind <= 1 && part.declared.is_none_or(|declared| declared == kind)
}

fn invalidation(part: &Part) -> bool {
    let mut handles: Vec<u32> = part.reads.iter().map(|(_, s)| s.handle).collect();
    handles.extend(part.writes.iter().flatten().map(|s| s.handle));
    handles.extend(part.reply.iter().flatten().map(|s| s.handle));
    part.inv == 0 || handles.contains(&part.inv)
}

/// The Read chunks of a Call: gathered by position, laid out in the order of positions over the
/// octets of the stream, the body filling what they leave free.
fn chunks(part: &Part, nomsg: bool, inline: usize, limit: &Limit) -> bool {
    let mut lengths: BTreeMap<u32, u128> = BTreeMap::new();
    for (position, segment) in &part.reads {
        *lengths.entry(*position).or_default() += u128::from(segment.length);
    }
    let whole = lengths.remove(&0);
    let body = match (nomsg, whole) {
        (true, Some(length)) => length,
        (false, None) => inline as u128,
        _ => return false,
    };
    // Where the next free octet of the stream is, and how much of the body has been used.
    let (mut free, mut used) = (0_u128, 0_u128);
    for (position, length) in &lengths {
        let position = u128::from(*position);
        if position % 4 != 0 || position < free {
            return false;
        }
        used += position - free;
        if used > body {
            return false;
        }
        free = position + length.div_ceil(4) * 4;
    }
    // Without a Read list there is nothing to assemble.
    part.reads.is_empty() || free + (body - used) <= limit.call
}

/// Is this property message good?
pub(crate) fn properties(what: &What, limit: &Limit) -> bool {
    let What::Properties { proc, set, subsets } = what else {
        return false;
    };
    let value = |data: &[u8], good: &dyn Fn(u32) -> bool| match data {
        [] => true,
        [a, b, c, d] => good(u32::from_be_bytes([*a, *b, *c, *d])),
        _ => false,
    };
    let values = set.iter().all(|(id, data)| match id {
        1 => value(data, &|bytes| bytes >= 1024),
        2 => value(data, &|which| which <= 2),
        _ => true,
    });
    let sizes = set.len() <= limit.properties && set.iter().all(|(_, d)| d.len() <= limit.data);
    let within = |words: &[u32]| {
        let bits = words.iter().enumerate();
        bits.flat_map(|(i, word)| {
            (0..32)
                .filter(move |b| word >> b & 1 == 1)
                .map(move |b| i * 32 + b)
        })
        .all(|position| position < set.len())
    };
    // Only CONNPROP's subset is over a set of the same message.
    values && sizes && (*proc != 6 || within(&subsets[0]))
}
