//! The way of each connection.
//!
//! Everything that happens to a connection goes through [`VerbsFabric::feed`], the one place
//! where its stage changes: what follows is by the table of [`Stage`], and so is who hears of an
//! end. What does not fit the table is late or out of turn, and changes nothing.

use super::VerbsFabric;
use crate::cm::{Happening, Identifier, Offer, Parameters, What, to_peer};
use crate::device::PairName;
use crate::endpoint::{Endpoint, Seat};
use crate::error::{Error, Fault};
use crate::inbox::Notice;
use crate::object::{Context, QueuePair};
use crate::port::Books;
use rpcrdma_fabric::connect::{ConnectionId, Event, ListenerId, PortId};
use rpcrdma_fabric::stage::{Input, Stage, Step};
use std::net::SocketAddr;
use std::sync::Arc;

/// Longest private data, octets. A request shares its 92 octets with the manager's own header of
/// 36; an answer has 196 to itself (InfiniBand's CM REQ and REP; iWARP takes more).
const ASK_MOST: usize = 56;
const ANSWER_MOST: usize = 196;

/// The id, and from `take` on the queue pair that has it.
#[derive(Debug)]
enum Body {
    Id(Identifier),
    Pair {
        pair: Arc<QueuePair>,
        seat: Arc<Seat>,
        port: PortId,
    },
    /// While it changes from the one to the other.
    Moving,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) stage: Stage,
    body: Body,
    /// Where it was asked for, if it was.
    pub(super) listener: Option<ListenerId>,
    offer: Offer,
    /// Where it leads, for one that was begun here, once its name is looked up.
    pub(super) to: Option<SocketAddr>,
    /// Times that the address or the route will be looked for again.
    pub(super) tries: u8,
}

impl Connection {
    pub(super) fn requested(id: Identifier, listener: ListenerId, offer: Offer) -> Connection {
        Connection {
            stage: Stage::Requested,
            body: Body::Id(id),
            listener: Some(listener),
            offer,
            to: None,
            tries: 0,
        }
    }

    pub(super) fn begun(id: Identifier, to: Option<SocketAddr>, tries: u8) -> Connection {
        Connection {
            stage: Stage::Resolving,
            body: Body::Id(id),
            listener: None,
            offer: Offer::default(),
            to,
            tries,
        }
    }

    pub(super) fn id(&self) -> Option<&Identifier> {
        match &self.body {
            Body::Id(id) => Some(id),
            Body::Pair { pair, .. } => Some(pair.id()),
            Body::Moving => None,
        }
    }

    pub(super) fn pair(&self) -> Option<&Arc<QueuePair>> {
        match &self.body {
            Body::Pair { pair, .. } => Some(pair),
            Body::Id(_) | Body::Moving => None,
        }
    }

    pub(super) fn port(&self) -> Option<PortId> {
        match self.body {
            Body::Pair { port, .. } => Some(port),
            Body::Id(_) | Body::Moving => None,
        }
    }

    pub(super) fn is_vacated(&self) -> bool {
        matches!(&self.body, Body::Pair { seat, .. } if seat.is_vacated())
    }

    /// Takes what the endpoint has left: this is the last to have the queue pair from now on.
    fn clear_seat(&self) {
        if let Body::Pair { seat, .. } = &self.body {
            seat.clear();
        }
    }

    /// Destroys the queue pair of one that is over, and leaves the id for later.
    pub(super) fn destroy_pair(&mut self) {
        if let Body::Pair { pair, .. } = &mut self.body
            && let Some(pair) = Arc::get_mut(pair)
        {
            pair.destroy();
        }
    }

    pub(super) fn context(&self) -> Option<Context> {
        self.id()?.context()
    }

    /// The device's link that it goes by, from 1.
    pub(super) fn link(&self) -> Option<u32> {
        self.id().map(|id| u32::from(id.link()))
    }
}

impl VerbsFabric {
    fn connection(&mut self, id: ConnectionId) -> Result<&mut Connection, Error> {
        self.connections.get_mut(&id).ok_or(Error::NoConnection(id))
    }

    /// What happens to a connection, and all that follows from it. `why` is for a person.
    pub(super) fn feed(&mut self, id: ConnectionId, input: Input, why: impl FnOnce() -> String) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let Some(step) = connection.stage.step(input) else {
            return;
        };
        let port = connection.port();
        if step.ends() {
            self.say_goodbye(id, &step);
            self.events.extend(step.parting(id, why));
            if let (Some(port), Input::Lost | Input::Reject) = (port, input) {
                self.tell_port(port, Notice::Lost(id));
            }
        }
        if step.is_last() {
            self.bury(id);
        }
    }

    /// Tells the peer, if it knows of the connection and can be reached.
    fn say_goodbye(&self, id: ConnectionId, step: &Step) {
        let Some(connection) = self.connections.get(&id).filter(|it| !self.is_down(it)) else {
            return;
        };
        if step.before.is_known_to_peer() {
            // Where the peer was not reached yet there is nothing to end.
            let _ = connection.id().map(Identifier::disconnect);
        } else if step.before == Stage::Taken && step.input != Input::Reject {
            let reason = to_peer("the connection was lost before it stood");
            let _ = connection.id().map(|id| id.reject(&reason));
        }
    }

    /// Destroys what is left of a connection.
    fn bury(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.remove(&id) {
            let port = connection.port();
            connection.clear_seat();
            self.lay_down(connection);
            if let Some(port) = port {
                self.leave_port(port);
            }
        }
    }

    /// The connections for which `which` is true.
    pub(super) fn those(&self, which: impl Fn(&Connection) -> bool) -> Vec<ConnectionId> {
        let those = self.connections.iter().filter(|(_, it)| which(it));
        let mut ids: Vec<ConnectionId> = those.map(|(id, _)| *id).collect();
        // In the order in which they were made.
        ids.sort_by_key(|id| id.0);
        ids
    }

    /// What the connection manager says of a connection.
    pub(super) fn heed(&mut self, id: ConnectionId, happening: &Happening) {
        match happening.what {
            What::AddressResolved => self.find_route(id),
            What::RouteResolved => self.note_resolved(id),
            What::AddressError | What::RouteError => self.try_again(id, happening),
            What::Established => self.note_established(id, happening),
            What::ConnectError
            | What::Unreachable
            | What::Rejected
            | What::Disconnected
            | What::DeviceRemoval => self.feed(id, Input::Lost, || happening.explain()),
            // The kernel keeps the numbers of a connection that is over from being used again,
            // whether the id is still there or not; an address that moved breaks a connection
            // only if packets get lost, and then the transport says so.
            What::TimewaitExit
            | What::AddressChange
            | What::Request
            | What::GroupJoined
            | What::GroupFailed
            | What::Other(_) => {}
        }
    }

    fn note_established(&mut self, id: ConnectionId, happening: &Happening) {
        let before = self.connections.get(&id).map(|it| it.stage);
        self.feed(id, Input::Established, String::new);
        let (Some(before), Some(connection)) = (before, self.connections.get(&id)) else {
            return;
        };
        if connection.stage != Stage::Established || before == Stage::Established {
            return;
        }
        let private_data = if before == Stage::Asked {
            self.set_timer(id);
            happening.private_data.clone()
        } else {
            Vec::new()
        };
        self.events.push_back(Event::Established {
            connection: id,
            private_data,
        });
    }

    /// The connection works with any timer; with a long one, slowly after a lost receive. So a
    /// device that refuses is left with its own.
    fn set_timer(&self, id: ConnectionId) {
        let pair = self.connections.get(&id).and_then(Connection::pair);
        let _ = pair.map(|pair| pair.set_min_rnr_timer(self.settings.min_rnr_timer));
    }

    /// Whether a connection can be taken on a port, and why not.
    pub(super) fn check_seat(&self, id: ConnectionId, port: PortId) -> Result<(), Error> {
        let connection = self.connections.get(&id).ok_or(Error::NoConnection(id))?;
        if connection.stage.next(Input::Take).is_err() {
            return Err(Error::Order("take follows Resolved or a request, once"));
        }
        let context = connection.context();
        self.check_berth(port, context)
    }

    pub(super) fn seat(&mut self, id: ConnectionId, port: PortId) -> Result<Endpoint, Error> {
        self.check_seat(id, port)?;
        let (objects, depths) = self.berth(port)?;
        let bell = Arc::clone(&self.bell);
        let connection = self.connection(id)?;
        let identifier = match std::mem::replace(&mut connection.body, Body::Moving) {
            Body::Id(identifier) => identifier,
            other => {
                connection.body = other;
                return Err(Error::Order("the connection has a queue pair already"));
            }
        };
        let pair = match QueuePair::new(identifier, &objects, depths) {
            Ok(pair) => Arc::new(pair),
            Err((identifier, fault)) => {
                connection.body = Body::Id(identifier);
                return Err(fault.into());
            }
        };
        let seat = Seat::new(bell);
        let books = Books::new(depths.send, depths.receive);
        let endpoint = Endpoint::new(id, Arc::clone(&pair), books, Arc::clone(&seat));
        connection.body = Body::Pair { pair, seat, port };
        self.join_port(port);
        self.feed(id, Input::Take, String::new);
        Ok(endpoint)
    }

    fn parameters(&mut self, id: ConnectionId) -> Result<Parameters, Error> {
        let (retry, rnr) = (self.settings.retry_count, self.settings.rnr_retry);
        let connection = self.connection(id)?;
        let (offer, asked) = (connection.offer, connection.listener.is_some());
        let context = connection.context();
        let limits = context.and_then(|context| self.limits_of(context));
        let most = self.settings.most(&limits.ok_or(Error::NoConnection(id))?);
        Ok(if asked {
            most.to_answer(offer, retry, rnr)
        } else {
            most.to_ask(retry, rnr)
        })
    }

    /// Carries out the step from one stage to the next, if it is the time for it.
    fn step(
        &mut self,
        id: ConnectionId,
        input: Input,
        otherwise: &'static str,
        act: impl FnOnce(&Identifier, &Parameters) -> Result<(), Fault>,
    ) -> Result<(), Error> {
        let connection = self.connection(id)?;
        if connection.stage.next(input).is_err() {
            return Err(Error::Order(otherwise));
        }
        let parameters = self.parameters(id)?;
        let connection = self.connections.get(&id).ok_or(Error::NoConnection(id))?;
        if self.is_down(connection) {
            return Err(Error::LinkDown);
        }
        let identifier = connection.id().ok_or(Error::NoConnection(id))?;
        act(identifier, &parameters)?;
        self.feed(id, input, String::new);
        Ok(())
    }

    pub(super) fn ask(&mut self, id: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        check(private_data, ASK_MOST)?;
        let asked = self.step(
            id,
            Input::Connect,
            "connect follows take, once",
            |id, with| id.connect(with, private_data),
        );
        match asked {
            // Some transports know at once what others hear later.
            Err(Error::Fault(fault)) if fault.is_of_peer() => {
                self.feed(id, Input::Lost, || format!("rejected: {fault}"));
                Ok(())
            }
            asked => asked,
        }
    }

    pub(super) fn say_yes(&mut self, id: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        check(private_data, ANSWER_MOST)?;
        self.step(
            id,
            Input::Accept,
            "accept follows take, once",
            |id, with| id.accept(with, private_data),
        )?;
        self.set_timer(id);
        Ok(())
    }

    pub(super) fn say_no(&mut self, id: ConnectionId, reason: &str) -> Result<(), Error> {
        let connection = self.connection(id)?;
        if connection.stage.next(Input::Reject).is_err() {
            return Err(Error::Order("reject answers a request"));
        }
        let connection = self.connections.get(&id).filter(|it| !self.is_down(it));
        if let Some(identifier) = connection.and_then(Connection::id) {
            // Where it fails the peer has gone.
            let _ = identifier.reject(&to_peer(reason));
        }
        self.feed(id, Input::Reject, String::new);
        Ok(())
    }

    pub(super) fn forget(&mut self, id: ConnectionId) {
        self.feed(id, Input::Abandon, String::new);
        let of_it =
            |event: &Event| matches!(event, Event::Resolved { connection } if *connection == id);
        if !self.connections.contains_key(&id) {
            self.events.retain(|event| !of_it(event));
        }
    }

    /// A queue pair, by the address of the device's, has failed.
    pub(super) fn lose_pair(&mut self, name: PairName) {
        for id in self.by_pair(name) {
            self.feed(id, Input::Lost, || "its queue pair has failed".to_owned());
        }
    }

    /// A message came to a queue pair before the connection stood: it does.
    pub(super) fn note_reached(&mut self, name: PairName) {
        for id in self.by_pair(name) {
            let connection = self.connections.get(&id);
            let identifier = connection.and_then(Connection::id);
            // Where it fails, the connection stands already.
            let _ = identifier.map(Identifier::note_established);
        }
    }

    fn by_pair(&self, name: PairName) -> Vec<ConnectionId> {
        self.those(|it| it.pair().is_some_and(|pair| pair.name() == name))
    }
}

fn check(private_data: &[u8], most: usize) -> Result<(), Error> {
    let octets = private_data.len();
    if octets > most {
        return Err(Error::PrivateData { octets, most });
    }
    Ok(())
}
