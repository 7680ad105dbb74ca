//! Two endpoints on the loopback, turned by hand.
#![allow(dead_code, unreachable_pub, reason = "each test uses part of it")]

pub mod relay;

use rpcrdma_sctp::{AssociationId, Event, Llp, Reason, Settings, Usrsctp};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Time that nothing on a loopback takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The library, or a line that says why a test is skipped.
pub fn is_absent() -> bool {
    match Usrsctp::connector(loopback(), Settings::default()) {
        Ok(_) => false,
        Err(error) => {
            println!("SKIPPED: {error}");
            true
        }
    }
}

pub fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// What an endpoint told, kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Up {
        association: AssociationId,
        peer: SocketAddr,
        arrived: bool,
        streams: (u16, u16),
        indication: Option<u32>,
    },
    Message {
        association: AssociationId,
        stream: u16,
        ppid: u32,
        unordered: bool,
        octets: Vec<u8>,
    },
    Dry(AssociationId),
    Writable(AssociationId),
    Down(AssociationId, Reason),
}

impl From<Event<'_>> for Told {
    fn from(event: Event<'_>) -> Told {
        match event {
            Event::Up {
                association,
                peer,
                arrived,
                inbound,
                outbound,
                indication,
            } => Told::Up {
                association,
                peer,
                arrived,
                streams: (inbound, outbound),
                indication,
            },
            Event::Message {
                association,
                stream,
                ppid,
                unordered,
                octets,
            } => Told::Message {
                association,
                stream,
                ppid,
                unordered,
                octets: octets.to_vec(),
            },
            Event::Dry { association } => Told::Dry(association),
            Event::Writable { association } => Told::Writable(association),
            Event::Down {
                association,
                reason,
            } => Told::Down(association, reason),
        }
    }
}

/// An endpoint and all it told.
pub struct End<L> {
    pub llp: L,
    pub told: Vec<Told>,
}

impl<L: Llp> End<L> {
    pub fn new(llp: L) -> End<L> {
        End {
            llp,
            told: Vec::new(),
        }
    }

    pub fn turn(&mut self, now: Instant) {
        let told = &mut self.told;
        self.llp.turn(now, &mut |event| told.push(event.into()));
    }

    /// The one association that came up.
    pub fn up(&self) -> Option<AssociationId> {
        self.told.iter().find_map(|told| match told {
            Told::Up { association, .. } => Some(*association),
            _ => None,
        })
    }

    pub fn down(&self) -> Option<Reason> {
        self.told.iter().find_map(|told| match told {
            Told::Down(_, reason) => Some(*reason),
            _ => None,
        })
    }

    /// Messages so far.
    pub fn messages(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.told.iter().filter_map(|told| match told {
            Told::Message { octets, .. } => Some(octets),
            _ => None,
        })
    }

    /// What is sent without regard to room: the loop of a test that turns meanwhile.
    pub fn put(&mut self, to: AssociationId, stream: u16, octets: &[u8]) -> bool {
        self.llp
            .send(to, stream, 16, octets.len(), |place| {
                place.copy_from_slice(octets);
            })
            .is_ok()
    }
}

/// A listening end, and one that asks.
pub struct Pair<S = Usrsctp, C = Usrsctp> {
    pub server: End<S>,
    pub client: End<C>,
}

impl Pair {
    pub fn new(server: Settings, client: Settings) -> Pair {
        let listener = Usrsctp::listen(loopback(), server).expect("a listener");
        let connector = Usrsctp::connector(loopback(), client).expect("a connector");
        Pair::of(listener, connector)
    }

    pub fn associate(&mut self) -> AssociationId {
        let to = self.server.llp.local_address();
        self.associate_by(to)
    }

    /// A pair with an association between them: the client's id, and the server's.
    pub fn associated(settings: Settings) -> (Pair, AssociationId, AssociationId) {
        let mut pair = Pair::new(settings, settings);
        let to = pair.server.llp.local_address();
        let (ours, theirs) = pair.up_by(to);
        (pair, ours, theirs)
    }
}

impl<S: Llp, C: Llp> Pair<S, C> {
    pub fn of(server: S, client: C) -> Pair<S, C> {
        Pair {
            server: End::new(server),
            client: End::new(client),
        }
    }

    pub fn associate_by(&mut self, to: SocketAddr) -> AssociationId {
        self.client
            .llp
            .associate(to, Instant::now())
            .expect("an association asked for")
    }

    pub fn up_by(&mut self, to: SocketAddr) -> (AssociationId, AssociationId) {
        let ours = self.associate_by(to);
        self.until(|pair| pair.server.up().is_some() && pair.client.up().is_some());
        (ours, self.server.up().expect("up"))
    }

    /// Turns both until something is so.
    pub fn until(&mut self, mut so: impl FnMut(&mut Pair<S, C>) -> bool) {
        self.drive(|pair, _| so(pair));
    }

    /// Turns both, and does something before each turn, until that says that it is enough.
    pub fn drive(&mut self, mut step: impl FnMut(&mut Pair<S, C>, Instant) -> bool) {
        let start = Instant::now();
        loop {
            let now = Instant::now();
            if step(self, now) {
                break;
            }
            assert!(now - start < PATIENCE, "it never came to be");
            self.client.turn(now);
            self.server.turn(now);
        }
    }
}
