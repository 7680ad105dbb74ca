//! A small server thread, for metrics and status: short requests, one answer each, few clients.
//!
//! No client can hold it up. Sockets never block, a request is at most [`REQUEST_BYTES`] long,
//! a client has [`PATIENCE`] for everything from connecting to taking the last octet, and one that
//! comes when there are [`CLIENTS`] already takes the place of the oldest that has not said all yet,
//! or, where all have, of the oldest.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest request, octets.
pub(crate) const REQUEST_BYTES: usize = 8 * 1024;
/// Clients served at the same time.
const CLIENTS: usize = 8;
/// What a client has from connecting to taking the last octet.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long no client is accepted after accepting has failed: the process is out of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// What is spoken at an endpoint.
pub(crate) trait Protocol: Send + 'static {
    /// Looks at all that a client has sent, nothing at first: the whole answer, after which
    /// the connection is closed, or `None` to wait for more.
    fn answer(&mut self, received: &[u8]) -> Option<Vec<u8>>;
}

/// A listener of a kind that endpoints can use.
pub(crate) trait Door: AsFd + Send + 'static {
    /// A connection of that kind.
    type Stream: Read + Write + AsFd + Send;

    /// Makes the listener itself not block.
    fn unblock(&self) -> io::Result<()>;

    /// Takes a waiting connection, which does not block either.
    fn admit(&self) -> io::Result<Self::Stream>;
}

impl Door for TcpListener {
    type Stream = TcpStream;

    fn unblock(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }

    fn admit(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

impl Door for UnixListener {
    type Stream = UnixStream;

    fn unblock(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }

    fn admit(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

/// A running endpoint. Dropped, it ends, its clients with it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Serves `door` on a thread of this name.
    pub(crate) fn start(name: &str, door: impl Door, protocol: impl Protocol) -> io::Result<Self> {
        Self::start_with(name, door, protocol, PATIENCE)
    }

    fn start_with(
        name: &str,
        door: impl Door,
        protocol: impl Protocol,
        patience: Duration,
    ) -> io::Result<Self> {
        door.unblock()?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let stopped = Arc::clone(&stop);
        let server = Server {
            door,
            protocol,
            patience,
            clients: Vec::new(),
        };
        let serve = move || server.run(&stopped);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(serve)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // A counter of an eventfd that nobody reads is far from full: this cannot fail.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

struct Server<D: Door, P> {
    door: D,
    protocol: P,
    patience: Duration,
    clients: Vec<Client<D::Stream>>,
}

struct Client<S> {
    stream: S,
    received: Vec<u8>,
    /// The answer, and how much of it has gone.
    answer: Option<(Vec<u8>, usize)>,
    deadline: Instant,
}

/// Whether a client stays.
#[derive(PartialEq, Eq)]
enum Fate {
    Stays,
    Leaves,
}

impl<D: Door, P: Protocol> Server<D, P> {
    fn run(mut self, stop: &OwnedFd) {
        let mut pause_until = None;
        loop {
            let now = Instant::now();
            pause_until = pause_until.filter(|&until| until > now);
            let admitting = pause_until.is_none();
            if self.wait(stop, admitting, pause_until, now) {
                return;
            }
            let now = Instant::now();
            self.serve(now);
            if admitting && !self.admit(now) {
                pause_until = Some(now + PAUSE);
            }
        }
    }

    /// Waits until something can be done; true when that is to stop.
    fn wait(
        &self,
        stop: &OwnedFd,
        admitting: bool,
        pause_until: Option<Instant>,
        now: Instant,
    ) -> bool {
        let mut polled = vec![PollFd::new(stop, PollFlags::IN)];
        if admitting {
            polled.push(PollFd::new(&self.door, PollFlags::IN));
        }
        for client in &self.clients {
            let wanted = client
                .answer
                .as_ref()
                .map_or(PollFlags::IN, |_| PollFlags::OUT);
            polled.push(PollFd::new(&client.stream, wanted));
        }
        let deadlines = self.clients.iter().map(|client| client.deadline);
        let timeout = deadlines
            .chain(pause_until)
            .min()
            .map(|at| timespec(at - now.min(at)));
        // Interrupted or out of memory: the loop comes round again, and looks at everything.
        let _ = poll(&mut polled, timeout.as_ref());
        !polled[0].revents().is_empty()
    }

    fn serve(&mut self, now: Instant) {
        let protocol = &mut self.protocol;
        self.clients.retain_mut(|client| {
            now < client.deadline && client.go_on(protocol).unwrap_or(Fate::Leaves) == Fate::Stays
        });
    }

    /// Takes clients that wait; false when that fails for want of descriptors.
    fn admit(&mut self, now: Instant) -> bool {
        // As many as there is place for: the others next time, when these had theirs.
        for _ in 0..CLIENTS {
            match self.door.admit() {
                Ok(stream) => {
                    let deadline = now + self.patience;
                    let mut client = Client {
                        stream,
                        received: Vec::new(),
                        answer: None,
                        deadline,
                    };
                    if client
                        .go_on(&mut self.protocol)
                        .is_ok_and(|fate| fate == Fate::Stays)
                    {
                        self.make_room();
                        self.clients.push(client);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

impl<D: Door, P> Server<D, P> {
    /// Shows out one client where there are as many as there may be.
    fn make_room(&mut self) {
        if self.clients.len() < CLIENTS {
            return;
        }
        // They stand in the order in which they came.
        let asking = |client: &Client<D::Stream>| client.answer.is_none();
        let oldest = self.clients.iter().position(asking).unwrap_or(0);
        self.clients.remove(oldest);
    }
}

impl<S: Read + Write> Client<S> {
    /// Receives and sends what can be without waiting.
    fn go_on(&mut self, protocol: &mut impl Protocol) -> io::Result<Fate> {
        if self.answer.is_none() && !self.receive(protocol)? {
            return Ok(Fate::Leaves);
        }
        let Some((answer, sent)) = &mut self.answer else {
            return Ok(Fate::Stays);
        };
        while *sent < answer.len() {
            match self.stream.write(&answer[*sent..]) {
                Ok(0) => return Ok(Fate::Leaves),
                Ok(more) => *sent += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Fate::Stays),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Fate::Leaves)
    }

    /// Receives until there is an answer or nothing more; false when no answer can come.
    fn receive(&mut self, protocol: &mut impl Protocol) -> io::Result<bool> {
        let mut piece = [0; 1024];
        loop {
            self.answer = protocol.answer(&self.received).map(|answer| (answer, 0));
            if self.answer.is_some() {
                return Ok(true);
            }
            if self.received.len() >= REQUEST_BYTES {
                return Ok(false);
            }
            let room = piece.len().min(REQUEST_BYTES - self.received.len());
            match self.stream.read(&mut piece[..room]) {
                Ok(0) => return Ok(false),
                Ok(more) => self.received.extend_from_slice(&piece[..more]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A time to wait, rounded up, so that a deadline has passed when it is over.
fn timespec(time: Duration) -> Timespec {
    let time = time + Duration::from_millis(1);
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    /// More octets than sockets hold.
    const MUCH: usize = 64 << 20;

    /// Answers a line with five octets, or with many if that is what it asks for.
    struct Lines;

    impl Protocol for Lines {
        fn answer(&mut self, received: &[u8]) -> Option<Vec<u8>> {
            let line = received.strip_suffix(b"\n")?;
            Some(vec![b'a'; if line == b"much" { MUCH } else { 5 }])
        }
    }

    fn serve(patience: Duration) -> (Endpoint, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (
            Endpoint::start_with("test", listener, Lines, patience).unwrap(),
            address,
        )
    }

    fn ask(address: SocketAddr) -> usize {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"one ").unwrap();
        stream.write_all(b"line\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap()
    }

    #[test]
    fn silent_clients_do_not_keep_others_out_and_are_hung_up_on_at_the_end() {
        let (endpoint, address) = serve(Duration::from_secs(3600));
        let silent: Vec<_> = (1..CLIENTS)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        assert_eq!([ask(address), ask(address)], [5, 5]);
        drop(endpoint);
        for mut stream in silent {
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn more_silent_clients_than_there_is_room_for_are_shown_out() {
        let (_endpoint, address) = serve(Duration::from_secs(3600));
        let _silent: Vec<_> = (0..3 * CLIENTS)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        assert_eq!(ask(address), 5);
    }

    #[test]
    fn clients_that_take_nothing_are_shown_out() {
        let (_endpoint, address) = serve(Duration::from_millis(20));
        let stall = |_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"much\n").unwrap();
            stream
        };
        let stalled: Vec<_> = (0..CLIENTS).map(stall).collect();
        assert_eq!(ask(address), 5);
        for mut stream in stalled {
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(answer.len() < MUCH);
        }
    }

    #[test]
    fn endless_requests_end() {
        let (_endpoint, address) = serve(Duration::from_secs(3600));
        let mut stream = TcpStream::connect(address).unwrap();
        let endless = vec![b'a'; REQUEST_BYTES + 1];
        let _ = stream.write_all(&endless);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer, b"");
    }
}
