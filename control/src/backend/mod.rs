//! TCP connections to backends, made for the lcores that will own them.
//!
//! Connecting may take long and fail in many ways, so it is done here, beside the dataplane,
//! without a thread for each: sockets that do not block, watched by one epoll instance, which
//! the control loop watches in turn ([`Connector`] is [`AsFd`]). Names are resolved by one
//! helper thread. At most [`Limits::at_once`] are in the making, as many again and more wait.
//!
//! **Source ports.** Servers key their cache of replies by the client's address and port, so a
//! connection that replaces another should come from the same port, which [`Wanted::remember`]
//! asks for. Some servers trust low ports alone: [`Wanted::privileged`]. A remembered port that
//! is taken by now, or still in TIME_WAIT towards that very backend, is given up for another.

mod attempt;
mod ports;
mod resolve;

#[cfg(test)]
mod tests;

use attempt::{Attempt, Step};
use ports::Ports;
pub(crate) use resolve::Resolver;
use rustix::event::epoll;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// What epoll calls the resolver; tickets stay below.
const RESOLVER: u64 = u64::MAX;
/// Events taken from epoll at a time.
const EVENTS: usize = 32;

/// Names one wish; whoever asks chooses it, unique among those not yet answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u32);

/// A connection that is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// A name or a number, without the brackets of IPv6.
    pub host: String,
    /// The port there.
    pub port: u16,
    /// For everything: waiting for its turn, resolving, all addresses and ports.
    pub timeout: Duration,
    /// Idle time before the first keepalive probe; `None`: no keepalive.
    pub keepalive: Option<Duration>,
    /// From a port from 512 to 1023.
    pub privileged: bool,
    /// The address to come from; `None`: whichever the system takes.
    pub from: Option<IpAddr>,
    /// Whom the connection is for: the next one for the same party to the same backend comes
    /// from the same port. `None` for backends that take a repeated xid from the same port for
    /// a duplicate without having kept the reply.
    pub remember: Option<String>,
}

/// A connection that was made. Does not block, and does not wait for more to send (TCP_NODELAY).
#[derive(Debug)]
pub struct Connected {
    /// The connection.
    pub stream: TcpStream,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

/// How many at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections in the making.
    pub at_once: usize,
    /// Others that wait for their turn.
    pub waiting: usize,
}

/// Why a wish is not even waiting: there are too many already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// Why there is no connection.
#[derive(Debug)]
pub enum Failure {
    /// It took longer than [`Wanted::timeout`].
    TimedOut,
    /// The name has no address.
    NoAddress(io::Error),
    /// Ports below 1024 are not for this process.
    NotPrivileged,
    /// All ports that would do are taken.
    NoPort,
    /// The system, or the backend, said no: the last of its addresses.
    Refused(SocketAddr, io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::TimedOut => f.write_str("no connection in time"),
            Failure::NoAddress(error) => write!(f, "its name has no address: {error}"),
            Failure::NotPrivileged => f.write_str(
                "a source port below 1024 takes the capability CAP_NET_BIND_SERVICE \
                 (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE), or source_port = \"any\"",
            ),
            Failure::NoPort => f.write_str("all source ports from 512 to 1023 are taken"),
            Failure::Refused(address, error) => write!(f, "{address}: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

/// Makes connections.
pub struct Connector {
    limits: Limits,
    epoll: OwnedFd,
    resolver: Resolver,
    ports: Ports,
    waiting: VecDeque<(Ticket, Wanted, Instant)>,
    making: HashMap<Ticket, Making>,
    done: VecDeque<(Ticket, Result<Connected, Failure>)>,
}

/// A connection in the making.
struct Making {
    wanted: Wanted,
    deadline: Instant,
    /// None while its name is being resolved.
    attempt: Option<Attempt>,
}

impl Connector {
    /// One that has nothing to do yet.
    ///
    /// # Errors
    ///
    /// No descriptors or threads are left.
    pub fn new(limits: Limits) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let resolver = Resolver::start()?;
        epoll::add(
            &epoll,
            &resolver,
            epoll::EventData::new_u64(RESOLVER),
            epoll::EventFlags::IN,
        )?;
        Ok(Self {
            limits,
            epoll,
            resolver,
            ports: Ports::default(),
            waiting: VecDeque::new(),
            making: HashMap::new(),
            done: VecDeque::new(),
        })
    }

    /// Asks for a connection: [`Connector::poll`] will say what became of it.
    ///
    /// # Errors
    ///
    /// [`TooMany`]: nothing was begun, and nothing will be said.
    pub fn start(&mut self, ticket: Ticket, wanted: Wanted, now: Instant) -> Result<(), TooMany> {
        let deadline = now + wanted.timeout;
        if self.making.len() < self.limits.at_once {
            self.begin(ticket, wanted, deadline);
        } else if self.waiting.len() < self.limits.waiting {
            self.waiting.push_back((ticket, wanted, deadline));
        } else {
            return Err(TooMany);
        }
        Ok(())
    }

    /// Forgets a wish: nothing more will be said of it.
    pub fn cancel(&mut self, ticket: Ticket) {
        self.making.remove(&ticket);
        self.waiting.retain(|(waiting, ..)| *waiting != ticket);
        self.done.retain(|(done, _)| *done != ticket);
    }

    /// The next wish that is over, if any, without waiting. To be called when the descriptor is
    /// readable or [`Connector::deadline`] has passed, until there is none.
    pub fn poll(&mut self, now: Instant) -> Option<(Ticket, Result<Connected, Failure>)> {
        if self.done.is_empty() {
            self.look();
            self.expire(now);
            self.fill_up();
        }
        self.done.pop_front()
    }

    /// When something is over at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let making = self.making.values().map(|making| making.deadline);
        let waiting = self.waiting.iter().map(|(_, _, deadline)| *deadline);
        making.chain(waiting).min()
    }

    /// Goes on with everything that has moved.
    fn look(&mut self) {
        let mut events = Vec::with_capacity(EVENTS);
        let no_wait = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // Interrupted: the descriptor stays readable, and this is called again.
        let spare = rustix::buffer::spare_capacity(&mut events);
        let _ = epoll::wait(&self.epoll, spare, Some(&no_wait));
        for event in events {
            match event.data.u64() {
                RESOLVER => self.take_resolved(),
                ticket => self.go_on(Ticket(u32::try_from(ticket).unwrap_or(u32::MAX))),
            }
        }
    }

    fn expire(&mut self, now: Instant) {
        let late = |deadline: Instant| deadline <= now;
        let making = self
            .making
            .iter()
            .filter(|(_, making)| late(making.deadline));
        let waiting = self
            .waiting
            .iter()
            .filter(|(_, _, deadline)| late(*deadline));
        let tickets: Vec<Ticket> = making
            .map(|(ticket, _)| *ticket)
            .chain(waiting.map(|(ticket, ..)| *ticket))
            .collect();
        for ticket in tickets {
            self.making.remove(&ticket);
            self.waiting.retain(|(waiting, ..)| *waiting != ticket);
            self.done.push_back((ticket, Err(Failure::TimedOut)));
        }
    }

    fn fill_up(&mut self) {
        while self.making.len() < self.limits.at_once
            && let Some((ticket, wanted, deadline)) = self.waiting.pop_front()
        {
            self.begin(ticket, wanted, deadline);
        }
    }

    fn begin(&mut self, ticket: Ticket, wanted: Wanted, deadline: Instant) {
        if let Ok(address) = wanted.host.parse::<IpAddr>() {
            let addresses = vec![SocketAddr::new(address, wanted.port)];
            self.making.insert(
                ticket,
                Making {
                    wanted,
                    deadline,
                    attempt: None,
                },
            );
            self.try_addresses(ticket, addresses);
        } else if self.resolver.ask(ticket, &wanted.host, wanted.port) {
            self.making.insert(
                ticket,
                Making {
                    wanted,
                    deadline,
                    attempt: None,
                },
            );
        } else {
            let busy = io::Error::new(io::ErrorKind::ResourceBusy, "the resolver is stuck");
            self.done.push_back((ticket, Err(Failure::NoAddress(busy))));
        }
    }

    fn take_resolved(&mut self) {
        while let Some((ticket, result)) = self.resolver.take() {
            match result {
                Ok(addresses) => self.try_addresses(ticket, addresses),
                Err(error) if self.making.remove(&ticket).is_some() => {
                    self.done
                        .push_back((ticket, Err(Failure::NoAddress(error))));
                }
                Err(_) => {}
            }
        }
    }

    fn try_addresses(&mut self, ticket: Ticket, addresses: Vec<SocketAddr>) {
        // Cancelled or expired meanwhile, or a ticket that was used again: its first answer is
        // as good as its second.
        if let Some(making) = self
            .making
            .get_mut(&ticket)
            .filter(|it| it.attempt.is_none())
        {
            making.attempt = Some(Attempt::new(addresses));
            self.go_on(ticket);
        }
    }

    /// Takes a wish as far as it goes without waiting.
    fn go_on(&mut self, ticket: Ticket) {
        let Some(making) = self.making.get_mut(&ticket) else {
            return;
        };
        let Some(attempt) = &mut making.attempt else {
            return;
        };
        let result = match attempt.step(&making.wanted, &mut self.ports) {
            Step::Wait(Some(socket)) => {
                let data = epoll::EventData::new_u64(u64::from(ticket.0));
                let flags = epoll::EventFlags::OUT;
                match epoll::add(&self.epoll, socket, data, flags) {
                    Ok(()) => return,
                    Err(error) => Err(Failure::Refused(attempt.address(), error.into())),
                }
            }
            Step::Wait(None) => return,
            Step::Done(connected) => {
                // It goes to an lcore's epoll instance: out of this one.
                let _ = epoll::delete(&self.epoll, &connected.stream);
                Ok(connected)
            }
            Step::Failed(failure) => Err(failure),
        };
        self.making.remove(&ticket);
        self.done.push_back((ticket, result));
    }
}

impl AsFd for Connector {
    /// Readable when [`Connector::poll`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
