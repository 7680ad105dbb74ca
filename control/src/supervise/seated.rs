//! What the control thread knows of each RDMA connection.

use super::cores::Core;
use super::grants::Grant;
use super::inline::Inline;
use crate::listen::Place;
use rpcrdma_config::Plan;
use rpcrdma_config::plan::Transport;
use rpcrdma_engine::Setup;
use rpcrdma_fabric::connect::{ConnectionId, Fabric};
use rpcrdma_lcore::{ConnectionNumber, SeatId};
use rpcrdma_wire::private_data::PrivateData;
use std::collections::HashMap;
use std::time::Instant;

/// What a connection belongs to, by its place in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// RDMA in, TCP out.
    Front(usize),
    /// TCP in, RDMA out.
    Back(usize),
    /// The built-in program.
    Service(usize),
}

impl Owner {
    /// How it speaks.
    pub(super) fn transport(self, plan: &Plan) -> &Transport {
        match self {
            Owner::Front(index) => &plan.fronts[index].transport,
            Owner::Back(index) => &plan.backs[index].transport,
            Owner::Service(index) => &plan.services[index].transport,
        }
    }

    /// Its place in the plan's budget.
    pub(super) fn place(self, plan: &Plan) -> usize {
        let (fronts, backs) = (plan.fronts.len(), plan.backs.len());
        match self {
            Owner::Front(index) => index,
            Owner::Back(index) => fronts + index,
            Owner::Service(index) => fronts + backs + index,
        }
    }
}

/// A connection that is to get a seat.
#[derive(Debug)]
pub(super) struct Coming {
    pub(super) core: usize,
    pub(super) connection: ConnectionId,
    pub(super) owner: Owner,
    /// Its receives.
    pub(super) grant: Grant,
    /// The other end, in the fabric's form of address.
    pub(super) peer: String,
    /// The same, without what another connection of it would not have.
    pub(super) party: String,
    /// That name is one that lasts, and others do not have.
    pub(super) is_known: bool,
    /// The TCP end: the client of a back, the last backend of a front.
    pub(super) client: Option<String>,
    /// That client's place among the clients of its listener.
    pub(super) place: Option<Place>,
    /// What its engine was told: the plan may say something else by the time it is adopted.
    pub(super) engine: Setup,
}

/// One connection, from its adoption until its session is back.
#[derive(Debug)]
pub(super) struct Seated {
    pub(super) seat: SeatId,
    pub(super) core: usize,
    pub(super) connection: ConnectionId,
    pub(super) owner: Owner,
    pub(super) grant: Grant,
    pub(super) peer: String,
    pub(super) party: String,
    pub(super) is_known: bool,
    pub(super) client: Option<String>,
    _place: Option<Place>,
    /// What its peer is told when it is connected or accepted (RFC 8797).
    pub(super) private_data: PrivateData,
    pub(super) inline: Inline,
    /// Both sides may send.
    pub(super) stands: bool,
    /// The offer of version two must be answered by then.
    pub(super) negotiate_by: Option<Instant>,
    /// It was not, and the lcore was told so.
    pub(super) gave_up: bool,
}

impl Coming {
    pub(super) fn seated(self, seat: SeatId) -> Seated {
        Seated {
            seat,
            core: self.core,
            connection: self.connection,
            owner: self.owner,
            grant: self.grant,
            peer: self.peer,
            party: self.party,
            is_known: self.is_known,
            client: self.client,
            _place: self.place,
            private_data: self.engine.private_data(),
            inline: Inline::new(self.engine.announced_bytes),
            stands: false,
            negotiate_by: None,
            gave_up: false,
        }
    }
}

impl Seated {
    /// It is asked for from here, and does not stand yet.
    fn is_dialing(&self) -> bool {
        matches!(self.owner, Owner::Back(_)) && !self.stands
    }
}

/// All connections.
#[derive(Default)]
pub(super) struct Sessions {
    by_number: HashMap<ConnectionNumber, Seated>,
    by_connection: HashMap<ConnectionId, ConnectionNumber>,
    /// Those of backs that do not stand yet.
    dialing: usize,
    next: u64,
}

impl Sessions {
    /// The name of the next connection.
    pub(super) fn number(&mut self) -> ConnectionNumber {
        self.next += 1;
        ConnectionNumber(self.next)
    }

    pub(super) fn insert(&mut self, number: ConnectionNumber, seated: Seated) {
        self.by_connection.insert(seated.connection, number);
        self.dialing += usize::from(seated.is_dialing());
        self.by_number.insert(number, seated);
    }

    pub(super) fn remove(&mut self, number: ConnectionNumber) -> Option<Seated> {
        let seated = self.by_number.remove(&number)?;
        self.by_connection.remove(&seated.connection);
        self.dialing -= usize::from(seated.is_dialing());
        Some(seated)
    }

    /// Both sides of this one may send.
    pub(super) fn established(&mut self, connection: ConnectionId) -> Option<&mut Seated> {
        let seated = self
            .by_number
            .get_mut(self.by_connection.get(&connection)?)?;
        self.dialing -= usize::from(seated.is_dialing());
        seated.stands = true;
        Some(seated)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (ConnectionNumber, &mut Seated)> {
        let seated = self.by_number.iter_mut();
        seated.map(|(&number, seated)| (number, seated))
    }

    /// How many connections of backs are being made.
    pub(super) fn dialing(&self) -> usize {
        self.dialing
    }

    pub(super) fn get_mut(&mut self, number: ConnectionNumber) -> Option<&mut Seated> {
        self.by_number.get_mut(&number)
    }

    pub(super) fn get(&self, number: ConnectionNumber) -> Option<&Seated> {
        self.by_number.get(&number)
    }

    pub(super) fn by_connection(&mut self, connection: ConnectionId) -> Option<&mut Seated> {
        self.by_number.get_mut(self.by_connection.get(&connection)?)
    }

    /// Those whose time to negotiate is over, and the next such time.
    pub(super) fn overdue(&mut self, now: Instant) -> Vec<(usize, SeatId)> {
        let late = |seated: &&mut Seated| seated.negotiate_by.is_some_and(|by| by <= now);
        let overdue = self.by_number.values_mut().filter(late);
        overdue
            .map(|seated| {
                seated.negotiate_by = None;
                seated.gave_up = true;
                (seated.core, seated.seat)
            })
            .collect()
    }

    /// When the next one's time to negotiate is over.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let times = self.by_number.values().map(|seated| seated.negotiate_by);
        times.flatten().min()
    }

    /// Takes out those of one lcore.
    pub(super) fn take_of(&mut self, core: usize) -> Vec<(ConnectionNumber, Seated)> {
        let its = self
            .by_number
            .iter()
            .filter(|(_, seated)| seated.core == core);
        let numbers: Vec<_> = its.map(|(&number, _)| number).collect();
        let taken = numbers.into_iter();
        taken
            .filter_map(|number| Some((number, self.remove(number)?)))
            .collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// The connections of backs.
    pub(super) fn backs(&self) -> impl Iterator<Item = &Seated> {
        let seated = self.by_number.values();
        seated.filter(|seated| matches!(seated.owner, Owner::Back(_)))
    }
}

/// Why a connection gets no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSeat {
    /// No lcore polls the device that it comes by.
    NoPort,
    /// The ports of that device have no queue pair left.
    Full,
    /// Those that do are full, or too busy to be told.
    NoRoom,
}

impl NoSeat {
    /// In words.
    pub(super) fn reason(self) -> &'static str {
        match self {
            NoSeat::NoPort => "no lcore polls the device that this connection comes by",
            NoSeat::Full => "the device that this connection comes by has no queue pair left",
            NoSeat::NoRoom => "no seat is free on any lcore",
        }
    }
}

/// The lcore with the most room, of those that can have this connection and can be told now.
pub(super) fn roomiest<F: Fabric>(
    cores: &[Core<F>],
    fabric: &F,
    connection: ConnectionId,
) -> Result<usize, NoSeat> {
    let living = || {
        cores
            .iter()
            .enumerate()
            .filter(|(_, core)| core.gone.is_none())
    };
    let able = living().filter(|(_, core)| fabric.may_serve(connection, core.port));
    let rooms = able.map(|(index, core)| match core.line.has_room() {
        true => (index, core.line.free_seats()),
        false => (index, 0),
    });
    let rooms: Vec<_> = rooms.collect();
    // Of equals the first: `max_by_key` would take the last.
    let best = rooms.into_iter().rev().max_by_key(|&(_, room)| room);
    let Some((best, room)) = best else {
        let full = living().any(|(_, core)| fabric.is_full(connection, core.port));
        return Err(if full { NoSeat::Full } else { NoSeat::NoPort });
    };
    if room > 0 {
        Ok(best)
    } else {
        Err(NoSeat::NoRoom)
    }
}
