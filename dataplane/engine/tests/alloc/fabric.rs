//! Two ends in one place, where all work is done before the call that posts it returns. Nothing
//! is checked here, and nothing allocated: what is lent of the arena is a copy, made in a bump
//! arena that is large enough from the start.

use arrayvec::ArrayVec;
use bumpalo::Bump;
use rpcrdma_engine::{Access, Counters, Io, Octets, Posted, Refused, Span, WorkId};
use rpcrdma_wire::{Handle, Reject, Segment};

/// Octets of each block of an arena.
pub(crate) const SPANS: u32 = 16 << 10;
const BLOCKS: usize = 128;
const HANDLES: usize = 64;

type Arrival = (WorkId, u32, Option<Handle>);

struct End {
    memory: Vec<u8>,
    free: ArrayVec<u64, BLOCKS>,
    exposed: [Option<Span>; HANDLES],
    receives: ArrayVec<(WorkId, Span), BLOCKS>,
    arrived: ArrayVec<Arrival, BLOCKS>,
}

/// Both ends.
pub(crate) struct Fabric<'m> {
    snapshots: &'m Bump,
    ends: [End; 2],
    /// Of each end.
    pub(crate) counters: [Counters; 2],
}

impl<'m> Fabric<'m> {
    pub(crate) fn new(snapshots: &'m Bump) -> Fabric<'m> {
        let end = || End {
            memory: vec![0; BLOCKS * SPANS as usize],
            free: (0..BLOCKS as u64)
                .map(|block| block * u64::from(SPANS))
                .collect(),
            exposed: [None; HANDLES],
            receives: ArrayVec::new(),
            arrived: ArrayVec::new(),
        };
        Fabric {
            snapshots,
            ends: [end(), end()],
            counters: [Counters::default(), Counters::default()],
        }
    }

    /// The next receive that completed.
    pub(crate) fn arrived(&mut self, end: usize) -> Option<Arrival> {
        self.ends[end].arrived.pop_at(0)
    }

    pub(crate) fn desk(&mut self, end: usize) -> Desk<'_, 'm> {
        Desk { fabric: self, end }
    }
}

/// One end.
pub(crate) struct Desk<'a, 'm> {
    fabric: &'a mut Fabric<'m>,
    end: usize,
}

fn range(span: Span) -> std::ops::Range<usize> {
    let start = usize::try_from(span.offset).expect("an arena");
    start..start + span.len as usize
}

impl Desk<'_, '_> {
    fn own(&mut self) -> &mut End {
        &mut self.fabric.ends[self.end]
    }

    /// This end and its peer.
    fn both(&mut self) -> (&mut End, &mut End) {
        let [client, server] = &mut self.fabric.ends;
        match self.end {
            0 => (client, server),
            _ => (server, client),
        }
    }
}

impl End {
    fn reach(&self, segment: Segment) -> Span {
        let span = self.exposed[segment.handle.0 as usize - 1].expect("in force");
        let from = u32::try_from(segment.offset).expect("zero-based");
        span.skip(from).first(segment.length)
    }
}

impl<'m> Io<'m> for Desk<'_, 'm> {
    fn reserve(&mut self, len: u32) -> Option<Span> {
        assert!(len <= SPANS);
        let offset = self.own().free.pop()?;
        Some(Span { offset, len })
    }

    fn release(&mut self, span: Span) {
        self.own().free.push(span.offset);
    }

    fn octets(&self, span: Span) -> &'m [u8] {
        let memory = &self.fabric.ends[self.end].memory;
        self.fabric.snapshots.alloc_slice_copy(&memory[range(span)])
    }

    fn fill(&mut self, span: Span, from: &[u8]) {
        self.own().memory[range(span)][..from.len()].copy_from_slice(from);
    }

    fn octets_mut(&mut self, span: Span) -> &mut [u8] {
        &mut self.own().memory[range(span)]
    }

    fn post_receive(&mut self, memory: Span, id: WorkId) -> Result<(), Refused> {
        self.own().receives.push((id, memory));
        Ok(())
    }

    fn send(
        &mut self,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        _: WorkId,
    ) -> Result<Posted, Refused> {
        let (own, peer) = self.both();
        let (id, span) = peer.receives.pop_at(0).expect("a receive");
        let mut len = 0;
        for piece in message {
            let octets = match piece {
                Octets::Bytes(octets) => octets,
                Octets::Span(span) => &own.memory[range(*span)],
            };
            peer.memory[range(span)][len..len + octets.len()].copy_from_slice(octets);
            len += octets.len();
        }
        if let Some(Handle(handle)) = invalidate {
            peer.exposed[handle as usize - 1] = None;
        }
        peer.arrived
            .push((id, u32::try_from(len).expect("short"), invalidate));
        Ok(Posted::Done)
    }

    fn read(&mut self, into: Span, from: Segment, _: WorkId) -> Result<Posted, Refused> {
        let (own, peer) = self.both();
        let from = peer.reach(from);
        own.memory[range(into.first(from.len))].copy_from_slice(&peer.memory[range(from)]);
        Ok(Posted::Done)
    }

    fn write(&mut self, from: Span, to: Segment, _: WorkId) -> Result<Posted, Refused> {
        let (own, peer) = self.both();
        let to = peer.reach(to);
        peer.memory[range(to)].copy_from_slice(&own.memory[range(from)]);
        Ok(Posted::Done)
    }

    fn expose(&mut self, memory: Span, _: Access) -> Result<Segment, Refused> {
        let exposed = &mut self.own().exposed;
        let place = exposed
            .iter()
            .position(Option::is_none)
            .ok_or(Refused::Busy)?;
        exposed[place] = Some(memory);
        Ok(Segment {
            handle: Handle(u32::try_from(place).expect("few") + 1),
            length: memory.len,
            offset: 0,
        })
    }

    fn retire(&mut self, handle: Handle, _: WorkId) -> Result<Posted, Refused> {
        let exposed = self.own().exposed[handle.0 as usize - 1].take();
        assert!(exposed.is_some(), "retired twice");
        Ok(Posted::Done)
    }

    fn retired_by_peer(&mut self, _: Handle) {}

    fn disconnect(&mut self) {
        panic!("nobody disconnects here");
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.fabric.counters[self.end]
    }

    fn refused(&mut self, reject: Reject, _: &[u8]) {
        panic!("refused: {reject:?}");
    }
}
