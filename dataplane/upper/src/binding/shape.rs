//! Shapes of XDR arguments and results, as data, and the one function that walks them.
//!
//! A shape leads from the start of a procedure's arguments or results to the item in question,
//! step by step. Nothing behind that item is looked at: what follows travels as it is.

use crate::xdr::Cursor;

/// One step along a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// So many four-octet units of any value.
    Words(u32),
    /// A variable-length opaque or string of at most so many octets, with its padding.
    Opaque(u32),
    /// An XDR optional: a flag, then so many four-octet units if it is one.
    Optional(u32),
    /// A union in which arm 2 has so many four-octet units and arms 0 and 1 are empty
    /// (`set_atime` and `set_mtime`, RFC 1813 section 2.6).
    Arm2(u32),
    /// A status that has to be zero: results of any other status have another shape.
    Success,
}

/// Walks `shape` from where `cursor` stands. `None` where the octets do not have that shape.
pub(super) fn walk(cursor: &mut Cursor<'_>, shape: &[Step]) -> Option<()> {
    shape.iter().try_for_each(|&step| match step {
        Step::Words(count) => cursor.skip_words(count),
        Step::Opaque(most) => cursor.take_opaque(most).map(drop),
        Step::Optional(count) => match cursor.take_word()? {
            0 => Some(()),
            1 => cursor.skip_words(count),
            _ => None,
        },
        Step::Arm2(count) => match cursor.take_word()? {
            0 | 1 => Some(()),
            2 => cursor.skip_words(count),
            _ => None,
        },
        Step::Success => (cursor.take_word()? == 0).then_some(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(words: &[u32], shape: &[Step]) -> Option<usize> {
        let octets: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let mut cursor = Cursor::new(&octets, 0);
        walk(&mut cursor, shape).map(|()| cursor.at())
    }

    #[test]
    fn every_step_advances_by_its_own_size() {
        assert_eq!(end(&[7, 7], &[Step::Words(2)]), Some(8));
        assert_eq!(end(&[3, 0x0102_0300], &[Step::Opaque(3)]), Some(8));
        assert_eq!(end(&[0], &[Step::Optional(2)]), Some(4));
        assert_eq!(end(&[1, 8, 9], &[Step::Optional(2)]), Some(12));
        assert_eq!(end(&[1], &[Step::Arm2(2)]), Some(4));
        assert_eq!(end(&[2, 8, 9], &[Step::Arm2(2)]), Some(12));
        assert_eq!(end(&[0], &[Step::Success]), Some(4));
    }

    #[test]
    fn what_has_another_shape_is_refused() {
        assert_eq!(end(&[7], &[Step::Words(2)]), None);
        assert_eq!(end(&[4, 0], &[Step::Opaque(3)]), None);
        assert_eq!(end(&[2, 8, 9], &[Step::Optional(2)]), None);
        assert_eq!(end(&[3, 8, 9], &[Step::Arm2(2)]), None);
        assert_eq!(end(&[70], &[Step::Success]), None);
    }
}
