//! Exposing memory and ending it, by whichever means the port has.

use super::VerbsPort;
use super::pair::Phase;
use crate::expose::Means;
use rpcrdma_fabric::{Access, Handle, Posted, Refused, Segment, Span, WorkId};

impl VerbsPort {
    #[inline]
    pub(super) fn put_exposure(
        &mut self,
        qp: u32,
        memory: Span,
        access: Access,
    ) -> Result<Segment, Refused> {
        let pair = self.pairs.get(qp as usize);
        let Some(pair) = pair.filter(|pair| pair.phase == Phase::Open) else {
            return Err(Refused::Broken);
        };
        if !self.arena.arena.contains(memory) {
            return Err(Refused::Unsupported);
        }
        match &mut self.means {
            Means::Windows(_) => self.put_binding(qp, memory, access),
            Means::Regions(regions) => regions.expose(pair.place, memory, access, pair.messages),
            Means::Arena(handle) => Ok(Segment {
                handle: *handle,
                length: memory.len,
                offset: self.arena.element(memory).addr,
            }),
        }
    }

    #[inline]
    pub(super) fn end_exposure(
        &mut self,
        qp: u32,
        handle: Handle,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        let pair = self.pairs.get(qp as usize);
        let Some(pair) = pair.filter(|pair| pair.phase != Phase::Free) else {
            return Err(Refused::Broken);
        };
        match &mut self.means {
            Means::Windows(_) => self.put_invalidation(qp, handle, id),
            Means::Regions(regions) => regions.retire(pair.place, handle, pair.messages, id),
            Means::Arena(_) => Ok(Posted::Done),
        }
    }

    #[inline]
    pub(super) fn lose_exposure(&mut self, qp: u32, handle: Handle) {
        let Some(place) = self.pairs.get(qp as usize).map(|pair| pair.place) else {
            return;
        };
        match &mut self.means {
            Means::Windows(windows) => {
                if let Some(window) = windows.find(place, handle) {
                    windows.release(window);
                }
            }
            Means::Regions(regions) => regions.retired_by_peer(place, handle),
            Means::Arena(_) => {}
        }
    }
}
