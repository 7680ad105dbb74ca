//! Both ends of connections through a fabric, in one thread: for the tests of what every fabric
//! promises.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::connect::{ConnectionId, Event, Fabric, PortId, PortWanted};
use rpcrdma_fabric::{Completion, Octets, Outcome, Port, QueuePair, Span, Token, WorkId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A watchdog, not a measure: software RDMA in an emulated machine is slow.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Receives of each queue pair, and their octets.
pub const RECEIVES: u32 = 8;
pub const RECEIVE_BYTES: u32 = 4096;

/// What fabrics and devices differ in.
pub struct Kind<F: Fabric> {
    /// Another fabric of the same kind.
    pub another: Box<dyn Fn() -> F>,
    /// The error that says that there is no such connection.
    pub is_unknown: fn(&F::Error) -> bool,
    /// It speaks iWARP: a message without a receive ends the connection, a Write is done when it has
    /// left.
    pub iwarp: bool,
    /// It is software RoCE.
    pub rxe: bool,
}

/// One end of a connection, adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub connection: ConnectionId,
    pub pair: QueuePair,
    pub token: Token,
}

/// A fabric with one port.
pub struct Bed<F: Fabric> {
    pub fabric: F,
    pub port: F::Port,
    pub id: PortId,
    pub ip: IpAddr,
    pub arena: Arc<Arena>,
    pub kind: Kind<F>,
    events: VecDeque<Event>,
    pub completions: Vec<Completion>,
    ends: u32,
}

pub fn wanted() -> PortWanted {
    PortWanted {
        device: None,
        processor: None,
        queue_pairs: 16,
        send_depth: 32,
        receive_depth: RECEIVES,
        windows: 16,
        message_bytes: RECEIVE_BYTES,
    }
}

impl<F: Fabric> Bed<F> {
    pub fn new(ip: IpAddr, mut fabric: F, kind: Kind<F>) -> Bed<F> {
        let arena = Arc::new(Arena::map(16 << 20, Hugepages::Off).expect("memory"));
        let (id, port) = fabric
            .open_port(Arc::clone(&arena), &wanted())
            .expect("a port");
        Bed {
            fabric,
            port,
            id,
            ip,
            arena,
            kind,
            events: VecDeque::new(),
            completions: Vec::new(),
            ends: 0,
        }
    }

    pub fn is_iwarp(&self) -> bool {
        self.kind.iwarp
    }

    pub fn is_rxe(&self) -> bool {
        self.kind.rxe
    }

    /// Memory is exposed by windows.
    pub fn has_windows(&self) -> bool {
        self.port.capabilities().receive_invalidate
    }

    /// Another fabric of the same kind.
    pub fn another(&self) -> F {
        (self.kind.another)()
    }

    /// An address of the device, with a port that the system chooses.
    pub fn anywhere(&self) -> String {
        SocketAddr::new(self.ip, 0).to_string()
    }

    /// Polls both sides.
    pub fn look(&mut self) {
        let mut reaped = [Completion {
            token: Token(0),
            id: WorkId(0),
            outcome: Outcome::Done,
        }; 16];
        self.port.ring();
        let count = self.port.reap(&mut reaped);
        self.completions.extend(&reaped[..count]);
        self.events.extend(self.fabric.poll());
    }

    /// Polls both sides, and waits a little where there is nothing.
    fn turn(&mut self) {
        let before = (self.completions.len(), self.events.len());
        self.look();
        if (self.completions.len(), self.events.len()) != before {
            return;
        }
        if self.port.arm() {
            let control = self.fabric.descriptor().expect("a descriptor");
            let mut descriptors = [
                PollFd::new(&control, PollFlags::IN),
                PollFd::from_borrowed_fd(self.port.waker(), PollFlags::IN),
            ];
            let nap = Timespec {
                tv_sec: 0,
                tv_nsec: 20_000_000,
            };
            let _ = poll(&mut descriptors, Some(&nap));
        }
    }

    /// Goes on until `done` gives something.
    pub fn until<T>(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = done(self) {
                return found;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{what} does not come; {:?} {:?} {:?}",
                self.port.counts(),
                self.events,
                self.completions
            );
            self.turn();
        }
    }

    /// The next event for which `of_interest` is true.
    pub fn event(&mut self, what: &str, of_interest: impl Fn(&Event) -> bool) -> Event {
        self.until(what, |bed| {
            let place = bed.events.iter().position(&of_interest)?;
            bed.events.remove(place)
        })
    }

    /// A request that has come.
    pub fn next_request(&mut self) -> Option<(ConnectionId, Vec<u8>)> {
        let is_request = |event: &Event| matches!(event, Event::Request { .. });
        let place = self.events.iter().position(is_request)?;
        match self.events.remove(place) {
            Some(Event::Request {
                connection,
                private_data,
                ..
            }) => Some((connection, private_data)),
            _ => None,
        }
    }

    /// Takes this very event, if it has come.
    pub fn take_event(&mut self, wanted: &Event) -> bool {
        let place = self.events.iter().position(|event| event == wanted);
        place.and_then(|place| self.events.remove(place)).is_some()
    }

    /// No event for which `of_interest` is true has come so far.
    pub fn has_no_event(&self, of_interest: impl Fn(&Event) -> bool) -> bool {
        !self.events.iter().any(of_interest)
    }

    /// The next completion for which `of_interest` is true.
    pub fn completion(
        &mut self,
        what: &str,
        of_interest: impl Fn(&Completion) -> bool,
    ) -> Completion {
        self.until(what, |bed| {
            let place = bed.completions.iter().position(&of_interest)?;
            Some(bed.completions.remove(place))
        })
    }

    pub fn resolve(&mut self, address: &str) -> ConnectionId {
        let connection = self.fabric.resolve(address).expect("an address");
        self.event("the address", |event| {
            *event == Event::Resolved { connection }
        });
        connection
    }

    /// Takes a connection, and posts its receives.
    pub fn adopt(&mut self, connection: ConnectionId) -> End {
        assert!(self.fabric.may_serve(connection, self.id));
        let endpoint = self.fabric.take(connection, self.id).expect("a queue pair");
        let token = Token(self.ends);
        let pair = self.port.adopt(endpoint, token).expect("a place");
        for n in 0..RECEIVES {
            let number = self.ends * RECEIVES + n;
            let memory = Span {
                offset: u64::from(number * RECEIVE_BYTES),
                len: RECEIVE_BYTES,
            };
            let id = WorkId(u64::from(number));
            self.port.post_receive(pair, memory, id).expect("room");
        }
        self.port.ring();
        self.ends += 1;
        End {
            connection,
            pair,
            token,
        }
    }

    /// A request that came: who asks is of this machine.
    pub fn request(&mut self) -> (ConnectionId, Vec<u8>) {
        let event = self.event("a request", |event| matches!(event, Event::Request { .. }));
        let Event::Request {
            connection,
            peer,
            private_data,
            ..
        } = event
        else {
            unreachable!("it was just looked for");
        };
        assert_eq!(peer.ip(), Some(self.ip));
        (connection, private_data)
    }

    pub fn established(&mut self, connection: ConnectionId) -> Vec<u8> {
        let event = self.event(
            "the connection",
            |event| matches!(event, Event::Established { connection: it, .. } if *it == connection),
        );
        match event {
            Event::Established { private_data, .. } => private_data,
            _ => unreachable!("it was just looked for"),
        }
    }

    pub fn rejected(&mut self, connection: ConnectionId) -> String {
        let event = self.event(
            "the rejection",
            |event| matches!(event, Event::Rejected { connection: it, .. } if *it == connection),
        );
        match event {
            Event::Rejected { reason, .. } => reason,
            _ => unreachable!("it was just looked for"),
        }
    }

    /// A listener's address and a connection that stands: the end that asked, and the other.
    pub fn connection(&mut self) -> (End, End) {
        let listener = self.fabric.listen(&self.anywhere()).expect("a listener");
        let address = self.fabric.address(listener).expect("it listens");
        self.connection_to(&address)
    }

    pub fn connection_to(&mut self, address: &str) -> (End, End) {
        let asking = self.resolve(address);
        let asking = self.adopt(asking);
        self.fabric
            .connect(asking.connection, b"ask")
            .expect("asked");
        let (asked, private_data) = self.request();
        assert!(private_data.starts_with(b"ask"), "{private_data:?}");
        let asked = self.adopt(asked);
        self.fabric
            .accept(asked.connection, b"answer")
            .expect("accepted");
        assert!(self.established(asking.connection).starts_with(b"answer"));
        assert_eq!(self.established(asked.connection), b"");
        (asking, asked)
    }

    /// Sends a word, and sees that it arrives.
    pub fn send(&mut self, from: End, to: End) {
        let message = [Octets::Bytes(b"word")];
        let sent = self.port.send(from.pair, &message, None, WorkId(1 << 40));
        sent.expect("room");
        let arrived = self.completion("the message", |completion| {
            completion.token == to.token && matches!(completion.outcome, Outcome::Received { .. })
        });
        assert!(matches!(arrived.outcome, Outcome::Received { len: 4, .. }));
    }

    /// Both the lcore and control hear of the end.
    pub fn ended(&mut self, end: End) {
        self.completion("the end, at the lcore", |completion| {
            completion.token == end.token && completion.outcome == Outcome::Disconnected
        });
        self.event("the end, at control", |event| {
            *event
                == Event::Disconnected {
                    connection: end.connection,
                }
        });
    }

    /// Gives a queue pair up, and waits until control has destroyed it: it knows nothing of the
    /// connection any more.
    pub fn destroy(&mut self, end: End) {
        self.port.destroy(end.pair);
        self.until("control to forget it", |bed| {
            let known = bed.fabric.reject(end.connection, "");
            known
                .is_err_and(|error| (bed.kind.is_unknown)(&error))
                .then_some(())
        });
    }
}
