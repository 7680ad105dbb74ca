//! TCP listeners, whose connections go to lcores.
//!
//! A client is let in if its address is allowed and there is room; otherwise its connection is
//! accepted and closed at once, so that it learns of it, and counted. When the process is out
//! of descriptors, one that was kept for this case is given up to show the waiting clients out;
//! then nobody is accepted for a moment. So the loop neither spins on a queue it cannot empty
//! nor leaves clients hanging.

use rpcrdma_config::allow::Networks;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Clients shown out in a row for want of descriptors.
const SHOWN_OUT: usize = 64;
/// How long nobody is accepted after that.
const PAUSE: Duration = Duration::from_millis(100);
/// Clients refused in a row before the loop may do something else.
const REFUSED: usize = 64;

/// One of the listeners: its place in the order of [`Listeners::open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DoorId(pub usize);

/// Who may come in.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whose connections are accepted.
    pub allow: Networks,
    /// How many at a time.
    pub connections_max: usize,
    /// Idle time before the first keepalive probe; `None`: no keepalive.
    pub keepalive: Option<Duration>,
}

/// A client that was let in.
#[derive(Debug)]
pub struct Accepted {
    /// Where it came in.
    pub door: DoorId,
    /// Its connection, which does not block, and does not wait for more to send (TCP_NODELAY).
    pub stream: TcpStream,
    /// Its address.
    pub client: SocketAddr,
    /// Its place among the clients of that door: free again when this is dropped.
    pub place: Place,
}

/// A place among the clients of a door.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "is counted, never looked at")] Arc<()>);

/// What happened at a door.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorCounters {
    /// Clients let in.
    pub accepted: u64,
    /// Clients whose address is not allowed.
    pub not_allowed: u64,
    /// Clients for whom there was no place.
    pub no_place: u64,
    /// Clients shown out because the process had no descriptors left.
    pub no_descriptors: u64,
    /// Clients that left before they were let in, and other failures.
    pub failed: u64,
}

/// All TCP listeners of the appliance.
pub struct Listeners {
    epoll: OwnedFd,
    doors: Vec<Door>,
    /// The descriptor kept for when there are none.
    spare: Option<File>,
    paused_until: Option<Instant>,
}

struct Door {
    listener: TcpListener,
    policy: Policy,
    places: Arc<()>,
    counters: DoorCounters,
}

/// What came of one attempt to accept.
enum Admission {
    In(Accepted),
    Refused,
    Nobody,
    NoDescriptors,
}

impl Listeners {
    /// No listeners yet.
    ///
    /// # Errors
    ///
    /// No descriptors are left.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self {
            epoll,
            doors: Vec::new(),
            spare: Some(spare()?),
            paused_until: None,
        })
    }

    /// Listens at `address`; port 0 is any that is free.
    ///
    /// # Errors
    ///
    /// The address is taken, or none of this machine's.
    pub fn open(&mut self, address: SocketAddr, policy: Policy) -> io::Result<DoorId> {
        // The standard library sets SO_REUSEADDR, and the longest queue that the system allows.
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let id = DoorId(self.doors.len());
        self.watch(id, &listener)?;
        let counters = DoorCounters::default();
        self.doors.push(Door {
            listener,
            policy,
            places: Arc::new(()),
            counters,
        });
        Ok(id)
    }

    /// Where a door is.
    #[must_use]
    pub fn address(&self, door: DoorId) -> Option<SocketAddr> {
        self.doors.get(door.0)?.listener.local_addr().ok()
    }

    /// Clients that come to a door from now on are judged by this list.
    pub fn allow(&mut self, door: DoorId, allow: &Networks) {
        if let Some(door) = self.doors.get_mut(door.0) {
            door.policy.allow.clone_from(allow);
        }
    }

    /// What happened at a door.
    #[must_use]
    pub fn counters(&self, door: DoorId) -> DoorCounters {
        self.doors
            .get(door.0)
            .map(|door| door.counters)
            .unwrap_or_default()
    }

    /// The next client that is let in, if one waits. To be called when the descriptor is readable
    /// or [`Listeners::deadline`] has passed, until there is none.
    pub fn accept(&mut self, now: Instant) -> Option<Accepted> {
        if self.paused_until.is_some_and(|until| now < until) {
            return None;
        }
        if self.paused_until.take().is_some() {
            self.go_on();
        }
        let mut refused = 0;
        while refused < REFUSED {
            let id = self.ready()?;
            match self.doors.get_mut(id.0).map(|door| door.admit(id))? {
                Admission::In(accepted) => return Some(accepted),
                Admission::Refused => refused += 1,
                // Left between epoll's word and ours.
                Admission::Nobody => return None,
                Admission::NoDescriptors => {
                    self.show_out(id);
                    self.pause(now);
                    return None;
                }
            }
        }
        None
    }

    /// When accepting goes on after a pause.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.paused_until
    }

    /// A door somebody waits at. Epoll takes turns between them.
    fn ready(&self) -> Option<DoorId> {
        let mut events = Vec::with_capacity(1);
        let no_wait = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let spare = rustix::buffer::spare_capacity(&mut events);
        epoll::wait(&self.epoll, spare, Some(&no_wait)).ok()?;
        let id: u64 = events.first().map(|event| event.data.u64())?;
        usize::try_from(id).ok().map(DoorId)
    }

    fn watch(&self, id: DoorId, listener: &TcpListener) -> io::Result<()> {
        let data = epoll::EventData::new_u64(id.0 as u64);
        epoll::add(&self.epoll, listener, data, epoll::EventFlags::IN)?;
        Ok(())
    }

    /// With the spare descriptor: closes the connections that wait.
    fn show_out(&mut self, id: DoorId) {
        self.spare = None;
        if let Some(door) = self.doors.get_mut(id.0) {
            let out = (0..SHOWN_OUT)
                .map_while(|_| door.listener.accept().ok())
                .count();
            door.counters.no_descriptors += out as u64;
        }
        // If somebody else was faster, the next shortage is only paused over.
        self.spare = spare().ok();
    }

    /// A queue that cannot be emptied stays readable: it is not watched meanwhile.
    fn pause(&mut self, now: Instant) {
        for door in &self.doors {
            let _ = epoll::delete(&self.epoll, &door.listener);
        }
        self.paused_until = Some(now + PAUSE);
    }

    fn go_on(&mut self) {
        for (index, door) in self.doors.iter().enumerate() {
            // Refused only for want of kernel memory; the other doors, and this one after the
            // next pause, are watched all the same.
            let _ = self.watch(DoorId(index), &door.listener);
        }
        if self.spare.is_none() {
            self.spare = spare().ok();
        }
    }
}

impl Door {
    fn admit(&mut self, id: DoorId) -> Admission {
        let (stream, client) = match self.listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => return self.failed(&error),
        };
        if !self.policy.allow.permits(client.ip()) {
            self.counters.not_allowed += 1;
            return Admission::Refused;
        }
        // One is the door's own.
        if Arc::strong_count(&self.places) > self.policy.connections_max {
            self.counters.no_place += 1;
            return Admission::Refused;
        }
        if set_up(&stream, self.policy.keepalive).is_err() {
            self.counters.failed += 1;
            return Admission::Refused;
        }
        self.counters.accepted += 1;
        Admission::In(Accepted {
            door: id,
            stream,
            client,
            place: Place(Arc::clone(&self.places)),
        })
    }

    fn failed(&mut self, error: &io::Error) -> Admission {
        match Errno::from_io_error(error) {
            Some(Errno::AGAIN) => Admission::Nobody,
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                Admission::NoDescriptors
            }
            // The connection has failed before it was taken (accept(2)).
            _ => {
                self.counters.failed += 1;
                Admission::Refused
            }
        }
    }
}

fn set_up(stream: &TcpStream, keepalive: Option<Duration>) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    crate::keepalive::set(stream, keepalive)
}

fn spare() -> io::Result<File> {
    File::open("/dev/null")
}

impl AsFd for Listeners {
    /// Readable when [`Listeners::accept`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::io::Read;
    use std::net::Ipv4Addr;

    fn policy(connections_max: usize) -> Policy {
        Policy {
            allow: Networks::loopback(),
            connections_max,
            keepalive: None,
        }
    }

    fn listeners(policy: Policy) -> (Listeners, SocketAddr) {
        let mut listeners = Listeners::new().unwrap();
        let door = listeners
            .open((Ipv4Addr::LOCALHOST, 0).into(), policy)
            .unwrap();
        let address = listeners.address(door).unwrap();
        (listeners, address)
    }

    /// Waits for a client, and accepts.
    fn accept(listeners: &mut Listeners) -> Option<Accepted> {
        poll(&mut [PollFd::new(&*listeners, PollFlags::IN)], None).unwrap();
        listeners.accept(Instant::now())
    }

    fn is_closed(mut client: &TcpStream) -> bool {
        !matches!(client.read(&mut [0]), Ok(1..))
    }

    #[test]
    fn a_client_is_let_in_and_set_up() {
        let (mut listeners, address) = listeners(policy(1));
        assert!(listeners.accept(Instant::now()).is_none());
        let client = TcpStream::connect(address).unwrap();
        let accepted = accept(&mut listeners).unwrap();
        assert_eq!(accepted.client, client.local_addr().unwrap());
        assert!(accepted.stream.nodelay().unwrap());
        assert!(
            socket2::SockRef::from(&accepted.stream)
                .nonblocking()
                .unwrap()
        );
        assert_eq!(listeners.counters(DoorId(0)).accepted, 1);
    }

    #[test]
    fn who_is_not_allowed_is_closed_and_counted() {
        let allow = Networks(vec!["192.0.2.0/24".parse().unwrap()]);
        let (mut listeners, address) = listeners(Policy { allow, ..policy(1) });
        let client = TcpStream::connect(address).unwrap();
        assert!(accept(&mut listeners).is_none());
        assert!(is_closed(&client));
        assert_eq!(listeners.counters(DoorId(0)).not_allowed, 1);
    }

    #[test]
    fn there_are_only_so_many_places() {
        let (mut listeners, address) = listeners(policy(1));
        let _first = TcpStream::connect(address).unwrap();
        let accepted = accept(&mut listeners).unwrap();
        let second = TcpStream::connect(address).unwrap();
        assert!(accept(&mut listeners).is_none());
        assert!(is_closed(&second));
        assert_eq!(listeners.counters(DoorId(0)).no_place, 1);
        drop(accepted);
        let _third = TcpStream::connect(address).unwrap();
        assert!(accept(&mut listeners).is_some());
    }

    #[test]
    fn without_descriptors_clients_are_shown_out_and_nobody_spins() {
        let (mut listeners, address) = listeners(policy(9));
        let client = TcpStream::connect(address).unwrap();
        poll(&mut [PollFd::new(&listeners, PollFlags::IN)], None).unwrap();
        let now = Instant::now();
        listeners.show_out(DoorId(0));
        listeners.pause(now);
        assert!(is_closed(&client));
        assert_eq!(listeners.counters(DoorId(0)).no_descriptors, 1);

        let _next = TcpStream::connect(address).unwrap();
        let no_wait = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut polled = [PollFd::new(&listeners, PollFlags::IN)];
        assert_eq!(poll(&mut polled, Some(&no_wait)), Ok(0));
        assert!(listeners.accept(now).is_none());
        let later = listeners.deadline().unwrap();
        assert!(listeners.accept(later).is_some());
        assert_eq!(listeners.deadline(), None);
    }

    #[test]
    fn a_shortage_of_descriptors_is_told_from_other_failures() {
        let (mut listeners, _) = listeners(policy(1));
        let mut failed = |errno: Errno| listeners.doors[0].failed(&errno.into());
        assert!(matches!(failed(Errno::MFILE), Admission::NoDescriptors));
        assert!(matches!(failed(Errno::NFILE), Admission::NoDescriptors));
        assert!(matches!(failed(Errno::AGAIN), Admission::Nobody));
        assert!(matches!(failed(Errno::CONNABORTED), Admission::Refused));
    }
}
