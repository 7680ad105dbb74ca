//! The library as lcores drive it: the layer that RDMAP's adaptation stands on.

use super::{End, Result};
use rpcrdma_sctp::{AssociationId, Event, Llp, Refused, Settings, Usrsctp};
use std::net::SocketAddr;
use std::time::Instant;

/// The protocol identifier of a DDP segment (RFC 5043 section 5.2).
const SEGMENT: u32 = 16;

/// One association of an endpoint.
pub(super) struct Layer {
    llp: Usrsctp,
    id: AssociationId,
}

impl Layer {
    /// Asks for an association.
    pub(super) fn ask(to: SocketAddr, settings: Settings) -> Result<Layer> {
        let mut llp = Usrsctp::connector(([127, 0, 0, 1], 0).into(), settings)?;
        llp.associate(to, Instant::now())?;
        Layer::risen(llp)
    }

    /// Tells of its address, and waits for an association.
    pub(super) fn serve(settings: Settings, tell: impl FnOnce(SocketAddr)) -> Result<Layer> {
        let llp = Usrsctp::listen(([127, 0, 0, 1], 0).into(), settings)?;
        tell(llp.local_address());
        Layer::risen(llp)
    }

    fn risen(mut llp: Usrsctp) -> Result<Layer> {
        let mut up = None;
        while up.is_none() {
            llp.turn(Instant::now(), &mut |event| match event {
                Event::Up { association, .. } => up = Some(Ok(association)),
                Event::Down { reason, .. } => up = Some(Err(reason.to_string())),
                _ => {}
            });
        }
        let id = up.ok_or("never")??;
        Ok(Layer { llp, id })
    }
}

impl End for Layer {
    fn send(&mut self, octets: usize) -> Result<bool> {
        match self.llp.send(self.id, 0, SEGMENT, octets, |it| it.fill(1)) {
            Ok(()) => Ok(true),
            Err(Refused::Full) => Ok(false),
            Err(other) => Err(other.into()),
        }
    }

    fn turn(&mut self) -> Result<u64> {
        let (mut came, mut over) = (0, None);
        self.llp.turn(Instant::now(), &mut |event| match event {
            Event::Message { .. } => came += 1,
            Event::Down { reason, .. } => over = Some(reason),
            _ => {}
        });
        over.map_or(Ok(came), |reason| Err(reason.to_string().into()))
    }
}
