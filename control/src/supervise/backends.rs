//! TCP connections to backends, made for fronts that ask for them.

use super::Supervisor;
use super::seated::Owner;
use crate::backend::{Connected, Failure, Ticket, Wanted};
use rpcrdma_config::plan::{BackendAddress, SourcePort};
use rpcrdma_lcore::{ConnectionNumber, SeatOrder};
use rpcrdma_upper::front::{BackendId, FrontNotice, FrontOrder};
use std::collections::HashMap;
use std::time::Instant;
use tracing::{debug, warn};

/// Backends being connected to, and for whom.
#[derive(Default)]
pub(super) struct Errands {
    next: u32,
    under_way: HashMap<Ticket, (ConnectionNumber, BackendId)>,
}

impl Supervisor {
    /// A front wants a backend's socket.
    pub(super) fn backend_wanted(
        &mut self,
        number: ConnectionNumber,
        notice: FrontNotice,
        now: Instant,
    ) {
        let FrontNotice::BackendWanted(backend) = notice;
        let Some(wanted) = self.errand(number, backend) else {
            return self.deliver(number, backend, None);
        };
        let ticket = Ticket(self.errands.next);
        self.errands.next = self.errands.next.wrapping_add(1);
        match self.connector.start(ticket, wanted, now) {
            Ok(()) => {
                self.errands.under_way.insert(ticket, (number, backend));
            }
            Err(_) => {
                warn!(
                    "connection {}: too many backends are being connected to",
                    number.0
                );
                self.deliver(number, backend, None);
            }
        }
    }

    /// What to connect to.
    fn errand(&self, number: ConnectionNumber, BackendId(id): BackendId) -> Option<Wanted> {
        let Owner::Front(front) = self.sessions.get(number)?.owner else {
            return None;
        };
        let backend = self.plan.fronts[front].backends.get(usize::from(id))?;
        let (host, port) = match &backend.address {
            BackendAddress::Tcp { host, port } => (host.clone(), *port),
            BackendAddress::Export => {
                let address = self.export.as_ref()?.address();
                (address.ip().to_string(), address.port())
            }
        };
        Some(Wanted {
            host,
            port,
            timeout: backend.connect_timeout,
            keepalive: backend.keepalive,
            privileged: backend.source_port == SourcePort::Privileged,
            // Peers in the memory fabric carry no name of their own: one client must not come
            // from another's port, where the server keeps that one's replies.
            remember: None,
        })
    }

    /// Sockets that were made, or not.
    pub(super) fn take_backends(&mut self, now: Instant) {
        while let Some((ticket, result)) = self.connector.poll(now) {
            let Some((number, backend)) = self.errands.under_way.remove(&ticket) else {
                continue;
            };
            let connected = self.judge(number, result);
            self.deliver(number, backend, connected);
        }
    }

    fn judge(
        &self,
        number: ConnectionNumber,
        result: Result<Connected, Failure>,
    ) -> Option<Connected> {
        match result {
            Ok(connected) => {
                debug!("connection {}: backend {}", number.0, connected.remote);
                Some(connected)
            }
            Err(failure) => {
                warn!("connection {}: backend: {failure}", number.0);
                None
            }
        }
    }

    fn deliver(
        &mut self,
        number: ConnectionNumber,
        backend: BackendId,
        connected: Option<Connected>,
    ) {
        let Some(seated) = self.sessions.get_mut(number) else {
            return;
        };
        if let Some(connected) = &connected {
            seated.client = Some(connected.remote.to_string());
        }
        let stream = connected.map(|connected| connected.stream);
        let order = FrontOrder::Backend { backend, stream };
        let (core, seat) = (seated.core, seated.seat);
        self.cores[core].tell(seat, SeatOrder::Upper(order));
    }

    /// Nobody waits any more for what a connection had asked for.
    pub(super) fn forget_errands(&mut self, number: ConnectionNumber) {
        let connector = &mut self.connector;
        self.errands.under_way.retain(|&ticket, (whose, _)| {
            let keep = *whose != number;
            if !keep {
                connector.cancel(ticket);
            }
            keep
        });
    }
}
