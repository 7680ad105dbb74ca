//! Copying messages, most of which are shorter than two cache lines.
//!
//! The library's `memcpy` is a call through a table whose first deed is to find out what is known
//! here, and around which the caller has to put its registers in memory. For messages of a NULL
//! call's size that costs more than the copying. So runs of 16 to 128 octets, and single words, are
//! copied in place, as two halves of a length the compiler knows, which may overlap in the middle;
//! all others are left to the library.

/// Copies `len` octets.
///
/// # Safety
///
/// `from` is good for reading `len` octets and `to` for writing them, and they do not overlap.
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    match len {
        // First what headers and short messages are.
        33..=64 => {
            // SAFETY: the caller's promise, and the length goes with the half.
            unsafe { halves::<32>(from, to, len) }
        }
        16..=32 => {
            // SAFETY: as above.
            unsafe { halves::<16>(from, to, len) }
        }
        4..=8 => {
            // SAFETY: as above.
            unsafe { halves::<4>(from, to, len) }
        }
        65..=128 => {
            // SAFETY: as above.
            unsafe { halves::<64>(from, to, len) }
        }
        _ => {
            // SAFETY: the caller's promise.
            unsafe { long(from, to, len) }
        }
    }
}

/// Copies the first and the last `HALF` octets of `len`, which are all of them.
///
/// # Safety
///
/// As [`copy`], and `len` is from `HALF` to twice that.
#[inline(always)]
unsafe fn halves<const HALF: usize>(from: *const u8, to: *mut u8, len: usize) {
    let last = len - HALF;
    // SAFETY: the first half is inside both.
    unsafe { copy_block::<HALF>(from, to) };
    // SAFETY: `last` is below `len`.
    let from = unsafe { from.add(last) };
    // SAFETY: as above.
    let to = unsafe { to.add(last) };
    // SAFETY: the last half is inside both.
    unsafe { copy_block::<HALF>(from, to) };
}

/// Copies `N` octets, a number the compiler knows.
///
/// # Safety
///
/// As [`copy`].
#[inline(always)]
unsafe fn copy_block<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise; blocks of octets have no alignment.
    unsafe {
        to.cast::<[u8; N]>()
            .copy_from_nonoverlapping(from.cast(), 1)
    };
}

/// What is longer, or shorter than a word.
///
/// # Safety
///
/// As [`copy`].
#[inline(never)]
unsafe fn long(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { to.copy_from_nonoverlapping(from, len) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_and_nothing_beside_it() {
        let source: Vec<u8> = (1..=200).collect();
        for len in 0..source.len() {
            let mut copied = [0; 202];
            // SAFETY: both have as many octets, and are apart.
            unsafe { copy(source.as_ptr(), copied[1..].as_mut_ptr(), len) };
            assert_eq!(copied[0], 0);
            assert_eq!(copied[1..=len], source[..len]);
            assert!(copied[len + 1..].iter().all(|&octet| octet == 0), "{len}");
        }
    }
}
