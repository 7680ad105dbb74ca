//! A global allocator that counts, for each thread by itself: the test's runner has a thread of
//! its own, which allocates when it likes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Of a constant and without a destructor: reaching it allocates nothing.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counted: to be the `#[global_allocator]` of a test.
#[derive(Debug)]
pub struct Counting;

// SAFETY: all it does with memory is what the system's allocator does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of this very method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block is one of `alloc`'s, so the system's.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Allocations of this thread so far; none where [`Counting`] is not the global allocator.
#[must_use]
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}
