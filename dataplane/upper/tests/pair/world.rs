//! A fabric in a test's own hands: two sides, work done the moment it is posted, every access
//! checked. All safe code: looking at octets leaks a copy of them.

use rpcrdma_engine::{Access, Counters, Io, Octets, Posted, Refused, Span, WorkError, WorkId};
use rpcrdma_wire::{Handle, Reject, Segment};
use std::collections::VecDeque;

/// What one side's lcore would reap.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Completion {
    Received {
        id: WorkId,
        message: Span,
        invalidated: Option<Handle>,
    },
    Settled {
        id: WorkId,
        result: Result<(), WorkError>,
    },
    Disconnected,
}

#[derive(Default)]
pub(crate) struct Half {
    memory: Vec<u8>,
    live: Vec<Span>,
    free: Vec<Span>,
    /// Octets that may be reserved at any one time.
    pub(crate) ceiling: Option<u64>,
    receives: VecDeque<(Span, WorkId)>,
    inbox: VecDeque<(Vec<u8>, Option<Handle>)>,
    pub(crate) completions: VecDeque<Completion>,
    exposures: Vec<(Handle, Span, Access)>,
    pub(crate) counters: Counters,
}

impl Half {
    /// Octets reserved and not released.
    pub(crate) fn in_use(&self) -> u64 {
        self.live.iter().map(|span| u64::from(span.len)).sum()
    }

    pub(crate) fn exposed(&self) -> usize {
        self.exposures.len()
    }

    fn range(span: Span) -> std::ops::Range<usize> {
        let start = usize::try_from(span.offset).unwrap();
        start..start + span.len as usize
    }

    fn reach(&self, segment: Segment, len: u32, access: Access) -> Option<Span> {
        let end = segment.offset + u64::from(len);
        let fits = |&&(handle, span, granted): &&(Handle, Span, Access)| {
            handle == segment.handle && granted == access && end <= span.len.into()
        };
        let &(_, span, _) = self.exposures.iter().find(fits)?;
        Some(span.skip(u32::try_from(segment.offset).ok()?).first(len))
    }

    fn deliver(&mut self) {
        while !self.inbox.is_empty() && !self.receives.is_empty() {
            let (octets, invalidated) = self.inbox.pop_front().unwrap();
            let (memory, id) = self.receives.pop_front().unwrap();
            let message = memory.first(u32::try_from(octets.len()).unwrap());
            assert_eq!(
                message.len as usize,
                octets.len(),
                "longer than its receive"
            );
            self.memory[Self::range(message)].copy_from_slice(&octets);
            self.completions.push_back(Completion::Received {
                id,
                message,
                invalidated,
            });
        }
    }
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) halves: [Half; 2],
    broken: bool,
    handles: u32,
}

impl World {
    pub(crate) fn desk(&mut self, side: usize) -> Desk<'_> {
        Desk { world: self, side }
    }

    /// The connection is gone, on both sides, whatever was outstanding.
    pub(crate) fn cut(&mut self) {
        if std::mem::replace(&mut self.broken, true) {
            return;
        }
        for half in &mut self.halves {
            for (_, id) in half.receives.drain(..) {
                let result = Err(WorkError::Flushed);
                half.completions
                    .push_back(Completion::Settled { id, result });
            }
            half.completions.push_back(Completion::Disconnected);
        }
    }
}

/// One side's view, for one step.
pub(crate) struct Desk<'a> {
    world: &'a mut World,
    side: usize,
}

impl Desk<'_> {
    fn near(&self) -> &Half {
        &self.world.halves[self.side]
    }

    fn near_mut(&mut self) -> &mut Half {
        &mut self.world.halves[self.side]
    }

    fn far(&mut self) -> &mut Half {
        &mut self.world.halves[1 - self.side]
    }

    fn check(&self) -> Result<(), Refused> {
        if self.world.broken {
            Err(Refused::Broken)
        } else {
            Ok(())
        }
    }

    fn refuse(&mut self, id: WorkId, error: WorkError) -> Posted {
        self.world.cut();
        self.near_mut().completions.push_back(Completion::Settled {
            id,
            result: Err(error),
        });
        Posted::Pending
    }

    fn copy(&mut self, from: (usize, Span), to: (usize, Span)) {
        let octets = self.world.halves[from.0].memory[Half::range(from.1)].to_vec();
        self.world.halves[to.0].memory[Half::range(to.1)].copy_from_slice(&octets);
    }
}

impl Io<'static> for Desk<'_> {
    fn reserve(&mut self, len: u32) -> Option<Span> {
        assert!(len > 0, "nobody needs no memory");
        let half = self.near_mut();
        if half
            .ceiling
            .is_some_and(|ceiling| half.in_use() + u64::from(len) > ceiling)
        {
            return None;
        }
        let fits = half.free.iter().position(|span| span.len == len);
        let span = fits.map(|at| half.free.swap_remove(at)).unwrap_or_else(|| {
            let offset = half.memory.len() as u64;
            half.memory.resize(half.memory.len() + len as usize, 0);
            Span { offset, len }
        });
        half.memory[Half::range(span)].fill(0xDD);
        half.live.push(span);
        Some(span)
    }

    fn release(&mut self, span: Span) {
        let half = self.near_mut();
        let reached = half
            .exposures
            .iter()
            .any(|&(_, exposed, _)| exposed.offset == span.offset);
        assert!(!reached, "released while the peer can reach it");
        let at = half.live.iter().position(|&held| held == span);
        half.live
            .swap_remove(at.expect("released what was not reserved"));
        half.memory[Half::range(span)].fill(0xDD);
        half.free.push(span);
    }

    fn octets(&self, span: Span) -> &'static [u8] {
        self.near().memory[Half::range(span)].to_vec().leak()
    }

    fn fill(&mut self, span: Span, from: &[u8]) {
        self.octets_mut(span)[..from.len()].copy_from_slice(from);
    }

    fn octets_mut(&mut self, span: Span) -> &mut [u8] {
        &mut self.near_mut().memory[Half::range(span)]
    }

    fn post_receive(&mut self, memory: Span, id: WorkId) -> Result<(), Refused> {
        self.check()?;
        let half = self.near_mut();
        half.receives.push_back((memory, id));
        half.deliver();
        Ok(())
    }

    fn send(
        &mut self,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.check()?;
        let mut octets = Vec::new();
        for &part in message {
            match part {
                Octets::Bytes(bytes) => octets.extend_from_slice(bytes),
                Octets::Span(span) => octets.extend_from_slice(self.octets(span)),
            }
        }
        if let Some(handle) = invalidate {
            let exposures = &mut self.far().exposures;
            let Some(at) = exposures.iter().position(|&(live, _, _)| live == handle) else {
                return Ok(self.refuse(id, WorkError::RemoteAccess));
            };
            exposures.swap_remove(at);
        }
        self.far().inbox.push_back((octets, invalidate));
        self.far().deliver();
        Ok(Posted::Done)
    }

    fn read(&mut self, into: Span, from: Segment, id: WorkId) -> Result<Posted, Refused> {
        self.check()?;
        let Some(source) = self.far().reach(from, from.length, Access::Read) else {
            return Ok(self.refuse(id, WorkError::RemoteAccess));
        };
        self.copy(
            (1 - self.side, source),
            (self.side, into.first(from.length)),
        );
        Ok(Posted::Done)
    }

    fn write(&mut self, from: Span, to: Segment, id: WorkId) -> Result<Posted, Refused> {
        self.check()?;
        let Some(target) = self.far().reach(to, from.len, Access::Write) else {
            return Ok(self.refuse(id, WorkError::RemoteAccess));
        };
        self.copy((self.side, from), (1 - self.side, target));
        Ok(Posted::Done)
    }

    fn expose(&mut self, memory: Span, access: Access) -> Result<Segment, Refused> {
        self.check()?;
        self.world.handles += 1;
        let handle = Handle(self.world.handles.wrapping_mul(0x9E37_79B1));
        self.near_mut().exposures.push((handle, memory, access));
        Ok(Segment {
            handle,
            length: memory.len,
            offset: 0,
        })
    }

    fn retire(&mut self, handle: Handle, _: WorkId) -> Result<Posted, Refused> {
        let exposures = &mut self.near_mut().exposures;
        let at = exposures.iter().position(|&(live, _, _)| live == handle);
        exposures.swap_remove(at.expect("retired what was not exposed"));
        Ok(Posted::Done)
    }

    fn retired_by_peer(&mut self, _: Handle) {}

    fn disconnect(&mut self) {
        self.world.cut();
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.near_mut().counters
    }

    fn refused(&mut self, reject: Reject, message: &[u8]) {
        // The offer of version two to a side that speaks version one only.
        assert_eq!(reject, Reject::UnknownVersion, "{message:x?}");
    }
}
