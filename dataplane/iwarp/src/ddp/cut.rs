//! Segmentation (RFC 5041 section 5.2).

/// The next piece of a message: how many of its `left` octets go into a segment that has room for
/// `room` of them, and whether that is the last. A message of length zero is one piece.
#[inline]
#[must_use]
pub fn cut(left: u32, room: usize) -> (u32, bool) {
    match u32::try_from(room) {
        Ok(room) if room < left => (room, false),
        _ => (left, true),
    }
}

#[cfg(test)]
mod tests {
    use super::cut;

    /// The two examples of the section: 2048 octets, and segments of 1500.
    #[test]
    fn section_5_2_examples() {
        assert_eq!(cut(2048, 1500 - 18), (1482, false));
        assert_eq!(cut(2048 - 1482, 1500 - 18), (566, true));
        assert_eq!(cut(2048, 1500 - 14), (1486, false));
        assert_eq!(cut(2048 - 1486, 1500 - 14), (562, true));
    }

    #[test]
    fn section_5_2_zero_length_is_one_segment() {
        assert_eq!(cut(0, 500), (0, true));
    }

    #[test]
    fn an_exact_fit_is_the_last() {
        assert_eq!(cut(500, 500), (500, true));
        assert_eq!(cut(501, 500), (500, false));
    }
}
