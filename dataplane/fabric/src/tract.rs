//! Memory that somebody else has and keeps, carved into arenas.
//!
//! One lcore needs one arena; a device had better register the memory of a whole socket as one
//! region. So memory from elsewhere comes as a tract, from which arenas are carved front to back:
//! no two share an octet, and each knows the whole it is of. The keeper goes with the last.

use crate::arena::{Arena, Extent};
use crate::mapping::{self, Mapping, Pages};
use std::any::Any;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

/// Arenas begin at multiples of this, which every page size of interest divides or is divided by.
const ALIGN: usize = 4096;

/// Whatever has the memory of a tract, and gives it back when the last of these is dropped.
pub type Keeper = Arc<dyn Any + Send + Sync>;

/// A run of memory to carve arenas from.
#[derive(Debug)]
pub struct Tract {
    extent: Extent,
    pages: Pages,
    /// Octets that were carved off.
    carved: u64,
    keeper: Keeper,
}

impl Tract {
    /// The `bytes` octets from `start` on, which `keeper` keeps.
    ///
    /// # Errors
    ///
    /// `start` is at no multiple of 4096, or `bytes` is none of 1 to 2^40.
    ///
    /// # Safety
    ///
    /// Until `keeper` is dropped, all these octets are mapped, initialised, readable and
    /// writable, and nobody touches one but through the arenas that are carved here.
    pub unsafe fn new(
        start: NonNull<u8>,
        bytes: u64,
        pages: Pages,
        keeper: Keeper,
    ) -> io::Result<Tract> {
        mapping::length(bytes)?;
        if !start.addr().get().is_multiple_of(ALIGN) {
            let why = "a tract begins at a multiple of 4096";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(Tract {
            extent: Extent { start, bytes },
            pages,
            carved: 0,
            keeper,
        })
    }

    /// Octets that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.extent.bytes - self.carved
    }

    /// Carves off an arena of `bytes` octets, rounded up to whole pages of 4096.
    ///
    /// # Errors
    ///
    /// Less than that is left, or `bytes` is none of 1 to 2^40.
    pub fn carve(&mut self, bytes: u64) -> io::Result<Arena> {
        let len = mapping::length(bytes)?.next_multiple_of(ALIGN);
        if len as u64 > self.left() {
            let left = self.left();
            let why = format!("{bytes} octets are not left of a tract: {left}");
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
        }
        let offset = usize::try_from(self.carved).map_err(io::Error::other)?;
        // SAFETY: the tract is at least `len` octets longer than `offset`.
        let start = unsafe { self.extent.start.add(offset) };
        self.carved += len as u64;
        let keeper = Arc::clone(&self.keeper);
        // SAFETY: the tract's own contract; these octets were not carved off before.
        let mapping = unsafe { Mapping::kept(start, len, self.pages, keeper) };
        Ok(Arena::within(self.extent, mapping))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use crate::arena::Hugepages;

    /// A tract of four pages, kept by an arena of that size.
    fn tract() -> Tract {
        let keeper = Arena::map(4 << 12, Hugepages::Off).expect("memory");
        let (start, bytes) = (keeper.start(), keeper.len());
        // SAFETY: an arena is mapped and initialised while it lives, and nobody uses this one.
        let tract = unsafe { Tract::new(start, bytes, Pages::Ordinary, Arc::new(keeper)) };
        tract.expect("four pages")
    }

    #[test]
    fn arenas_of_a_tract_share_nothing_but_the_tract() {
        let mut tract = tract();
        let first = tract.carve(5000).expect("two pages");
        let second = tract.carve(4096).expect("one page");
        assert_eq!(
            (first.len(), second.len(), tract.left()),
            (8192, 4096, 4096)
        );
        assert_eq!(first.tract(), second.tract());
        assert_eq!(first.tract().start, first.start());
        assert_eq!(
            second.start().addr().get() - first.start().addr().get(),
            8192
        );
        let all = |arena: &Arena| Span {
            offset: 0,
            len: u32::try_from(arena.len()).expect("small"),
        };
        // SAFETY: nobody else has these arenas.
        assert!(unsafe { first.fill(all(&first), &[1; 8192]) });
        // SAFETY: as above.
        let octets = unsafe { second.octets(all(&second)) };
        assert!(octets.iter().all(|&octet| octet == 0));
        second.prefault().expect("resident");
    }

    #[test]
    fn the_memory_stays_until_the_last_arena_is_gone() {
        let mut tract = tract();
        let arena = tract.carve(1).expect("a page");
        let keeper = Arc::downgrade(&tract.keeper);
        drop(tract);
        // SAFETY: nobody else has this arena.
        assert!(unsafe { arena.fill(Span { offset: 0, len: 1 }, b"x") });
        assert!(keeper.upgrade().is_some());
        drop(arena);
        assert!(keeper.upgrade().is_none());
    }

    #[test]
    fn no_more_is_carved_than_there_is() {
        let mut tract = tract();
        assert!(tract.carve(0).is_err());
        assert!(tract.carve((4 << 12) + 1).is_err());
        assert_eq!(tract.left(), 4 << 12, "nothing was taken");
        assert!(tract.carve(4 << 12).is_ok());
        assert!(tract.carve(1).is_err());
    }

    #[test]
    fn a_crooked_tract_is_refused() {
        let keeper: Keeper = Arc::new(());
        let start = NonNull::without_provenance(std::num::NonZero::new(4097).expect("not zero"));
        // SAFETY: nothing is carved from it.
        let crooked = unsafe { Tract::new(start, 4096, Pages::Ordinary, keeper) };
        assert!(crooked.is_err());
    }
}
