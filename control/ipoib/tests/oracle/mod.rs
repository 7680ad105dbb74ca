//! A second opinion: slow, allocating decoders that were written from the standards and share no code with the crate.
//!
//! They read fields by position from a string of bits, and describe what they found in words. A refusal is the word
//! `reject` and its name.

pub(crate) mod mad;
pub(crate) mod packet;

/// Octets read as numbers of any width, from the first bit on.
pub(crate) struct Bits<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    pub(crate) fn new(octets: &'a [u8]) -> Self {
        Bits { octets, at: 0 }
    }

    /// The next `width` bits; `None` when fewer are left.
    pub(crate) fn take(&mut self, width: usize) -> Option<u128> {
        let mut value = 0;
        for at in self.at..self.at + width {
            let octet = self.octets.get(at / 8)?;
            value = value << 1 | u128::from(octet >> (7 - at % 8) & 1);
        }
        self.at += width;
        Some(value)
    }
}

/// A decoder's refusal.
pub(crate) type Refusal = &'static str;

/// What a decoder found, in words.
pub(crate) fn said(found: Result<String, Refusal>) -> String {
    found.unwrap_or_else(|name| format!("reject {name}"))
}

/// A dash for nothing.
pub(crate) fn or_nothing(text: String) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}
