//! TCP connections to backends, made for fronts that ask for them.

use super::Supervisor;
use super::seated::Owner;
use crate::backend::{Connected, Failure, Ticket, Wanted};
use crate::discover::BackendPlace;
use crate::status::Backend;
use rpcrdma_config::plan::{BackendAddress, SourcePort};
use rpcrdma_fabric::connect::Fabric;
use rpcrdma_lcore::{ConnectionNumber, SeatOrder};
use rpcrdma_upper::front::{BackendId, FrontNotice, FrontOrder};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Instant;
use tracing::{debug, info};

/// Addresses of 127.0.0.0/8, but for the first and the last.
const LOOPBACKS: u32 = 0x00ff_fffe;

/// Why a backend is being connected to.
#[derive(Clone, Copy, Debug)]
enum Errand {
    /// A front's connection wants the socket.
    Serve(ConnectionNumber, BackendId),
    /// To see whether it can be reached.
    Look(BackendPlace),
}

/// Backends being connected to, and why.
#[derive(Default)]
pub(super) struct Errands {
    next: u32,
    under_way: HashMap<Ticket, Errand>,
    /// Loopback addresses that connections to the embedded server have come from.
    loopbacks: u32,
}

impl Errands {
    /// A loopback address that has not been used for long. The embedded server takes a call from
    /// an address, port and xid that it saw within the last minute for a retransmission, and
    /// never answers it; ports come round sooner than that.
    fn unused_loopback(&mut self) -> Ipv4Addr {
        self.loopbacks = self.loopbacks % LOOPBACKS + 1;
        Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 0, 0, 0)) | self.loopbacks)
    }
}

impl<F: Fabric> Supervisor<F> {
    /// A front wants a backend's socket.
    pub(super) fn backend_wanted(
        &mut self,
        number: ConnectionNumber,
        notice: FrontNotice,
        now: Instant,
    ) {
        let FrontNotice::BackendWanted(backend) = notice;
        let Some(wanted) = self.wanted_for(number, backend) else {
            return self.deliver(number, backend, None);
        };
        if !self.set_out(Errand::Serve(number, backend), wanted, now) {
            let line = format_args!(
                "connection {}: too many backends are being connected to",
                number.0
            );
            self.complaints.say(line);
            self.deliver(number, backend, None);
        }
    }

    /// False when there are too many errands already.
    fn set_out(&mut self, errand: Errand, wanted: Wanted, now: Instant) -> bool {
        let ticket = Ticket(self.errands.next);
        self.errands.next = self.errands.next.wrapping_add(1);
        let begun = self.connector.start(ticket, wanted, now).is_ok();
        if begun {
            self.errands.under_way.insert(ticket, errand);
        }
        begun
    }

    /// What to connect to for a front's connection.
    fn wanted_for(&mut self, number: ConnectionNumber, BackendId(id): BackendId) -> Option<Wanted> {
        let seated = self.sessions.get(number)?;
        let Owner::Front(front) = seated.owner else {
            return None;
        };
        // A peer that is not known by name must not come from the port of another, where the
        // server keeps that one's replies; no more must anybody who calls the embedded server,
        // which does not keep them.
        let known = seated.is_known.then(|| seated.party.clone());
        let place = BackendPlace { front, backend: id };
        let wanted = self.wanted(place)?;
        Some(Wanted {
            remember: known.filter(|_| wanted.from.is_none()),
            ..wanted
        })
    }

    /// What to connect to, for nobody in particular.
    fn wanted(&mut self, BackendPlace { front, backend }: BackendPlace) -> Option<Wanted> {
        let front = self.plan.fronts.get(front)?;
        let backend = front.backends.get(usize::from(backend))?;
        let (host, port, from) = match &backend.address {
            BackendAddress::Tcp { host, port } => (host.clone(), *port, None),
            BackendAddress::Export => {
                let address = self.export.as_ref()?.address();
                let from = self.errands.unused_loopback();
                (address.ip().to_string(), address.port(), Some(from.into()))
            }
        };
        Some(Wanted {
            host,
            port,
            timeout: backend.connect_timeout,
            keepalive: backend.keepalive,
            privileged: backend.source_port == SourcePort::Privileged,
            from,
            remember: None,
        })
    }

    /// Looks for backends whose time has come.
    pub(super) fn look_for_backends(&mut self, now: Instant) {
        while let Some(place) = self.health.look(now) {
            let wanted = self.wanted(place);
            let begun = wanted.is_some_and(|it| self.set_out(Errand::Look(place), it, now));
            if !begun {
                self.health.heard(place, false, now);
            }
        }
        if self.surveyor.is_about_to_post() {
            let all = self.health.all();
            let backends = all.map(|(place, reachable)| self.backend(place, reachable));
            self.surveyor.backends_are(backends.collect());
        }
    }

    /// A backend for the document.
    fn backend(&self, place: BackendPlace, reachable: bool) -> Backend {
        let front = &self.plan.fronts[place.front];
        let backend = &front.backends[usize::from(place.backend)];
        Backend {
            front: front.name.clone(),
            address: backend.address.to_string(),
            reachable,
        }
    }

    /// Sockets that were made, or not.
    pub(super) fn take_backends(&mut self, now: Instant) {
        while let Some((ticket, result)) = self.connector.poll(now) {
            match self.errands.under_way.remove(&ticket) {
                Some(Errand::Serve(number, backend)) => {
                    if let Some(place) = self.place_of(number, backend) {
                        self.backend_is(place, result.as_ref().err(), now);
                    }
                    let connected = self.judge(number, result);
                    self.deliver(number, backend, connected);
                }
                Some(Errand::Look(place)) => self.backend_is(place, result.err().as_ref(), now),
                None => {}
            }
        }
    }

    fn place_of(&self, number: ConnectionNumber, BackendId(id): BackendId) -> Option<BackendPlace> {
        match self.sessions.get(number)?.owner {
            Owner::Front(front) => Some(BackendPlace { front, backend: id }),
            Owner::Back(_) | Owner::Service(_) => None,
        }
    }

    /// A backend was reached, or not: who asks for what it serves is answered accordingly.
    fn backend_is(&mut self, place: BackendPlace, failure: Option<&Failure>, now: Instant) {
        if !self.health.heard(place, failure.is_none(), now) {
            return;
        }
        let Backend { front, address, .. } = self.backend(place, failure.is_none());
        match failure {
            None => info!("front {front}: backend {address} can be reached"),
            Some(failure) => {
                let lost = "cannot be reached, and nobody is told of it";
                self.complaints.say(format_args!(
                    "front {front}: backend {address} {lost}: {failure}"
                ));
            }
        }
        if let Some(discovery) = &mut self.discovery {
            discovery.backend_is(place, failure.is_none());
        }
    }

    fn judge(
        &mut self,
        number: ConnectionNumber,
        result: Result<Connected, Failure>,
    ) -> Option<Connected> {
        match result {
            Ok(connected) => {
                debug!("connection {}: backend {}", number.0, connected.remote);
                Some(connected)
            }
            Err(failure) => {
                self.complaints
                    .say(format_args!("connection {}: backend: {failure}", number.0));
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
        self.errands.under_way.retain(|&ticket, errand| {
            let keep = !matches!(errand, Errand::Serve(whose, _) if *whose == number);
            if !keep {
                connector.cancel(ticket);
            }
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_come_round_after_all_others() {
        let mut errands = Errands::default();
        assert_eq!(errands.unused_loopback(), Ipv4Addr::new(127, 0, 0, 1));
        assert_eq!(errands.unused_loopback(), Ipv4Addr::new(127, 0, 0, 2));
        errands.loopbacks = LOOPBACKS - 1;
        assert_eq!(errands.unused_loopback(), Ipv4Addr::new(127, 255, 255, 254));
        assert_eq!(errands.unused_loopback(), Ipv4Addr::new(127, 0, 0, 1));
    }
}
