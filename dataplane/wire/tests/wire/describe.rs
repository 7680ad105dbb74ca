//! One line of text for what a message says, made twice: from the crate's views and from the
//! oracle's numbers. The vectors carry the same text, written by hand.

use crate::oracle::model::Seg;
use crate::oracle::{Limit, Message, What};
use rpcrdma_wire::{Body, ChunkLists, Direction, Header, Limits, PropertySet, PropertySubset};
use rpcrdma_wire::{RawSegment, Segment};

/// The oracle's form of the crate's limits.
pub(crate) fn oracle_limit(limits: &Limits) -> Limit {
    Limit {
        reads: limits.read_segments as usize,
        chunks: limits.write_chunks as usize,
        segments: limits.chunk_segments as usize,
        call: u128::from(limits.call_bytes),
        reply: u128::from(limits.reply_bytes),
        properties: limits.properties as usize,
        data: limits.property_bytes as usize,
    }
}

fn fixed(xid: u32, vers: u32, credits: u32, header: usize) -> String {
    format!("xid {xid:#x} vers {vers} credits {credits} header {header} ")
}

fn segment(handle: u32, length: u32, offset: u64) -> String {
    format!("{handle:#x}:{length}@{offset:#x}")
}

fn chunk(segments: impl Iterator<Item = String>) -> String {
    format!("[{}]", segments.collect::<Vec<_>>().join(" "))
}

fn property(id: u32, data: &[u8]) -> String {
    let hex: String = data.iter().map(|octet| format!("{octet:02x}")).collect();
    format!("{id:#x}={hex}")
}

/// What the crate says of a header.
pub(crate) fn describe(header: &Header<'_>) -> String {
    let xid = header.xid.0;
    let body = match &header.body {
        Body::Msg(lists) => format!("MSG {}", describe_lists(lists)),
        Body::NoMsg(lists) => format!("NOMSG {}", describe_lists(lists)),
        Body::Error(error) => {
            let (a, b) = error.words().unwrap_or_default();
            let words = error.words().map_or(String::new(), |_| format!(" {a} {b}"));
            format!("ERROR {}{words}", error.code())
        }
        Body::ConnProp { start, nochg } => {
            format!("CONNPROP {} {}", set(start), subset(nochg))
        }
        Body::ReqProp { want } => format!("REQPROP {}", set(want)),
        Body::RespProp {
            done,
            rejected,
            other,
        } => format!(
            "RESPROP {} {} {}",
            set(other),
            subset(done),
            subset(rejected)
        ),
        Body::UpdProp { now } => format!("UPDPROP {}", set(now)),
    };
    fixed(xid, header.vers, header.credits, header.header_bytes) + &body
}

fn describe_lists(lists: &ChunkLists<'_>) -> String {
    let direction = match lists.direction {
        Direction::Call => "CALL",
        Direction::Reply => "REPLY",
    };
    let value = |s: &Segment| segment(s.handle.0, s.length, s.offset);
    let array = |segments: &[RawSegment]| chunk(segments.iter().map(|s| value(&s.value())));
    let mut text = format!("{direction} inv {:#x}", lists.inv_handle.map_or(0, |h| h.0));
    for read in lists.reads {
        text += &format!(" read {} {}", read.position(), value(&read.target()));
    }
    assert_eq!(lists.writes.len(), lists.writes.iter().count());
    for write in lists.writes.iter() {
        text += &format!(" write {}", array(write));
    }
    if let Some(reply) = lists.reply {
        text += &format!(" reply {}", array(reply));
    }
    text
}

fn set(set: &PropertySet<'_>) -> String {
    assert_eq!(set.len() as usize, set.iter().count());
    chunk(set.iter().map(|(_, id, data)| property(id, data)))
}

fn subset(subset: &PropertySubset<'_>) -> String {
    assert!(subset.iter().all(|position| subset.contains(position)));
    chunk(subset.iter().map(|position| position.to_string()))
}

/// What the oracle says of a message.
pub(crate) fn describe_oracle(message: &Message) -> String {
    let body = match &message.what {
        What::Error(words) => {
            let words: Vec<String> = words.iter().map(u32::to_string).collect();
            format!("ERROR {}", words.join(" "))
        }
        What::Properties { proc, set, subsets } => {
            let names = ["CONNPROP", "REQPROP", "RESPROP", "UPDPROP"];
            let mut text = names[*proc as usize - 6].to_owned() + " ";
            text += &chunk(set.iter().map(|(id, data)| property(*id, data)));
            for words in subsets {
                let positions =
                    (0..words.len() * 32).filter(|n| words[n / 32] >> (n % 32) & 1 == 1);
                text += " ";
                text += &chunk(positions.map(|n| n.to_string()));
            }
            text
        }
        What::Rpc { nomsg, reply, part } => {
            let value = |s: &Seg| segment(s.handle, s.length, s.offset);
            let mut text = String::from(if *nomsg { "NOMSG " } else { "MSG " });
            text += if *reply { "REPLY" } else { "CALL" };
            text += &format!(" inv {:#x}", part.inv);
            for (position, target) in &part.reads {
                text += &format!(" read {position} {}", value(target));
            }
            for write in &part.writes {
                text += &format!(" write {}", chunk(write.iter().map(value)));
            }
            if let Some(reply) = &part.reply {
                text += &format!(" reply {}", chunk(reply.iter().map(value)));
            }
            text
        }
    };
    fixed(message.xid, message.vers, message.credits, message.header) + &body
}
