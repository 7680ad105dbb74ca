//! An RPC message as the engine takes it: in parts, its eligible items apart from the rest.

use crate::binding::Items;
use arrayvec::ArrayVec;
use rpcrdma_engine::{MAX_PARTS, Part, Span};

/// The parts of a message that lies in `message`, with `items` in it, in order and apart.
#[must_use]
pub(crate) fn split(message: Span, items: &Items) -> ArrayVec<Part, MAX_PARTS> {
    let mut parts = ArrayVec::new();
    let mut done = 0;
    for item in items {
        let before = message.skip(done).first(item.at.saturating_sub(done));
        parts.push(Part {
            span: before,
            item: false,
        });
        parts.push(Part {
            span: message.skip(item.at).first(item.len),
            item: true,
        });
        done = item.at.saturating_add(item.len);
    }
    let rest = message.skip(done);
    if rest.len > 0 || parts.is_empty() {
        parts.push(Part {
            span: rest,
            item: false,
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::{Item, MAX_ITEMS};

    fn span(offset: u64, len: u32) -> Span {
        Span { offset, len }
    }

    #[test]
    fn items_stand_apart_and_nothing_is_lost() {
        let items: Items = [Item { at: 8, len: 5 }, Item { at: 20, len: 80 }]
            .into_iter()
            .collect();
        let parts = split(span(1000, 100), &items);
        let plain = |span| Part { span, item: false };
        let item = |span| Part { span, item: true };
        assert_eq!(
            parts.as_slice(),
            [
                plain(span(1000, 8)),
                item(span(1008, 5)),
                plain(span(1013, 7)),
                item(span(1020, 80)),
            ]
        );
        assert_eq!(
            split(span(7, 9), &Items::new()).as_slice(),
            [plain(span(7, 9))]
        );
    }

    #[test]
    fn the_most_items_still_fit() {
        let items: Items = (1_u32..)
            .map(|at| Item { at: 8 * at, len: 4 })
            .take(MAX_ITEMS)
            .collect();
        let parts = split(span(0, 100), &items);
        assert_eq!(parts.len(), 2 * MAX_ITEMS + 1);
        assert!(parts.len() < MAX_PARTS);
    }
}
