//! Memory windows of type 2: what a requester exposes where the device has them.
//!
//! A window is bound by a work request, in the send queue of the connection it is for, ahead of
//! the Send that tells the peer of it; so it costs no completion and no wait. It is ended by the
//! peer's Send With Invalidate, or by a local invalidation. Windows are made at start-up, a fixed
//! number, and used again and again: the device's part of the key stays, and the octet that is
//! ours is drawn anew each time, never the one of the last use, which a device refuses.
//!
//! ```text
//!   Free --take--> Open --retire--> Retiring --done--> Free
//!                   | '--the peer's Send--> Free
//!                   '--its queue pair ends--> Away (control destroys it, and brings another)
//! ```
//!
//! A window that is still bound when its queue pair is in error cannot be unbound by a work
//! request any more, and some devices hold the queue pair for as long as the window lives. So it
//! goes to control with the queue pair, which destroys it first, and another takes its place.

use super::directory::Directory;
use crate::port::{Place, Raw};
use rand::RngExt;
use rand::rngs::StdRng;
use rdma_core_sys as rdma;
use rpcrdma_fabric::Handle;

/// A window that nobody uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) object: Raw<rdma::ibv_mw>,
    /// Its key, as it was made.
    pub(crate) rkey: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Open(Place),
    Retiring(Place),
    /// There is no window here until control brings one.
    Away,
}

#[derive(Debug)]
struct Slot {
    window: Window,
    /// The key of the last or the present use.
    rkey: u32,
    state: State,
}

/// What the binding of a window has to say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    pub(crate) object: Raw<rdma::ibv_mw>,
    /// The region that the window is on.
    pub(crate) region: Raw<rdma::ibv_mr>,
    pub(crate) rkey: u32,
}

/// The windows of one port.
#[derive(Debug)]
pub(crate) struct Windows {
    slots: Box<[Slot]>,
    /// Slots in state `Free`, the last used last.
    free: Vec<u32>,
    /// Slots in state `Away`.
    away: Vec<u32>,
    directory: Directory,
    region: Raw<rdma::ibv_mr>,
    /// Boxed, being far larger than all else here.
    random: Box<StdRng>,
}

impl Windows {
    /// `windows`, all free, on `region`.
    pub(crate) fn new(windows: Vec<Window>, region: Raw<rdma::ibv_mr>) -> Windows {
        let count = u32::try_from(windows.len()).unwrap_or(u32::MAX);
        let mut directory = Directory::new(count);
        for (window, slot) in windows.iter().zip(0..) {
            directory.insert(window.rkey, slot);
        }
        Windows {
            slots: windows
                .into_iter()
                .map(|window| Slot {
                    window,
                    rkey: window.rkey,
                    state: State::Free,
                })
                .collect(),
            free: (0..count).rev().collect(),
            away: Vec::with_capacity(count as usize),
            directory,
            region,
            random: Box::new(rand::make_rng()),
        }
    }

    /// The same with keys drawn from a seed.
    #[cfg(test)]
    fn seeded(mut self, seed: u64) -> Windows {
        self.random = Box::new(rand::SeedableRng::seed_from_u64(seed));
        self
    }

    fn slot(&mut self, slot: u32) -> Option<&mut Slot> {
        self.slots.get_mut(slot as usize)
    }

    /// Opens a free window for a queue pair. `None` when there is none.
    #[inline]
    pub(crate) fn take(&mut self, owner: Place) -> Option<Binding> {
        let index = self.free.pop()?;
        let step = 1 + u32::from(self.random.random::<u8>() % 255);
        let region = self.region;
        let slot = self.slot(index)?;
        slot.window.object.note_key(slot.rkey);
        slot.rkey = slot.rkey & !0xff | slot.rkey.wrapping_add(step) & 0xff;
        slot.state = State::Open(owner);
        Some(Binding {
            object: slot.window.object,
            region,
            rkey: slot.rkey,
        })
    }

    /// The slot of the window that is open to the peer of `owner` by this handle.
    #[inline]
    pub(crate) fn find(&self, owner: Place, handle: Handle) -> Option<u32> {
        let index = self.directory.find(handle.0)?;
        let slot = self.slots.get(index as usize)?;
        (slot.rkey == handle.0 && slot.state == State::Open(owner)).then_some(index)
    }

    /// Its local invalidation is posted.
    #[inline]
    pub(crate) fn retire(&mut self, index: u32) {
        if let Some(slot) = self.slot(index)
            && let State::Open(owner) = slot.state
        {
            slot.state = State::Retiring(owner);
        }
    }

    /// It is not bound any more: it is free.
    #[inline]
    pub(crate) fn release(&mut self, index: u32) {
        if let Some(slot) = self.slot(index)
            && matches!(slot.state, State::Open(_) | State::Retiring(_))
        {
            slot.state = State::Free;
            self.free.push(index);
        }
    }

    /// Takes away the windows that are bound to a queue pair, which is over, and hands each over.
    /// There may be very many slots, so they are gone through once.
    pub(crate) fn take_away(&mut self, owner: Place, mut hand_over: impl FnMut(Window)) {
        let bound = [State::Open(owner), State::Retiring(owner)];
        for (slot, index) in self.slots.iter_mut().zip(0..) {
            if bound.contains(&slot.state) {
                slot.state = State::Away;
                self.directory.remove(slot.rkey);
                self.away.push(index);
                hand_over(slot.window);
            }
        }
    }

    /// Puts a new window in the place of one that went away. False when none has.
    pub(crate) fn put(&mut self, window: Window) -> bool {
        let Some(index) = self.away.pop() else {
            return false;
        };
        self.directory.insert(window.rkey, index);
        if let Some(slot) = self.slot(index) {
            *slot = Slot {
                window,
                rkey: window.rkey,
                state: State::Free,
            };
        }
        self.free.push(index);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    fn window(number: u32) -> Window {
        Window {
            object: Raw(null_mut()),
            rkey: number << 8,
        }
    }

    fn windows(count: u32) -> Windows {
        Windows::new((1..=count).map(window).collect(), Raw(null_mut())).seeded(1)
    }

    const OWNER: Place = Place::first(0);

    fn other() -> Place {
        OWNER.next()
    }

    #[test]
    fn a_key_is_never_that_of_the_last_use() {
        let mut windows = windows(1);
        let mut last = 0x100;
        for _ in 0..1000 {
            let key = windows.take(OWNER).expect("free").rkey;
            assert_ne!(key, last);
            assert_eq!(key >> 8, 1, "the device's part stays");
            let index = windows.find(OWNER, Handle(key)).expect("open");
            windows.release(index);
            last = key;
        }
    }

    #[test]
    fn a_window_is_found_by_its_own_queue_pair_and_key_alone() {
        let mut windows = windows(2);
        let key = windows.take(OWNER).expect("free").rkey;
        assert!(windows.find(OWNER, Handle(key)).is_some());
        assert_eq!(windows.find(other(), Handle(key)), None);
        assert_eq!(windows.find(OWNER, Handle(key ^ 1)), None);
        assert_eq!(windows.find(OWNER, Handle(0x7700)), None);
        let index = windows.find(OWNER, Handle(key)).expect("open");
        windows.retire(index);
        assert_eq!(windows.find(OWNER, Handle(key)), None, "once");
    }

    #[test]
    fn windows_run_out_and_come_back() {
        let mut windows = windows(3);
        let keys: Vec<u32> = (0..3)
            .map(|_| windows.take(OWNER).expect("free").rkey)
            .collect();
        assert!(windows.take(OWNER).is_none());
        let index = windows.find(OWNER, Handle(keys[1])).expect("open");
        windows.retire(index);
        assert!(windows.take(OWNER).is_none(), "not yet");
        windows.release(index);
        windows.release(index);
        assert!(windows.take(OWNER).is_some());
        assert!(windows.take(OWNER).is_none(), "free but once");
    }

    #[test]
    fn bound_windows_go_away_with_their_queue_pair_and_others_come() {
        let mut windows = windows(3);
        let mine = windows.take(OWNER).expect("free").rkey;
        let its = windows.take(other()).expect("free").rkey;
        let retiring = windows.take(OWNER).expect("free").rkey;
        let index = windows.find(OWNER, Handle(retiring)).expect("open");
        windows.retire(index);
        let mut gone = Vec::new();
        windows.take_away(OWNER, |window| gone.push(window.rkey));
        assert_eq!(gone, [mine & !0xff, retiring & !0xff]);
        assert_eq!(windows.find(OWNER, Handle(mine)), None);
        assert!(windows.find(other(), Handle(its)).is_some());
        assert!(windows.take(OWNER).is_none(), "never while bound");
        assert!(windows.put(window(77)) && windows.put(window(78)));
        assert!(!windows.put(window(79)), "none is missing");
        let key = windows.take(OWNER).expect("free").rkey;
        assert!(key >> 8 == 77 || key >> 8 == 78);
        assert!(windows.find(OWNER, Handle(key)).is_some());
    }
}
