//! What the engine writes into a [`WorkId`]: kind, slot and generation, never a pointer.

use crate::api::SlotId;
use crate::work::WorkId;

/// What a piece of outstanding work is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A receive; `index` is that of its buffer.
    Receive,
    /// The Send of one of our Calls.
    Call,
    /// The Send of one of our Replies.
    Reply,
    /// A Send that belongs to no slot: errors and property messages.
    Control,
    /// An RDMA Read for a Call that came in.
    Read,
    /// An RDMA Write of one of our Replies.
    Write,
    /// The end of an exposure of one of our Calls.
    Retire,
}

const KINDS: [Kind; 7] = [
    Kind::Receive,
    Kind::Call,
    Kind::Reply,
    Kind::Control,
    Kind::Read,
    Kind::Write,
    Kind::Retire,
];

/// The id of work of `kind` for `slot`.
#[inline]
pub(crate) fn work_id(kind: Kind, slot: SlotId) -> WorkId {
    WorkId((kind as u64) << 32 | u64::from(slot.generation) << 16 | u64::from(slot.index))
}

/// The id of the receive with this index.
#[inline]
pub(crate) fn receive_id(index: u16) -> WorkId {
    WorkId(index.into())
}

/// What [`receive_id`] was given; `None` for the id of other work.
#[inline]
pub(crate) fn receive_index(id: WorkId) -> Option<u16> {
    u16::try_from(id.0).ok()
}

/// What [`work_id`] was given; `None` for a number it never made.
#[inline]
pub(crate) fn unpack(id: WorkId) -> Option<(Kind, SlotId)> {
    let kind = *KINDS.get(usize::try_from(id.0 >> 32).ok()?)?;
    let [index, generation] = [id.0 & 0xffff, id.0 >> 16 & 0xffff];
    let slot = SlotId {
        index: u16::try_from(index).ok()?,
        generation: u16::try_from(generation).ok()?,
    };
    Some((kind, slot))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_as_they_went() {
        for kind in KINDS {
            let slot = SlotId {
                index: 0xfffe,
                generation: 0x8001,
            };
            assert_eq!(unpack(work_id(kind, slot)), Some((kind, slot)));
        }
        let slot = SlotId {
            index: 0xfffe,
            generation: 0,
        };
        assert_eq!(receive_id(slot.index), work_id(Kind::Receive, slot));
        assert_eq!(receive_index(receive_id(slot.index)), Some(slot.index));
        assert_eq!(receive_index(work_id(Kind::Call, slot)), None);
        assert_eq!(unpack(WorkId(7 << 32)), None);
        assert_eq!(unpack(WorkId(u64::MAX)), None);
    }
}
