//! Fuzz targets: functions of octets that must never panic and whose claims must hold.

use rpcrdma_engine::{Access, Counters, Io, Octets, Posted, Refused, Span, WorkId};
use rpcrdma_upper::binding::Binding;
use rpcrdma_upper::record::{RecordReader, Step};
use rpcrdma_wire::rpc::{CallHeader, ReplyHeader};
use rpcrdma_wire::{Handle, Reject, Segment};
use std::io::Read;

const LIMIT: u32 = 1000;

/// A record stream. The first octet says how many octets each read gives, the second how much
/// memory a record gets; the rest is the stream.
pub(crate) fn record(input: &[u8]) {
    let [portion, room, stream @ ..] = input else {
        return;
    };
    let mut stream = Portions {
        rest: stream,
        portion: usize::from(*portion).max(1),
    };
    let mut reader = RecordReader::new(40, LIMIT);
    let mut memory = Memory(vec![0; LIMIT as usize]);
    loop {
        match reader.step(&mut stream, &mut memory) {
            Ok(Step::Head(head)) => {
                assert!(reader.head().len() <= 40);
                assert!(head.len.is_none_or(|len| len <= LIMIT));
                if *room == 0 {
                    reader.skip();
                } else {
                    let len = u32::from(*room) * 4;
                    reader.accept(
                        &mut memory,
                        Span {
                            offset: 0,
                            len: len.min(LIMIT),
                        },
                    );
                }
            }
            Ok(Step::Record(span)) => assert!(*room > 0 && span.len <= u32::from(*room) * 4),
            Ok(Step::Skipped(_) | Step::Blocked) => {}
            Ok(Step::Ended { .. }) | Err(_) => return,
        }
    }
}

/// One RPC message, walked as everything it could be. The first octet is a procedure.
pub(crate) fn binding(input: &[u8]) {
    let [procedure, message @ ..] = input else {
        return;
    };
    let programs = [100_003, 100_005, 100_227];
    let as_told = CallHeader::parse(message).map(|header| Binding::of(&header));
    let guesses = programs.map(|number| Binding::of_procedure(number, 3, (*procedure).into()));
    let arguments = CallHeader::parse(message).map_or(0, |header| header.arguments);
    let results = ReplyHeader::parse(message).map_or(0, |header| header.results);
    for binding in guesses.into_iter().chain(as_told) {
        let items = [
            (arguments, binding.call_items(message, arguments)),
            (results, binding.reply_items(message, results)),
        ];
        for (start, item) in items
            .iter()
            .flat_map(|(start, items)| items.iter().map(move |item| (*start, item)))
        {
            let end = item.at as usize + item.len as usize;
            assert!(start < item.at as usize && end <= message.len());
            let length = &message[item.at as usize - 4..item.at as usize];
            assert_eq!(length, item.len.to_be_bytes(), "behind its own length");
        }
        for gap in binding.reply_gaps(message, results) {
            assert!(gap.at as usize <= message.len());
        }
        assert!(binding.expected(message, arguments).results.len() <= 1);
    }
}

struct Portions<'a> {
    rest: &'a [u8],
    portion: usize,
}

impl Read for Portions<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        assert!(!into.is_empty());
        let count = self.portion.min(into.len()).min(self.rest.len());
        let (now, later) = self.rest.split_at(count);
        into[..count].copy_from_slice(now);
        self.rest = later;
        Ok(count)
    }
}

/// Memory, and no fabric: a reader needs none.
struct Memory(Vec<u8>);

impl Io<'static> for Memory {
    fn reserve(&mut self, _: u32) -> Option<Span> {
        None
    }

    fn release(&mut self, _: Span) {}

    fn octets(&self, _: Span) -> &'static [u8] {
        &[]
    }

    fn fill(&mut self, span: Span, from: &[u8]) {
        self.octets_mut(span)[..from.len()].copy_from_slice(from);
    }

    fn octets_mut(&mut self, span: Span) -> &mut [u8] {
        let start = usize::try_from(span.offset).unwrap();
        &mut self.0[start..start + span.len as usize]
    }

    fn post_receive(&mut self, _: Span, _: WorkId) -> Result<(), Refused> {
        unreachable!()
    }

    fn send(&mut self, _: &[Octets<'_>], _: Option<Handle>, _: WorkId) -> Result<Posted, Refused> {
        unreachable!()
    }

    fn read(&mut self, _: Span, _: Segment, _: WorkId) -> Result<Posted, Refused> {
        unreachable!()
    }

    fn write(&mut self, _: Span, _: Segment, _: WorkId) -> Result<Posted, Refused> {
        unreachable!()
    }

    fn expose(&mut self, _: Span, _: Access) -> Result<Segment, Refused> {
        unreachable!()
    }

    fn retire(&mut self, _: Handle, _: WorkId) -> Result<Posted, Refused> {
        unreachable!()
    }

    fn retired_by_peer(&mut self, _: Handle) {}

    fn disconnect(&mut self) {}

    fn counters(&mut self) -> &mut Counters {
        unreachable!()
    }

    fn refused(&mut self, _: Reject, _: &[u8]) {}
}
