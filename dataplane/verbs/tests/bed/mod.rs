//! Both ends of connections through a real device, in one thread.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::connect::{ConnectionId, Event, Fabric, PortId, PortWanted};
use rpcrdma_fabric::{Completion, Octets, Outcome, Port, QueuePair, Span, Token, WorkId};
use rpcrdma_verbs::{Error, LinkState, Settings, Transport, VerbsFabric, VerbsPort, survey};
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

/// The address of a device here, or why there is none.
pub fn address() -> Result<IpAddr, String> {
    let found = survey(&Settings::default()).map_err(|error| error.to_string())?;
    let links = found.devices.iter().flat_map(|device| &device.links);
    let active = links.filter(|link| link.state == LinkState::Active);
    // Devices that speak TCP have no address in their GIDs: the environment says.
    let by_gid = active.filter_map(|link| link.chosen[0]?.ip()).next();
    let told = std::env::var("RPCRDMA_TEST_ADDRESS")
        .ok()
        .and_then(|text| text.parse().ok());
    told.or(by_gid)
        .ok_or_else(|| "no RDMA device: none has a link with an IPv4 address".to_owned())
}

/// Runs a test where there is a device, and says where there is none.
pub fn with_bed(test: impl FnOnce(Bed)) {
    match address() {
        Ok(ip) => test(Bed::new(ip, Settings::default())),
        Err(why) => println!("SKIPPED: {why}"),
    }
}

/// One end of a connection, adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub connection: ConnectionId,
    pub pair: QueuePair,
    pub token: Token,
}

/// A fabric with one port.
pub struct Bed {
    pub fabric: VerbsFabric,
    pub port: VerbsPort,
    pub id: PortId,
    pub ip: IpAddr,
    pub arena: Arc<Arena>,
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

impl Bed {
    pub fn new(ip: IpAddr, settings: Settings) -> Bed {
        let mut fabric = VerbsFabric::new(settings).expect("a fabric");
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
            events: VecDeque::new(),
            completions: Vec::new(),
            ends: 0,
        }
    }

    /// The device speaks iWARP: a message without a receive ends the connection, a Write is done
    /// when it has left, and there are no windows.
    pub fn is_iwarp(&self) -> bool {
        let found = survey(&Settings::default()).expect("it was there");
        let mut devices = found.devices.iter();
        devices.any(|device| device.transport == Transport::Iwarp)
    }

    /// The device is software RoCE.
    pub fn is_rxe(&self) -> bool {
        let found = survey(&Settings::default()).expect("it was there");
        let mut devices = found.devices.iter();
        devices.any(|device| !device.limits.extended_calls)
    }

    /// Memory is exposed by windows.
    pub fn has_windows(&self) -> bool {
        self.port.capabilities().receive_invalidate
    }

    /// An address of the device, with a port that the system chooses.
    pub fn anywhere(&self) -> String {
        SocketAddr::new(self.ip, 0).to_string()
    }

    /// Polls both sides, and waits a little where there is nothing.
    fn turn(&mut self) {
        let mut reaped = [Completion {
            token: Token(0),
            id: WorkId(0),
            outcome: Outcome::Done,
        }; 16];
        self.port.ring();
        let count = self.port.reap(&mut reaped);
        self.completions.extend(&reaped[..count]);
        let event = self.fabric.poll();
        if count > 0 || event.is_some() {
            self.events.extend(event);
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
                tv_nsec: 200_000_000,
            };
            let _ = poll(&mut descriptors, Some(&nap));
        }
    }

    /// Goes on until `done` gives something.
    pub fn until<T>(&mut self, what: &str, mut done: impl FnMut(&mut Bed) -> Option<T>) -> T {
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
            matches!(known, Err(Error::NoConnection(_))).then_some(())
        });
    }
}
