//! What is asked of any octets at all. The fuzz targets and the ordinary tests share this file,
//! so a corpus replayed by one means what it meant to the other.

use crate::describe::{describe, describe_oracle, oracle_limit};
use crate::oracle::{Opinion, consult};
use rpcrdma_wire::rpc::{CallHeader, ReplyHeader};
use rpcrdma_wire::{
    Body, ChunkLists, Emitter, Header, Limits, PrivateData, RawSegment, Role, answer, emit,
    message_bytes, parse_as, role_of,
};

/// The least a receiver can take.
const TIGHT: Limits = Limits {
    read_segments: 1,
    write_chunks: 1,
    chunk_segments: 1,
    call_bytes: 5000,
    reply_bytes: 5000,
    properties: 1,
    property_bytes: 4,
};

/// A message: the crate and the oracle must be of one mind, and what was taken must come back
/// when it is emitted again.
pub(crate) fn parse(octets: &[u8]) {
    for limits in [&Limits::default(), &TIGHT] {
        agree(octets, limits);
    }
}

fn agree(octets: &[u8], limits: &Limits) {
    let role = role_of(octets);
    let result = rpcrdma_wire::parse(octets, limits);
    match (&result, consult(octets, &oracle_limit(limits))) {
        (Ok(header), Opinion::Good(message)) => {
            assert_eq!(describe(header), describe_oracle(&message));
            assert_eq!(
                &octets[header.header_bytes..][..header.payload.len()],
                header.payload
            );
            emitted_again(header, limits);
        }
        (Err(reject), Opinion::Bad(goes_back)) => {
            assert_eq!(
                answer(*reject, octets, role).name(),
                goes_back,
                "{reject:?}"
            );
        }
        (found, opinion) => panic!("{:?} {opinion:?}", found.as_ref().map(describe)),
    }
    // A known role only ever refuses more.
    for role in [Role::Responder, Role::Requester] {
        if let Ok(header) = parse_as(octets, limits, role) {
            assert_eq!(result.as_ref().map(describe), Ok(describe(&header)));
        }
    }
}

/// Emits what a header says, and compares what that says.
fn emitted_again(header: &Header<'_>, limits: &Limits) {
    let mut buf = vec![0; 1 << 16];
    let (xid, credits) = (header.xid, header.credits);
    let bytes = match &header.body {
        Body::Msg(lists) | Body::NoMsg(lists) => emit_lists(&mut buf, header, lists),
        Body::Error(error) => emit::emit_error(&mut buf, header.vers, xid, credits, *error),
        Body::ConnProp { start, nochg } => {
            let words: Vec<u32> = words(nochg.iter());
            emit::emit_connprop(&mut buf, xid, credits, pairs(start), words)
        }
        Body::ReqProp { want } => emit::emit_reqprop(&mut buf, xid, credits, pairs(want)),
        Body::RespProp {
            done,
            rejected,
            other,
        } => {
            let (done, rejected) = (words(done.iter()), words(rejected.iter()));
            emit::emit_resprop(&mut buf, xid, credits, done, rejected, pairs(other))
        }
        Body::UpdProp { now } => emit::emit_updprop(&mut buf, xid, credits, pairs(now)),
    };
    let bytes = bytes.expect("the buffer is longer than any message here");
    buf.truncate(bytes);
    buf.extend_from_slice(header.payload);
    let again = rpcrdma_wire::parse(&buf, limits).expect("what was good is good");
    // A subset may have come with words of zeros behind it, which are not sent again; the size
    // is then another.
    let says = |header: &Header<'_>| {
        let text = describe(header);
        let size = format!(" header {} ", header.header_bytes);
        text.replacen(&size, " ", 1)
    };
    assert_eq!(says(&again), says(header));
}

fn emit_lists(buf: &mut [u8], header: &Header<'_>, lists: &ChunkLists<'_>) -> Option<usize> {
    let mut out = Emitter::new(buf);
    out.start(
        header.version,
        header.xid,
        header.credits,
        header.body.procedure(),
    );
    out.direction(lists.direction, lists.inv_handle);
    for read in lists.reads {
        out.read(read.position(), read.target());
    }
    out.end_reads();
    for chunk in lists.writes.iter() {
        out.write_chunk(chunk.iter().map(RawSegment::value));
    }
    out.end_writes();
    out.reply_chunk(lists.reply.map(|chunk| chunk.iter().map(RawSegment::value)));
    let bytes = out.finish()?;
    let sizes = message_bytes(
        header.version,
        lists.reads.len(),
        lists.writes.len(),
        lists.writes.iter().map(<[_]>::len).sum(),
        lists.reply.map(<[_]>::len),
    );
    assert_eq!(bytes, sizes);
    assert_eq!(bytes, header.header_bytes);
    Some(bytes)
}

fn pairs<'m>(set: &rpcrdma_wire::PropertySet<'m>) -> Vec<(u32, &'m [u8])> {
    set.iter().map(|(_, id, data)| (id, data)).collect()
}

/// Positions as the words of a subset.
fn words(positions: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut words = Vec::new();
    for position in positions {
        let word = (position / 32) as usize;
        words.resize(words.len().max(word + 1), 0);
        words[word] |= 1 << (position % 32);
    }
    words
}

/// RPC heads and private data: whatever is found lies inside the octets, and says the same
/// again when only as much of them is there.
pub(crate) fn rpc(octets: &[u8]) {
    if let Some(call) = CallHeader::parse(octets) {
        assert!(call.arguments >= 40 && call.arguments <= octets.len());
        assert_eq!(CallHeader::parse(&octets[..call.arguments]), Some(call));
        assert_eq!(CallHeader::parse(&octets[..call.arguments - 1]), None);
        assert_eq!(ReplyHeader::parse(octets), None);
    }
    if let Some(reply) = ReplyHeader::parse(octets) {
        assert!(reply.results >= 16 && reply.results <= octets.len());
        assert_eq!(ReplyHeader::parse(&octets[..reply.results]), Some(reply));
        assert_eq!(ReplyHeader::parse(&octets[..reply.results - 1]), None);
    }
    if let Some(data) = PrivateData::find(octets) {
        assert_eq!(PrivateData::find(&data.emit()), Some(data));
    }
}

/// An emitter given a short buffer: it writes nothing behind what it has, and either all or
/// nothing. The first octet is the buffer's length, the rest a message to emit again.
pub(crate) fn emit(octets: &[u8]) {
    let Some((room, message)) = octets.split_first() else {
        return;
    };
    let Ok(header) = rpcrdma_wire::parse(message, &Limits::default()) else {
        return;
    };
    let (Body::Msg(lists) | Body::NoMsg(lists)) = &header.body else {
        return;
    };
    let room = usize::from(*room);
    let mut buf = vec![0xA5; room + 16];
    let bytes = emit_lists(&mut buf[..room], &header, lists);
    assert_eq!(bytes.is_some(), header.header_bytes <= room);
    assert_eq!(buf[room..], [0xA5; 16]);
}
