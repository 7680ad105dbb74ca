//! Memory windows: what a peer may reach, and how it ends.
//!
//! A port has a fixed table of windows. Each has one state word, so that "is it still open, and
//! for whom" and "is somebody inside" are one atomic question:
//!
//! ```text
//!   state:  | handle, 32 bits | phase, 2 bits | users, 30 bits |
//!
//!   Free --open(owner)--> Open --close(owner)------------> Free, once users = 0
//!                           '---invalidate(peer's Send)--> Invalidated --reclaim(owner)--> Free
//! ```
//!
//! An access adds itself to `users` first and looks at the word that it found: if handle and
//! phase are right, nobody will change what the window says before the access has left, because
//! a window is opened again only from Free with no users. The owner closes by changing the
//! phase; if somebody is inside at that moment the close is done later, when the count is zero.
//! So after a close is done no access is under way and none will begin: the owner may use the
//! memory for anything else.
//!
//! A handle is 12 to 20 bits of index and the rest random, new for each opening, from a
//! cryptographic generator. It is not a secret to rely on alone: a window also says which side
//! of which connection may use it, so a guessed handle of somebody else's is worth nothing.
//! Offsets exposed to the peer begin at a random base, so they say nothing about the arena.

use crate::padded::Padded;
use rand::RngExt;
use rand::rngs::StdRng;
use rpcrdma_fabric::{Access, Handle, Segment, Span};
use std::sync::atomic::{AtomicU64, Ordering};

const USERS: u64 = (1 << 30) - 1;
const PHASE: u64 = 3 << 30;
const FREE: u64 = 0;
const OPEN: u64 = 1 << 30;
const INVALIDATED: u64 = 2 << 30;

/// Fewest index bits of a handle; a table of fewer windows uses less of them.
const LEAST_INDEX_BITS: u32 = 12;
/// 2^20 windows leave 12 random bits.
pub(crate) const MOST_WINDOWS: u32 = 1 << 20;

/// Names one side of one connection: who may use a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u64);

impl Owner {
    /// The exposing side, 0 or 1, of connection number `link`.
    #[inline]
    pub(crate) fn new(link: u64, side: usize) -> Owner {
        Owner(link << 1 | side as u64 & 1)
    }
}

/// Why a window is not what an access or its owner takes it for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Denied;

#[derive(Debug, Default)]
struct Window {
    state: AtomicU64,
    owner: AtomicU64,
    /// Where in the arena.
    memory: AtomicU64,
    /// What the peer calls that place.
    base: AtomicU64,
    /// Length in the low half, 1 above it for write access.
    extent: AtomicU64,
}

const WRITE: u64 = 1 << 32;

/// The windows of one port, as every side sees them.
#[derive(Debug)]
pub(crate) struct Windows {
    windows: Box<[Padded<Window>]>,
    index_bits: u32,
}

/// An access under way. The window cannot be reused before it is dropped.
#[derive(Debug)]
pub(crate) struct Inside<'a> {
    window: &'a Window,
    /// The arena memory that this access may touch.
    pub(crate) memory: Span,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // Release: what was read or written is before the owner's look at the count.
        self.window.state.fetch_sub(1, Ordering::Release);
    }
}

impl Windows {
    pub(crate) fn new(count: u32) -> Windows {
        let count = count.clamp(1, MOST_WINDOWS);
        let index_bits = (u32::BITS - (count - 1).leading_zeros()).max(LEAST_INDEX_BITS);
        Windows {
            windows: (0..count).map(|_| Padded::default()).collect(),
            index_bits,
        }
    }

    #[inline]
    pub(crate) fn index(&self, handle: Handle) -> u32 {
        handle.0 & ((1 << self.index_bits) - 1)
    }

    #[inline]
    fn window(&self, handle: Handle) -> Option<&Window> {
        self.windows
            .get(self.index(handle) as usize)
            .map(|padded| &padded.0)
    }

    /// Opens window `index`, which the owner knows to be free. `Denied` when a late access is
    /// still in it (one that will find nothing): use another.
    pub(crate) fn open(
        &self,
        index: u32,
        owner: Owner,
        memory: Span,
        access: Access,
        random: &mut StdRng,
    ) -> Result<Segment, Denied> {
        let window = self.windows.get(index as usize).ok_or(Denied)?;
        if window.state.load(Ordering::Acquire) & (USERS | PHASE) != FREE {
            return Err(Denied);
        }
        let handle = new_handle(index, self.index_bits, random);
        // Below 2^63 and so far from wrapping, whatever the length.
        let base = random.random::<u64>() >> 1 & !4095;
        let write = if access == Access::Write { WRITE } else { 0 };
        window.owner.store(owner.0, Ordering::Relaxed);
        window.memory.store(memory.offset, Ordering::Relaxed);
        window.base.store(base, Ordering::Relaxed);
        window
            .extent
            .store(u64::from(memory.len) | write, Ordering::Relaxed);
        // A late access may have added itself since: keep its count.
        let opened = window
            .state
            .fetch_update(Ordering::Release, Ordering::Relaxed, |state| {
                Some(u64::from(handle.0) << 32 | OPEN | state & USERS)
            });
        debug_assert!(
            opened.is_ok_and(|before| before & PHASE == FREE),
            "only the owner opens"
        );
        Ok(Segment {
            handle,
            length: memory.len,
            offset: base,
        })
    }

    /// Begins an access by the peer of `owner` to its `target`.
    #[inline]
    pub(crate) fn enter(
        &self,
        owner: Owner,
        target: Segment,
        access: Access,
    ) -> Result<Inside<'_>, Denied> {
        let window = self.window(target.handle).ok_or(Denied)?;
        let wanted = u64::from(target.handle.0) << 32 | OPEN;
        // Look before writing: a wrong handle shall not disturb the window that has the index.
        if window.state.load(Ordering::Relaxed) & !USERS != wanted {
            return Err(Denied);
        }
        let found = window.state.fetch_add(1, Ordering::Acquire);
        let inside = Inside {
            window,
            memory: Span::default(),
        };
        if found & !USERS != wanted {
            return Err(Denied);
        }
        let memory = window.place(owner, target, access)?;
        let mut inside = inside;
        inside.memory = memory;
        Ok(inside)
    }

    /// Closes a window at its owner's word. `Ok(true)`: nobody is inside, the window is free.
    /// `Ok(false)`: ask [`Windows::vacant`] later. `Denied` when it is not open; with
    /// `anyhow`, an invalidated one is closed as well.
    #[inline]
    pub(crate) fn close(&self, owner: Owner, handle: Handle, anyhow: bool) -> Result<bool, Denied> {
        let window = self.window(handle).ok_or(Denied)?;
        if window.owner.load(Ordering::Relaxed) != owner.0 {
            return Err(Denied);
        }
        window
            .state
            .fetch_update(Ordering::Acquire, Ordering::Acquire, |state| {
                let here = (state >> 32) == u64::from(handle.0);
                let phase = state & PHASE;
                let may = phase == OPEN || (anyhow && phase == INVALIDATED);
                (here && may).then_some(state & USERS)
            })
            .map(|before| before & USERS == 0)
            .map_err(|_| Denied)
    }

    /// Whether nobody is inside a closed window any more.
    #[inline]
    pub(crate) fn vacant(&self, index: u32) -> bool {
        let window = self.windows.get(index as usize);
        window.is_none_or(|window| window.state.load(Ordering::Acquire) & (PHASE | USERS) == 0)
    }

    /// Invalidates a window at the word of the peer of `owner`.
    #[inline]
    pub(crate) fn invalidate(&self, owner: Owner, handle: Handle) -> Result<(), Denied> {
        let window = self.window(handle).ok_or(Denied)?;
        let open = u64::from(handle.0) << 32 | OPEN;
        let invalidated = u64::from(handle.0) << 32 | INVALIDATED;
        let mut state = window.state.load(Ordering::Acquire);
        loop {
            // An open window says the truth about its owner; the exchange proves that it is
            // the same opening still, because every opening has a new handle.
            if state & !USERS != open || window.owner.load(Ordering::Relaxed) != owner.0 {
                return Err(Denied);
            }
            let next = invalidated | state & USERS;
            match window.state.compare_exchange_weak(
                state,
                next,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(()),
                Err(now) => state = now,
            }
        }
    }

    /// Frees a window that the peer has invalidated. As [`Windows::close`].
    #[inline]
    pub(crate) fn reclaim(&self, owner: Owner, handle: Handle) -> Result<bool, Denied> {
        let window = self.window(handle).ok_or(Denied)?;
        if window.owner.load(Ordering::Relaxed) != owner.0 {
            return Err(Denied);
        }
        window
            .state
            .fetch_update(Ordering::Acquire, Ordering::Acquire, |state| {
                let invalidated = u64::from(handle.0) << 32 | INVALIDATED;
                (state & !USERS == invalidated).then_some(state & USERS)
            })
            .map(|before| before & USERS == 0)
            .map_err(|_| Denied)
    }

    /// Closes every window of `owner`, or of everybody, open or invalidated: those still used
    /// go to `closed` with false.
    pub(crate) fn close_all(&self, owner: Option<Owner>, mut closed: impl FnMut(u32, bool)) {
        for (index, window) in (0_u32..).zip(&self.windows) {
            let state = window.state.load(Ordering::Acquire);
            let its = Owner(window.owner.load(Ordering::Relaxed));
            if state & PHASE == FREE || owner.is_some_and(|owner| owner != its) {
                continue;
            }
            let handle = Handle((state >> 32) as u32);
            if let Ok(free) = self.close(its, handle, true) {
                closed(index, free);
            }
        }
    }
}

impl Window {
    /// Where in the arena `target` is, if this window lets the peer of `owner` do that.
    #[inline]
    fn place(&self, owner: Owner, target: Segment, access: Access) -> Result<Span, Denied> {
        let extent = self.extent.load(Ordering::Relaxed);
        let right = (extent & WRITE != 0) == (access == Access::Write);
        if self.owner.load(Ordering::Relaxed) != owner.0 || !right {
            return Err(Denied);
        }
        let len = extent & u64::from(u32::MAX);
        let base = self.base.load(Ordering::Relaxed);
        let from = target.offset.checked_sub(base).ok_or(Denied)?;
        if from > len || u64::from(target.length) > len - from {
            return Err(Denied);
        }
        let memory = self.memory.load(Ordering::Relaxed);
        Ok(Span {
            offset: memory + from,
            len: target.length,
        })
    }
}

/// Never zero: version two writes zero for "no handle".
fn new_handle(index: u32, index_bits: u32, random: &mut StdRng) -> Handle {
    loop {
        let key: u32 = random.random();
        let handle = key << index_bits | index;
        if handle != 0 {
            return Handle(handle);
        }
    }
}

#[cfg(test)]
mod tests;
