//! How an arena's memory is had, from the system or from somebody who keeps it, and given back.

use crate::tract::Keeper;
use std::io;
use std::ptr::NonNull;

/// Whether an arena asks for huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hugepages {
    /// Reserved huge pages if there are any, else transparent ones, else ordinary pages.
    Try,
    /// Reserved huge pages or an error.
    Require,
    /// Ordinary pages.
    Off,
}

/// What an arena got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Reserved huge pages.
    Reserved,
    /// Ordinary pages that the system was asked to join to huge ones as they are touched.
    Transparent,
    /// Ordinary pages.
    Ordinary,
}

impl std::fmt::Display for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Pages::Reserved => "reserved huge pages",
            Pages::Transparent => "transparent huge pages",
            Pages::Ordinary => "ordinary pages",
        })
    }
}

/// Memory of this process alone, zeroed.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// First octet; with transparent huge pages at a multiple of 2 MiB.
    start: NonNull<u8>,
    len: usize,
    pages: Pages,
    _source: Source,
}

/// Where the memory is from. It goes back there when this is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "held, not looked at: what counts is its drop")]
enum Source {
    System(system::Region),
    Keeper(Keeper),
}

// SAFETY: a mapping is memory and nothing else; it has no thread affinity, and a keeper is `Send`.
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` gives out addresses only; who may follow them is the arena's contract.
unsafe impl Sync for Mapping {}

const HUGE: usize = 2 << 20;

/// The size of an arena as a length, where it has an allowed one.
pub(crate) fn length(bytes: u64) -> io::Result<usize> {
    // 2^40 keeps offsets in 256-octet blocks within 32 bits, which the pool relies on.
    if bytes == 0 || bytes > 1 << 40 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "an arena has 1 to 2^40 octets",
        ));
    }
    usize::try_from(bytes).map_err(io::Error::other)
}

impl Mapping {
    pub(crate) fn new(bytes: u64, hugepages: Hugepages) -> io::Result<Mapping> {
        let bytes = length(bytes)?;
        match hugepages {
            Hugepages::Off => Self::ordinary(bytes),
            Hugepages::Require => Self::reserved(bytes),
            Hugepages::Try if bytes < HUGE => Self::ordinary(bytes),
            Hugepages::Try => Self::reserved(bytes).or_else(|_| Self::transparent(bytes)),
        }
    }

    /// Memory that is somebody else's, who keeps it until this is dropped.
    ///
    /// # Safety
    ///
    /// As [`Tract::new`](crate::tract::Tract::new) for these octets; no two mappings share one.
    pub(crate) unsafe fn kept(
        start: NonNull<u8>,
        len: usize,
        pages: Pages,
        keeper: Keeper,
    ) -> Mapping {
        Mapping {
            start,
            len,
            pages,
            _source: Source::Keeper(keeper),
        }
    }

    fn ordinary(bytes: usize) -> io::Result<Mapping> {
        let len = bytes.next_multiple_of(4096);
        let system = system::Region::map(len, false)?;
        Ok(Mapping {
            start: system.start(),
            len,
            pages: Pages::Ordinary,
            _source: Source::System(system),
        })
    }

    fn reserved(bytes: usize) -> io::Result<Mapping> {
        let len = bytes.next_multiple_of(HUGE);
        let system = system::Region::map(len, true)?;
        Ok(Mapping {
            start: system.start(),
            len,
            pages: Pages::Reserved,
            _source: Source::System(system),
        })
    }

    /// Maps one huge page more than needed and uses it from the first multiple of 2 MiB on:
    /// the system joins only aligned runs.
    fn transparent(bytes: usize) -> io::Result<Mapping> {
        let len = bytes.next_multiple_of(HUGE);
        let system = system::Region::map(len + HUGE, false)?;
        let skip = system.start().as_ptr().align_offset(HUGE);
        if skip >= HUGE {
            return Self::ordinary(bytes);
        }
        // SAFETY: `skip` is below 2 MiB, and the region is that much longer than `len`.
        let start = unsafe { system.start().add(skip) };
        let pages = match system.join_pages() {
            Ok(()) => Pages::Transparent,
            Err(_) => Pages::Ordinary,
        };
        Ok(Mapping {
            start,
            len,
            pages,
            _source: Source::System(system),
        })
    }

    #[inline]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn pages(&self) -> Pages {
        self.pages
    }

    pub(crate) fn prefault(&self) -> io::Result<()> {
        system::prefault(self.start, self.len)
    }
}

#[cfg(not(miri))]
mod system {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
    use std::io;
    use std::ptr::NonNull;

    /// Exactly what `mmap` gave.
    #[derive(Debug)]
    pub(super) struct Region {
        start: NonNull<u8>,
        len: usize,
    }

    impl Region {
        pub(super) fn map(len: usize, huge: bool) -> io::Result<Region> {
            let mut flags = MapFlags::PRIVATE;
            if huge {
                flags |= MapFlags::HUGETLB | MapFlags::HUGE_2MB | MapFlags::POPULATE;
            }
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: no address is asked for, so no existing mapping is touched.
            let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, protection, flags) }?;
            let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
            Ok(Region { start, len })
        }

        pub(super) fn start(&self) -> NonNull<u8> {
            self.start
        }

        pub(super) fn join_pages(&self) -> io::Result<()> {
            // SAFETY: the range is ours; this advice changes no octet of it.
            let advised =
                unsafe { madvise(self.start.as_ptr().cast(), self.len, Advice::LinuxHugepage) };
            Ok(advised?)
        }
    }

    pub(super) fn prefault(start: NonNull<u8>, len: usize) -> io::Result<()> {
        // SAFETY: the range is a mapping's; this advice changes no octet of it.
        let advised = unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxPopulateWrite) };
        Ok(advised?)
    }

    impl Drop for Region {
        fn drop(&mut self) {
            // SAFETY: mapped by us at exactly this size; the owner is going, so nobody has an
            // address in it any more.
            let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
            debug_assert!(unmapped.is_ok(), "unmapping our own region");
        }
    }
}

/// An interpreter that checks pointers knows no raw system calls: the allocator stands in.
#[cfg(miri)]
mod system {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::io;
    use std::ptr::NonNull;

    #[derive(Debug)]
    pub(super) struct Region {
        start: NonNull<u8>,
        layout: Layout,
    }

    impl Region {
        pub(super) fn map(len: usize, huge: bool) -> io::Result<Region> {
            if huge {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            let layout = Layout::from_size_align(len, 4096).map_err(io::Error::other)?;
            // SAFETY: the layout is not of size zero.
            let start = unsafe { alloc_zeroed(layout) };
            let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
            Ok(Region { start, layout })
        }

        pub(super) fn start(&self) -> NonNull<u8> {
            self.start
        }

        pub(super) fn join_pages(&self) -> io::Result<()> {
            Ok(())
        }
    }

    pub(super) fn prefault(_: NonNull<u8>, _: usize) -> io::Result<()> {
        Ok(())
    }

    impl Drop for Region {
        fn drop(&mut self) {
            // SAFETY: allocated by us with this layout.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_to_pages() {
        let mapping = Mapping::new(5000, Hugepages::Off).expect("memory");
        assert_eq!((mapping.len(), mapping.pages()), (8192, Pages::Ordinary));
    }

    #[test]
    fn no_size_and_absurd_sizes_are_refused() {
        assert!(Mapping::new(0, Hugepages::Off).is_err());
        assert!(Mapping::new(u64::MAX, Hugepages::Try).is_err());
    }

    #[test]
    fn trying_for_huge_pages_always_gives_memory() {
        let mapping = Mapping::new(3 << 20, Hugepages::Try).expect("memory of some kind");
        assert_eq!(mapping.len(), 4 << 20);
        assert_eq!(mapping.start().as_ptr().align_offset(4096), 0);
        mapping.prefault().expect("four MiB resident");
    }
}
