//! A raw peer in the memory fabric: its own port and memory, and whatever octets it likes.

use super::appliance::Appliance;
use super::memory::Memory;
use super::octets::{Segment, Two, Version, head, null, success};
use super::{PATIENCE, until};
use rpcrdma_fabric::connect::{ConnectionId, Event, Fabric, PortId};
use rpcrdma_fabric::{
    Access, Completion, Handle, Octets, Outcome, Port, QueuePair, Refused, Span, Token, WorkId,
};
use rpcrdma_memory::{MemoryFabric, MemoryPort, Settings};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::time::Instant;

/// Octets of each receive: the longest message anybody here sends.
const RECEIVE_BYTES: u32 = 4096;
const NOTHING: Completion = Completion {
    token: Token(0),
    id: WorkId(0),
    outcome: Outcome::Disconnected,
};
const SENT: WorkId = WorkId(1 << 32);

/// A port with at most one connection at a time.
pub(crate) struct Peer {
    fabric: MemoryFabric,
    id: PortId,
    port: MemoryPort,
    pub(crate) memory: Memory,
    qp: Option<QueuePair>,
    receives: Vec<Span>,
    /// Memory that belongs to no connection begins here.
    mark: u64,
    came: VecDeque<Came>,
    over: bool,
}

/// A message that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    pub(crate) octets: Vec<u8>,
    /// The handle of ours that came back invalidated.
    pub(crate) invalidated: Option<u32>,
}

impl Peer {
    pub(crate) fn new(appliance: &Appliance) -> Self {
        Self::within(appliance.fabric())
    }

    pub(crate) fn within(fabric: MemoryFabric) -> Self {
        let memory = Memory::new(4 << 20);
        let settings = Settings {
            queue_pairs: 4,
            windows: 64,
            ..Settings::default()
        };
        let (id, port) = fabric
            .open_port_with(memory.arena(), &settings)
            .expect("a port");
        let mark = memory.mark();
        Self {
            fabric,
            id,
            port,
            memory,
            qp: None,
            receives: Vec::new(),
            mark,
            came: VecDeque::new(),
            over: false,
        }
    }

    /// Asks for a connection, with so many receives posted, and does not wait for it.
    pub(crate) fn ask(&mut self, address: &str, receives: u32, private: &[u8]) -> ConnectionId {
        assert!(self.qp.is_none(), "one connection at a time");
        self.memory.rewind(self.mark);
        let connection = self.fabric.resolve(address).expect("an address");
        until("the way there", || match self.fabric.poll()? {
            Event::Resolved { connection: it } if it == connection => Some(()),
            // What became of the connection before this one.
            Event::Disconnected { .. } => None,
            Event::Established { connection: it, .. } | Event::Rejected { connection: it, .. }
                if it != connection =>
            {
                None
            }
            event => panic!("no way there: {event:?}"),
        });
        self.adopt(connection, receives);
        let asked = self.fabric.connect(connection, private);
        asked.expect("adopted");
        connection
    }

    /// Makes a connection.
    pub(crate) fn connect(&mut self, address: &str) {
        self.connect_with(address, 16, &[]);
    }

    /// Makes a connection with so many receives posted. What the other side sent with its yes.
    pub(crate) fn connect_with(&mut self, address: &str, receives: u32, private: &[u8]) -> Vec<u8> {
        let asked = self.ask(address, receives, private);
        until("a connection", || match self.fabric.poll()? {
            Event::Established {
                connection,
                private_data,
            } if connection == asked => Some(private_data),
            // The end of the connection before this one.
            Event::Disconnected { connection } if connection != asked => None,
            event => panic!("no connection: {event:?}"),
        })
    }

    /// Listens, for [`Peer::accept`].
    pub(crate) fn listen(&mut self, address: &str) {
        self.fabric.listen(address).expect("a free address");
    }

    /// Takes the next connection that is asked for at its address, with so many receives posted.
    pub(crate) fn accept(&mut self, receives: u32) {
        assert!(self.qp.is_none(), "one connection at a time");
        self.memory.rewind(self.mark);
        let asked = until("a connection request", || match self.fabric.poll()? {
            Event::Request { connection, .. } => Some(connection),
            // The end of the connection before this one.
            Event::Disconnected { .. } => None,
            event => panic!("no request: {event:?}"),
        });
        self.adopt(asked, receives);
        self.fabric.accept(asked, &[]).expect("adopted");
        until("a connection", || match self.fabric.poll()? {
            Event::Established { connection, .. } if connection == asked => Some(()),
            Event::Disconnected { connection } if connection != asked => None,
            event => panic!("no connection: {event:?}"),
        });
    }

    fn adopt(&mut self, connection: ConnectionId, receives: u32) {
        let endpoint = self.fabric.take(connection, self.id);
        let endpoint = endpoint.expect("a queue pair");
        let qp = self.port.adopt(endpoint, Token(0)).expect("room");
        (self.qp, self.over) = (Some(qp), false);
        self.receives.clear();
        self.post(receives);
    }

    /// Waits for the other side's no to what was asked, and why.
    pub(crate) fn until_rejected(&mut self, asked: ConnectionId) -> String {
        let reason = until("a no", || match self.fabric.poll()? {
            Event::Rejected { connection, reason } if connection == asked => Some(reason),
            // The end of the connection before this one.
            Event::Disconnected { connection } if connection != asked => None,
            event => panic!("no rejection: {event:?}"),
        });
        self.until_over();
        reason
    }

    /// Posts so many more receives.
    pub(crate) fn post(&mut self, count: u32) {
        for _ in 0..count {
            let span = self.memory.take(RECEIVE_BYTES);
            let id = WorkId(self.receives.len() as u64);
            self.receives.push(span);
            let posted = self.port.post_receive(self.qp(), span, id);
            posted.expect("room for a receive");
        }
    }

    fn qp(&self) -> QueuePair {
        self.qp.expect("a connection")
    }

    /// Sends these octets, whatever they are.
    pub(crate) fn send(&mut self, octets: &[u8]) {
        self.send_with(octets, None);
    }

    /// Sends these octets, unless the queue is full now: for floods, which outrun the other
    /// side's receives.
    #[allow(dead_code, reason = "not every test program floods")]
    pub(crate) fn offer(&mut self, octets: &[u8]) {
        let message = [Octets::Bytes(octets)];
        // Busy, or on a connection that is lost meanwhile.
        let _ = self.port.send(self.qp(), &message, None, SENT);
        self.port.ring();
    }

    /// Sends these octets and takes a handle from the other side.
    pub(crate) fn send_invalidating(&mut self, octets: &[u8], handle: u32) {
        self.send_with(octets, Some(Handle(handle)));
    }

    fn send_with(&mut self, octets: &[u8], invalidate: Option<Handle>) {
        let message = [Octets::Bytes(octets)];
        let sent = self.port.send(self.qp(), &message, invalidate, SENT);
        // On a connection that is lost meanwhile nothing is sent any more.
        assert!(matches!(sent, Ok(_) | Err(Refused::Broken)), "{sent:?}");
        self.port.ring();
    }

    /// Memory that the other side may read, with `data` in it.
    pub(crate) fn readable(&mut self, data: &[u8]) -> Segment {
        let span = self.memory.take(data.len() as u32);
        self.memory.put(span, data);
        self.expose(span, Access::Read)
    }

    /// Memory that the other side may write.
    pub(crate) fn writable(&mut self, len: u32) -> (Span, Segment) {
        let span = self.memory.take(len);
        self.memory.put(span, &vec![0xEE; len as usize]);
        (span, self.expose(span, Access::Write))
    }

    fn expose(&mut self, span: Span, access: Access) -> Segment {
        let exposed = self.port.expose(self.qp(), span, access);
        let exposed = exposed.expect("a free window");
        Segment {
            handle: exposed.handle.0,
            length: exposed.length,
            offset: exposed.offset,
        }
    }

    /// Writes to memory of the other side; what is sent after it arrives after it.
    pub(crate) fn put(&mut self, to: Segment, data: &[u8]) {
        let from = self.memory.take(data.len() as u32);
        self.memory.put(from, data);
        let to = rpcrdma_fabric::Segment {
            handle: Handle(to.handle),
            length: data.len() as u32,
            offset: to.offset,
        };
        let written = self.port.write(self.qp(), from, to, SENT);
        written.expect("room for a Write");
        self.port.ring();
    }

    /// Ends an exposure.
    pub(crate) fn retire(&mut self, segment: Segment) {
        let handle = Handle(segment.handle);
        let retired = self.port.retire(self.qp(), handle, SENT);
        retired.expect("an exposure");
    }

    /// The next message.
    pub(crate) fn next(&mut self) -> Came {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(came) = self.came.pop_front() {
                return came;
            }
            assert!(!self.over, "the connection is lost");
            self.turn(deadline, "a message");
        }
    }

    /// There is a message already.
    pub(crate) fn has_come(&mut self) -> bool {
        self.reap();
        !self.came.is_empty()
    }

    /// The octets of the next message, which takes no handle from us.
    pub(crate) fn answer(&mut self) -> Vec<u8> {
        let came = self.next();
        assert_eq!(came.invalidated, None, "no handle was to be invalidated");
        came.octets
    }

    /// Waits for the end of the connection; what came before it, unread so far.
    pub(crate) fn until_over(&mut self) -> Vec<Vec<u8>> {
        let deadline = Instant::now() + PATIENCE;
        while !self.over {
            self.turn(deadline, "the end of the connection");
        }
        self.forget();
        self.came.drain(..).map(|came| came.octets).collect()
    }

    /// Ends the connection from this side, at once.
    pub(crate) fn leave(&mut self) {
        self.port.disconnect(self.qp());
        self.until_over();
    }

    /// Whether the connection is lost already.
    pub(crate) fn is_over(&mut self) -> bool {
        self.reap();
        self.over
    }

    fn forget(&mut self) {
        // What is flushed comes before or after the end.
        while self.reap() {}
        self.port.destroy(self.qp());
        self.qp = None;
    }

    /// Takes what there is, or sleeps until there is something.
    fn turn(&mut self, deadline: Instant, what: &str) {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "waited in vain for {what}");
        if self.reap() || !self.port.arm() {
            return;
        }
        let timeout = Timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: left.subsec_nanos().into(),
        };
        let waker = self.port.waker();
        // Interrupted, or out of memory for once: it is asked again.
        let _ = poll(
            &mut [PollFd::from_borrowed_fd(waker, PollFlags::IN)],
            Some(&timeout),
        );
    }

    /// True when there was something.
    fn reap(&mut self) -> bool {
        let mut batch = [NOTHING; 16];
        let count = self.port.reap(&mut batch);
        for completion in &batch[..count] {
            self.take(*completion);
        }
        self.port.ring();
        count > 0
    }

    fn take(&mut self, completion: Completion) {
        match completion.outcome {
            Outcome::Received { len, invalidated } => {
                let span = self.receives[usize::try_from(completion.id.0).expect("an index")];
                let octets = self.memory.see(span.first(len));
                if let Some(handle) = invalidated {
                    self.port.retired_by_peer(self.qp(), handle);
                }
                let invalidated = invalidated.map(|handle| handle.0);
                self.came.push_back(Came {
                    octets,
                    invalidated,
                });
                // On a connection that is lost meanwhile there is nothing to post for.
                let _ = self.port.post_receive(self.qp(), span, completion.id);
            }
            Outcome::Disconnected => self.over = true,
            Outcome::Done | Outcome::Failed(_) | Outcome::Room => {}
        }
    }

    /// A NULL call of the benchmark program and its reply, which grants `credits`: the
    /// connection is as it should be.
    pub(crate) fn greet(&mut self, version: Version, xid: u32, credits: u32) {
        self.send(&head(version, xid).with(&null(xid)));
        let direction = u32::from(version == Two);
        let reply = head(version, xid).credits(credits).direction(direction);
        assert_eq!(self.answer(), reply.with(&success(xid)), "NULL is answered");
    }
}
