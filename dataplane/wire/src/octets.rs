//! Taking big-endian words off the front of a message.

/// Takes one word: its value and the octets behind it. `None` when fewer than four are left.
#[inline]
pub(crate) fn take_word(octets: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = octets.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*word), rest))
}

/// The word that starts `at` octets in. `None` when the message ends before it does.
#[inline]
pub(crate) fn peek_word(octets: &[u8], at: usize) -> Option<u32> {
    let word = octets.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*word))
}

/// Takes XDR opaque data with its length before it and its padding behind it (RFC 4506 section
/// 4.10). The padding's value is not looked at; data or padding beyond the end is `None`.
#[inline]
pub(crate) fn take_opaque(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = take_word(octets)?;
    let (data, rest) = rest.split_at_checked(length as usize)?;
    let (_, rest) = rest.split_at_checked(padding(length))?;
    Some((data, rest))
}

/// Octets of XDR padding behind `length` octets of data: 0 to 3.
#[inline]
pub(crate) const fn padding(length: u32) -> usize {
    (length.wrapping_neg() & 3) as usize
}
