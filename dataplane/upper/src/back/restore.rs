//! A Reply that came reduced, put together again: as a list of spans, nothing is moved.

use crate::binding::Binding;
use crate::xdr::padding;
use arrayvec::ArrayVec;
use rpcrdma_engine::{IncomingReply, Io, MAX_PARTS, Span};
use rpcrdma_wire::rpc::ReplyHeader;

/// A Reply as it stands on TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Restored {
    /// The runs of the message, in order.
    pub(super) spans: ArrayVec<Span, MAX_PARTS>,
    /// Results put back.
    pub(super) results: u64,
    /// Octets of them.
    pub(super) octets: u64,
}

/// Puts `reply` together. Its results are in the first octets of `results`, each of which has
/// room for its padding. `None`: what was written is not what the Reply says, so no true
/// message can be made of it.
pub(super) fn restore<'m>(
    io: &mut impl Io<'m>,
    binding: Binding,
    reply: &IncomingReply,
    results: &[Span],
) -> Option<Restored> {
    let mut restored = Restored {
        spans: ArrayVec::new(),
        results: 0,
        octets: 0,
    };
    let written = || {
        let written = reply.written.iter().zip(results);
        written.filter_map(|(len, &span)| len.filter(|&len| len > 0).map(|len| (span, len)))
    };
    if written().next().is_none() {
        restored.spans.push(reply.body);
        return Some(restored);
    }
    let octets = io.octets(reply.body);
    let header = ReplyHeader::parse(octets).filter(ReplyHeader::succeeded)?;
    let gaps = binding.reply_gaps(octets, header.results);
    if gaps.len() != written().count() {
        return None;
    }
    let mut done = 0;
    for (gap, (span, len)) in gaps.iter().zip(written()) {
        let pad = padding(len);
        if gap.len != len || u64::from(len) + u64::from(pad) > span.len.into() {
            return None;
        }
        io.fill(span.skip(len), [0; 3].get(..pad as usize)?);
        restored
            .spans
            .try_push(reply.body.skip(done).first(gap.at.checked_sub(done)?))
            .ok()?;
        restored.spans.try_push(span.first(len + pad)).ok()?;
        restored.results += 1;
        restored.octets += u64::from(len);
        done = gap.at;
    }
    let rest = reply.body.skip(done);
    if rest.len > 0 {
        restored.spans.try_push(rest).ok()?;
    }
    Some(restored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;
    use rpcrdma_engine::MAX_RESULTS;

    const DATA: &[u8] = b"seven octets, or thirteen"; // 25 octets: three of padding.

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// An accepted Reply, READ3resok without attributes up to the length of the data.
    fn reduced(len: u32) -> Vec<u8> {
        words(&[7, 1, 0, 0, 0, 0, /* READ */ 0, 0, len, 1, len])
    }

    fn read() -> Binding {
        Binding::of_procedure(100_003, 3, 6)
    }

    fn incoming(body: Span, written: Option<u32>) -> IncomingReply {
        let mut all = [None; MAX_RESULTS];
        all[0] = written;
        IncomingReply { body, written: all }
    }

    fn whole(io: &Fake, restored: &Restored) -> Vec<u8> {
        restored
            .spans
            .iter()
            .flat_map(|&span| io.octets(span))
            .copied()
            .collect()
    }

    #[test]
    fn data_goes_back_behind_its_length() {
        let mut io = Fake::new();
        let body = io.hold(&reduced(25));
        let result = io.hold(&[DATA, &[0xDD; 7]].concat());
        let restored = restore(&mut io, read(), &incoming(body, Some(25)), &[result]).unwrap();
        assert_eq!((restored.results, restored.octets), (1, 25));
        assert_eq!(
            whole(&io, &restored),
            [&reduced(25)[..], DATA, &[0; 3]].concat()
        );
    }

    #[test]
    fn what_came_inline_stays_as_it_is() {
        let mut io = Fake::new();
        let message = [&reduced(25)[..], DATA, &[0; 3]].concat();
        let body = io.hold(&message);
        let result = io.hold(&[0; 100]);
        for written in [None, Some(0)] {
            let restored = restore(&mut io, read(), &incoming(body, written), &[result]).unwrap();
            assert_eq!(
                (restored.spans.as_slice(), restored.results),
                (&[body][..], 0)
            );
        }
    }

    #[test]
    fn what_does_not_fit_together_is_not_put_together() {
        let mut io = Fake::new();
        let result = io.hold(&[0; 28]);
        let good = io.hold(&reduced(25));
        let longer = io.hold(&reduced(26));
        let failed = io.hold(&words(&[7, 1, 0, 0, 0, 0, 70, 0]));
        let denied = io.hold(&words(&[7, 1, 1, 1, 5]));
        let cut = io.hold(&reduced(25)[..40]);
        for body in [longer, failed, denied, cut] {
            assert_eq!(
                restore(&mut io, read(), &incoming(body, Some(25)), &[result]),
                None
            );
        }
        let getattr = Binding::of_procedure(100_003, 3, 1);
        for binding in [getattr, Binding::NONE] {
            assert_eq!(
                restore(&mut io, binding, &incoming(good, Some(25)), &[result]),
                None
            );
        }
        let short = result.first(27);
        assert_eq!(
            restore(&mut io, read(), &incoming(good, Some(25)), &[short]),
            None
        );
    }
}
