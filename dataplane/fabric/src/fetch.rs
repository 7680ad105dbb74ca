//! Fetching ahead: memory is asked for before it is wanted.
//!
//! Of a thousand connections none is in the processor's nearest caches when its turn comes, nor are
//! the translations of its addresses. Who knows whose turn comes next has both brought meanwhile.
//! It is a hint and no more: nothing is read as far as the program can tell, and on a processor
//! for which it is not written it is nothing at all.

/// Octets of a cache line.
const LINE: usize = 64;

/// Asks for the first `count` cache lines of what is at `wanted`, beginning with the one that its
/// first octet is in. They need not all be part of it.
#[inline(always)]
pub fn lines<T: ?Sized>(wanted: &T, count: usize) {
    let start = std::ptr::from_ref(wanted).cast::<u8>();
    for nth in 0..count {
        line_at(start.wrapping_add(nth * LINE));
    }
}

/// Asks for the cache line of an address, whatever is there, if anything.
#[inline(always)]
pub fn line_at(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction takes any address, and faults at none.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_wrong() {
        line_at(std::ptr::null());
        line_at(std::ptr::without_provenance(usize::MAX));
        let octet = 7_u8;
        lines(&octet, 1000);
        lines(&[0_u64; 0], 3);
        assert_eq!(octet, 7);
    }
}
