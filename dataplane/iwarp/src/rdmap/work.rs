//! Work that this side asks for, and what goes onto the wire next.

use super::request::ReadRequest;
use crate::stag::Stag;
use rpcrdma_fabric::{Segment, Span, WorkId};

/// Spans of one message.
pub const GATHER: usize = 12;

/// A message in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gather {
    spans: [Span; GATHER],
    /// Sum of their lengths.
    len: u32,
}

impl Gather {
    /// `None` when there are more than [`GATHER`] spans, or 2^32 octets or more.
    pub(crate) fn new(message: &[Span]) -> Option<Gather> {
        let mut gather = Gather::default();
        gather
            .spans
            .get_mut(..message.len())?
            .copy_from_slice(message);
        for span in message {
            gather.len = gather.len.checked_add(span.len)?;
        }
        Some(gather)
    }

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The parts that make up `len` octets from octet `from`; both within the message.
    #[inline]
    pub(crate) fn parts(&self, from: u32, len: u32) -> impl Iterator<Item = Span> + '_ {
        let (mut skip, mut left) = (from, len);
        self.spans.iter().filter_map(move |span| {
            let part = span.skip(skip).first(left);
            skip = skip.saturating_sub(span.len);
            left = left.saturating_sub(part.len);
            (part.len > 0).then_some(part)
        })
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Send {
        message: Gather,
        invalidate: Option<Stag>,
        solicited: bool,
    },
    Write {
        from: Span,
        to: Segment,
    },
    Read {
        into: Span,
        from: Segment,
    },
}

impl Default for Operation {
    /// What stands in a slot not in use: a message of no octets.
    fn default() -> Operation {
        Operation::Send {
            message: Gather::default(),
            invalidate: None,
            solicited: false,
        }
    }
}

/// One piece of posted work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    pub(crate) id: WorkId,
    pub(crate) operation: Operation,
    /// Complete, and waiting only for what was posted before it (RFC 5040 section 5.5, rule 15).
    pub(crate) done: bool,
}

/// A Read Request that is being answered. It leaves the inbound read queue when its last segment
/// has gone.
pub(crate) type Response = ReadRequest;

/// Whose message is on the wire, or was last. They take turns, message by message: neither a
/// peer that reads all the time nor long Writes of our own hold up the other for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Work,
    Response,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(offset: u64, len: u32) -> Span {
        Span { offset, len }
    }

    #[test]
    fn parts_follow_one_another() {
        let gather = Gather::new(&[span(100, 5), span(0, 0), span(200, 7), span(300, 2)]).unwrap();
        let parts = |from, len| gather.parts(from, len).collect::<Vec<_>>();
        assert_eq!(gather.len(), 14);
        assert_eq!(parts(0, 14), [span(100, 5), span(200, 7), span(300, 2)]);
        assert_eq!(parts(3, 4), [span(103, 2), span(200, 2)]);
        assert_eq!(parts(5, 7), [span(200, 7)]);
        assert_eq!(parts(13, 1), [span(301, 1)]);
        assert_eq!(parts(14, 0), []);
    }

    #[test]
    fn a_message_is_below_4_gib_in_a_few_pieces() {
        assert!(Gather::new(&[span(0, 1); GATHER]).is_some());
        assert!(Gather::new(&[span(0, 1); GATHER + 1]).is_none());
        assert!(Gather::new(&[span(0, u32::MAX), span(0, 1)]).is_none());
        assert!(Gather::new(&[span(0, u32::MAX)]).is_some());
    }
}
