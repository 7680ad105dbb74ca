//! A port's SCTP endpoints, each with its associations.

use super::carrier::{At, Carriers, Track};
use super::desk::Source;
use rpcrdma_fabric::connect::ListenerId;
use rpcrdma_iwarp::Association;

/// An SCTP endpoint and its associations.
#[derive(Debug)]
pub(super) struct Site<L> {
    pub(super) llp: L,
    pub(super) listener: Option<ListenerId>,
    pub(super) carriers: Carriers,
}

/// All of a port's, by number.
#[derive(Debug)]
pub(super) struct Sites<L>(Vec<Site<L>>);

/// One stream, and the association it is of.
pub(super) struct Reach<'a> {
    pub(super) association: &'a mut Association,
    pub(super) track: &'a mut Track,
    pub(super) source: Source,
}

impl<L> Sites<L> {
    pub(super) fn new() -> Sites<L> {
        Sites(Vec::new())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn add(&mut self, llp: L, listener: Option<ListenerId>) {
        self.0.push(Site {
            llp,
            listener,
            carriers: Carriers::default(),
        });
    }

    #[inline]
    pub(super) fn get(&mut self, number: u32) -> Option<&mut Site<L>> {
        self.0.get_mut(number as usize)
    }

    pub(super) fn iter(&mut self) -> impl Iterator<Item = (u32, &mut Site<L>)> {
        (0_u32..).zip(&mut self.0)
    }

    /// Every association that is up.
    pub(super) fn associations(&self) -> impl Iterator<Item = &Association> {
        let carriers = self.0.iter().map(|site| &site.carriers);
        carriers.flat_map(Carriers::associations)
    }

    /// Every SCTP endpoint.
    pub(super) fn llps(&self) -> impl Iterator<Item = &L> {
        self.0.iter().map(|site| &site.llp)
    }

    /// A stream, if its association is there and up.
    #[inline]
    pub(super) fn reach(&mut self, at: At) -> Option<Reach<'_>> {
        let site = self.0.get_mut(at.site as usize)?;
        let carrier = site.carriers.get(at.association)?;
        Some(Reach {
            association: carrier.association.as_mut()?,
            track: carrier.tracks.get_mut(usize::from(at.stream.0))?,
            source: Source {
                at,
                peer: carrier.peer,
                listener: site.listener,
            },
        })
    }
}
