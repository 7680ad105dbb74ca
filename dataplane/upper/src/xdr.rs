//! A cursor over XDR (RFC 4506): bounds-checked, without allocation, shared by the bindings
//! and the built-in program.

/// Octets of padding after `len` octets of opaque data (RFC 4506 section 4.10).
#[must_use]
pub const fn padding(len: u32) -> u32 {
    len.wrapping_neg() & 3
}

/// Reads XDR items from the front of a message. Every `take_*` advances past what it takes,
/// or answers `None` where the message ends first.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor standing at octet `at` of a message.
    #[must_use]
    pub const fn new(octets: &'a [u8], at: usize) -> Self {
        Self { octets, at }
    }

    /// Where the cursor stands, in octets from the start of the message.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// One unsigned integer.
    pub fn take_word(&mut self) -> Option<u32> {
        let word = self.octets.get(self.at..)?.first_chunk::<4>()?;
        self.at += 4;
        Some(u32::from_be_bytes(*word))
    }

    /// Steps over `count` four-octet units.
    pub fn skip_words(&mut self, count: u32) -> Option<()> {
        self.skip(u64::from(count) * 4)
    }

    /// The body of a variable-length opaque of at most `most` octets, and steps over its padding.
    pub fn take_opaque(&mut self, most: u32) -> Option<&'a [u8]> {
        let len = self.take_word().filter(|&len| len <= most)?;
        let start = self.at;
        self.skip(u64::from(len) + u64::from(padding(len)))?;
        self.octets.get(start..start + len as usize)
    }

    fn skip(&mut self, octets: u64) -> Option<()> {
        let end = self.at.checked_add(usize::try_from(octets).ok()?)?;
        if end > self.octets.len() {
            return None;
        }
        self.at = end;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_fills_up_to_four() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(padding), [0, 3, 2, 1, 0, 3]);
        assert_eq!(padding(u32::MAX), 1);
    }

    #[test]
    fn an_opaque_is_taken_with_its_padding_or_not_at_all() {
        let octets = [0, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0, 9, 9, 9, 9];
        let mut cursor = Cursor::new(&octets, 0);
        assert_eq!(cursor.take_opaque(5), Some(&[1, 2, 3, 4, 5][..]));
        assert_eq!(cursor.at(), 12);
        assert_eq!(cursor.take_word(), Some(0x0909_0909));
        assert_eq!(cursor.take_word(), None);
        assert_eq!(
            Cursor::new(&octets, 0).take_opaque(4),
            None,
            "longer than allowed"
        );
        for end in 0..12 {
            assert_eq!(Cursor::new(&octets[..end], 0).take_opaque(9), None);
        }
    }

    #[test]
    fn lengths_near_the_top_do_not_wrap() {
        let octets = [0xFF; 8];
        assert_eq!(Cursor::new(&octets, 0).take_opaque(u32::MAX), None);
        assert_eq!(Cursor::new(&octets, 0).skip_words(u32::MAX), None);
        assert_eq!(Cursor::new(&octets, usize::MAX).take_word(), None);
        assert_eq!(Cursor::new(&octets, usize::MAX).skip_words(0), None);
    }
}
