//! A fixed table of slots with generations: allocated once, reused for ever.

use crate::api::SlotId;

/// Begins a cache line, the generation beside what its slot needs first.
#[repr(C, align(64))]
struct Entry<T> {
    /// Odd while the slot is in use: no id ever has an even one, so that one comparison tells an
    /// id that is stale.
    generation: u16,
    value: T,
}

impl<T> Entry<T> {
    #[inline]
    fn used(&self) -> bool {
        self.generation & 1 == 1
    }

    #[inline]
    fn id(&self, index: u16) -> SlotId {
        SlotId {
            index,
            generation: self.generation,
        }
    }
}

/// Slots for one kind of RPC of one connection.
pub(crate) struct Slots<T> {
    entries: Box<[Entry<T>]>,
    free: Vec<u16>,
}

impl<T> Slots<T> {
    /// `count` free slots.
    pub(crate) fn new(count: u16, mut make: impl FnMut() -> T) -> Self {
        let entry = |_| Entry {
            generation: 0,
            value: make(),
        };
        Self {
            entries: (0..count).map(entry).collect(),
            free: (0..count).rev().collect(),
        }
    }

    /// Takes a free slot, with what its last use has left in it.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(SlotId, &mut T)> {
        let index = self.free.pop()?;
        let entry = self.entries.get_mut(usize::from(index))?;
        entry.generation = entry.generation.wrapping_add(1);
        Some((entry.id(index), &mut entry.value))
    }

    /// Frees a slot, unless the id is stale; every copy of it is from now on. What is left in it
    /// is to be taken apart.
    #[inline(always)]
    pub(crate) fn free(&mut self, id: SlotId) -> Option<&mut T> {
        let entry = self.entries.get_mut(usize::from(id.index))?;
        if entry.generation != id.generation {
            return None;
        }
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(id.index);
        Some(&mut entry.value)
    }

    /// The slot, unless the id is stale.
    #[inline]
    pub(crate) fn get(&self, id: SlotId) -> Option<&T> {
        let entry = self.entries.get(usize::from(id.index))?;
        (entry.generation == id.generation).then_some(&entry.value)
    }

    /// The slot, unless the id is stale.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: SlotId) -> Option<&mut T> {
        let entry = self.entries.get_mut(usize::from(id.index))?;
        (entry.generation == id.generation).then_some(&mut entry.value)
    }

    /// The id of the slot in use at `index`.
    #[inline]
    pub(crate) fn id_at(&self, index: u16) -> Option<SlotId> {
        let entry = self.entries.get(usize::from(index))?;
        entry.used().then(|| entry.id(index))
    }

    /// The slot in use at `index`, with its id.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: u16) -> Option<(SlotId, &mut T)> {
        let entry = self.entries.get_mut(usize::from(index))?;
        let id = entry.id(index);
        entry.used().then_some((id, &mut entry.value))
    }

    /// The ids of all slots in use, looked up as the walk goes on.
    pub(crate) fn first_used(&self, mut wanted: impl FnMut(&T) -> bool) -> Option<SlotId> {
        self.entries.iter().zip(0u16..).find_map(|(entry, index)| {
            (entry.used() && wanted(&entry.value)).then(|| entry.id(index))
        })
    }

    /// The addresses of the first slot's beginning and of the free ones: see
    /// `Connection::foresee`. False where there are none.
    #[inline(always)]
    pub(crate) fn foresee(&self, fetch: &mut impl FnMut(*const u8)) -> bool {
        let Some(first) = self.entries.first() else {
            return false;
        };
        let first = std::ptr::from_ref(first).cast::<u8>();
        fetch(first);
        fetch(first.wrapping_add(64));
        fetch(self.free.as_ptr().cast());
        true
    }

    /// How many are free.
    #[inline]
    pub(crate) fn free_count(&self) -> usize {
        self.free.len()
    }

    /// How many are in use.
    #[inline]
    pub(crate) fn used_count(&self) -> usize {
        self.entries.len().saturating_sub(self.free.len())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}
