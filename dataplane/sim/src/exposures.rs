//! What one end has exposed to its peer, and the whole life of every handle.

use crate::chance::Chance;
use crate::memory::overlap;
use rpcrdma_engine::{Access, Span};
use rpcrdma_wire::{Handle, Segment};
use std::collections::{BTreeMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In force.
    Live,
    /// Its end is posted, and not reached yet: the peer can still use it.
    Retiring,
    /// The peer's Send invalidated it; the engine has not said that it knows.
    TakenByPeer,
}

struct Exposure {
    span: Span,
    base: u64,
    access: Access,
    state: State,
}

/// All handles one end has ever made on one connection.
#[derive(Default)]
pub struct Exposures {
    current: BTreeMap<u32, Exposure>,
    /// Handles that are over. None is ever used again.
    gone: HashSet<u32>,
}

impl Exposures {
    /// A new handle, unlike any before.
    pub fn expose(&mut self, chance: &mut Chance, span: Span, access: Access) -> Segment {
        let handle = loop {
            let handle = chance.word();
            let used = self.current.contains_key(&handle) || self.gone.contains(&handle);
            if handle != 0 && !used {
                break handle;
            }
        };
        // Zero-based windows as well as addresses: both are seen in the field.
        let base = match chance.one_in(3) {
            true => 0,
            false => u64::from(chance.word()) << 12,
        };
        let exposure = Exposure {
            span,
            base,
            access,
            state: State::Live,
        };
        self.current.insert(handle, exposure);
        Segment {
            handle: Handle(handle),
            length: span.len,
            offset: base,
        }
    }

    /// The memory that the peer reaches by `segment`, if it may.
    #[must_use]
    pub fn reach(&self, segment: Segment, access: Access) -> Option<Span> {
        let exposure = self.current.get(&segment.handle.0)?;
        let from = u32::try_from(segment.offset.checked_sub(exposure.base)?).ok()?;
        let end = u64::from(from) + u64::from(segment.length);
        (exposure.is_usable() && exposure.access == access && end <= exposure.span.len.into())
            .then(|| exposure.span.skip(from).first(segment.length))
    }

    /// The end of an exposure is posted. False when the peer has invalidated it meanwhile, which
    /// is for `hostile` peers to do, or the reason why a connection is over.
    pub fn retiring(&mut self, handle: Handle, hostile: bool) -> bool {
        let Some(exposure) = self.current.get_mut(&handle.0) else {
            panic!("{handle:?} ended twice, or never made");
        };
        match exposure.state {
            State::Live => exposure.state = State::Retiring,
            State::TakenByPeer if hostile => return false,
            state => panic!("{handle:?} retired in state {state:?}"),
        }
        true
    }

    /// The end of an exposure is reached.
    pub fn retired(&mut self, handle: Handle) {
        self.current.remove(&handle.0);
        self.gone.insert(handle.0);
    }

    /// The peer's Send With Invalidate. False when there is no such handle in force.
    pub fn invalidate(&mut self, handle: Handle) -> bool {
        match self.current.get_mut(&handle.0) {
            Some(exposure) if exposure.state == State::Live => {
                exposure.state = State::TakenByPeer;
                true
            }
            _ => false,
        }
    }

    /// The engine knows of an invalidation.
    pub fn acknowledged(&mut self, handle: Handle) {
        let state = self.current.get(&handle.0).map(|exposure| exposure.state);
        assert_eq!(state, Some(State::TakenByPeer), "{handle:?}");
        self.retired(handle);
    }

    /// The handle is in force, and its end is not posted.
    #[must_use]
    pub fn is_live(&self, handle: Handle) -> bool {
        let exposure = self.current.get(&handle.0);
        exposure.is_some_and(|exposure| exposure.state == State::Live)
    }

    /// Everything ends: for a peer that has no engine to keep count.
    pub fn forget(&mut self) {
        self.gone.extend(self.current.keys());
        self.current.clear();
    }

    /// Handles that have not ended.
    #[must_use]
    pub fn count(&self) -> usize {
        self.current.len()
    }

    /// The access that a peer has to some octet of `span`.
    #[must_use]
    pub fn access_to(&self, span: Span) -> Option<Access> {
        let mut reachable = self
            .current
            .values()
            .filter(|exposure| exposure.is_usable() && overlap(exposure.span, span));
        reachable.next().map(|exposure| exposure.access)
    }
}

impl Exposure {
    fn is_usable(&self) -> bool {
        matches!(self.state, State::Live | State::Retiring)
    }
}
