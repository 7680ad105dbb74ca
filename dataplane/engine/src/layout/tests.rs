//! The plan of a Call's chunks, carried out on octets and held against the stream it came from.

use super::*;
use proptest::prelude::*;
use rpcrdma_wire::{Body, Direction, Emitter, Handle, Limits, Procedure, Version, Xid, parse};

/// A Call as its sender has it: the stream, and which of it is taken out as Read chunks.
#[derive(Clone, Debug)]
struct Sent {
    stream: Vec<u8>,
    /// Position, octets, and where its segments are cut.
    chunks: Vec<(usize, usize, Vec<usize>)>,
    long: bool,
    /// Where the position-zero chunk is cut.
    cuts: Vec<usize>,
    order: u64,
}

impl Sent {
    /// The stream without its chunks and their padding.
    fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let mut at = 0;
        for (position, len, _) in &self.chunks {
            body.extend(&self.stream[at..*position]);
            at = position + len.next_multiple_of(4);
        }
        body.extend(self.stream.get(at..).unwrap_or_default());
        body
    }

    /// Every segment, in the order of the list: position, and what is in it.
    fn segments(&self) -> Vec<(usize, Vec<u8>)> {
        let mut lists: Vec<(usize, Vec<Vec<u8>>)> = Vec::new();
        if self.long {
            lists.push((0, cut_up(&self.body(), &self.cuts)));
        }
        for (position, len, cuts) in &self.chunks {
            let octets = &self.stream[*position..position + len];
            lists.push((*position, cut_up(octets, cuts)));
        }
        // Chunks in any order, even interleaved; segments of one chunk in theirs.
        let mut segments = Vec::new();
        let mut order = self.order;
        while !lists.is_empty() {
            let place = (order % lists.len() as u64) as usize;
            order = order.rotate_right(3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (position, pieces) = &mut lists[place];
            segments.push((*position, pieces.remove(0)));
            if pieces.is_empty() {
                lists.remove(place);
            }
        }
        segments
    }
}

/// `octets` in pieces, cut at some places; one piece at least.
fn cut_up(octets: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (octets.len() + 1)).collect();
    places.extend([0, octets.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|ends| octets[ends[0]..ends[1]].to_vec())
        .collect()
}

fn sent() -> impl Strategy<Value = Sent> {
    let cuts = || prop::collection::vec(any::<usize>(), 0..3);
    let chunk = (0_usize..6, 0_usize..23, cuts());
    let chunks = prop::collection::vec(chunk, 0..5);
    (chunks, 0_usize..6, any::<bool>(), cuts(), any::<u64>()).prop_map(
        |(gaps, tail, long, cuts, order)| {
            // The xid and the type stand before everything.
            let mut at = 8;
            let mut chunks: Vec<(usize, usize, Vec<usize>)> = Vec::new();
            for (gap, len, cuts) in gaps {
                at += gap * 4;
                // Two chunks of one position are one chunk.
                if chunks.last().is_none_or(|last| last.0 != at) {
                    chunks.push((at, len, cuts));
                    at += len.next_multiple_of(4);
                }
            }
            let mut stream: Vec<u8> = (0..at + tail * 4).map(|n| n as u8 | 0x80).collect();
            stream[..8].copy_from_slice(&[0, 0, 0, 7, 0, 0, 0, 0]);
            for (position, len, _) in &chunks {
                stream[position + len..(position + len).next_multiple_of(4)].fill(0);
            }
            Sent {
                stream,
                chunks,
                long,
                cuts,
                order,
            }
        },
    )
}

/// The message that carries `sent`; segment n has handle n.
fn message(sent: &Sent) -> Vec<u8> {
    let mut buf = vec![0; 4096];
    let mut header = Emitter::new(&mut buf);
    let procedure = if sent.long {
        Procedure::NoMsg
    } else {
        Procedure::Msg
    };
    header.start(Version::Two, Xid(7), 1, procedure);
    header.direction(Direction::Call, None);
    for (handle, (position, octets)) in (0..).zip(sent.segments()) {
        let segment = Segment {
            handle: Handle(handle),
            length: octets.len() as u32,
            offset: 1000,
        };
        header.read(position as u32, segment);
    }
    header.end_reads().end_writes();
    header.reply_chunk(None::<std::iter::Empty<Segment>>);
    let len = header.finish().expect("room");
    buf.truncate(len);
    if !sent.long {
        buf.extend(sent.body());
    }
    buf
}

proptest! {
    #[test]
    fn the_assembled_call_is_the_stream(sent in sent()) {
        let message = message(&sent);
        let limits = Limits { read_segments: 32, ..Limits::default() };
        let header = parse(&message, &limits).expect("a good Call");
        let (Body::Msg(lists) | Body::NoMsg(lists)) = header.body else {
            panic!("no Call");
        };
        let inline = (!sent.long).then_some(header.payload);
        let layout = Layout::of(lists.reads, inline.map(|octets| octets.len() as u32))
            .expect("a plan");
        prop_assert_eq!(layout.total as usize, sent.stream.len());

        let mut assembled = vec![0xdb; sent.stream.len()];
        let mut put = |at: u32, octets: &[u8]| {
            assembled[at as usize..][..octets.len()].copy_from_slice(octets);
        };
        if let Some(payload) = inline {
            for fill in layout.fills() {
                put(fill.to, &payload[fill.from as usize..][..fill.len as usize]);
            }
        }
        for (at, len) in layout.pads() {
            put(at, &[0; 3][..len as usize]);
        }
        let segments = sent.segments();
        for (to, from) in layout.reads(lists.reads) {
            let (_, octets) = &segments[from.handle.0 as usize];
            let start = (from.offset - 1000) as usize;
            put(to, &octets[start..start + from.length as usize]);
        }
        prop_assert_eq!(assembled, sent.stream);
    }

    #[test]
    fn a_plan_can_be_taken_up_again_at_a_number(sent in sent(), at in 0_usize..40) {
        let message = message(&sent);
        let limits = Limits { read_segments: 32, ..Limits::default() };
        let header = parse(&message, &limits).expect("a good Call");
        let (Body::Msg(lists) | Body::NoMsg(lists)) = header.body else {
            panic!("no Call");
        };
        let inline = (!sent.long).then_some(header.payload.len() as u32);
        let plan = || Layout::of(lists.reads, inline).expect("a plan");
        let whole: Vec<_> = plan().reads(lists.reads).collect();
        let rest: Vec<_> = plan().reads(lists.reads).skip(at).collect();
        prop_assert_eq!(&whole[at.min(whole.len())..], rest);
        prop_assert!(whole.iter().all(|(_, segment)| segment.length > 0));
    }
}
