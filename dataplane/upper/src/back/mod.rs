//! The back gateway: Calls arrive on an accepted TCP connection and go out by RDMA, one RDMA
//! connection for each TCP connection, xids unchanged.
//!
//! # The way of a Call
//!
//! Its first octets tell how long its Reply can get (RFC 8267). Then it is admitted, all or
//! nothing: a slot, memory for the Call, for each eligible result and for a long Reply. Where
//! any of it is missing, the record stays where it is and the socket is not read, which is how
//! a client is slowed down. Once admitted it is read straight into its memory and submitted;
//! its eligible arguments are Read from there by the peer, its results Written where the memory
//! for them was reserved. The Reply goes to the socket by one vectored write, results from
//! where they were written; then slot and memory are free again.
//!
//! # When things end
//!
//! A client that leaves has its Calls cancelled, but their memory is the peer's to write until
//! the engine says otherwise (RFC 8166 section 4.4.1), and is kept until then. When all are
//! over, the RDMA connection ends; at the latest after [`LINGER`]. When the RDMA connection is
//! lost, the TCP connection is closed: the client connects again and sends its calls again. Where
//! the loss says that the peer knows version one alone (V2-09), it is closed with the session
//! only, by who remembers that: the client must not be back before it is known. A single Call that fails gets SYSTEM_ERR, so that its client does not wait for ever.

mod restore;
mod room;
mod settle;

use crate::answers::{self, RpcError};
use crate::binding::{Binding, CALL_HEAD_BYTES};
use crate::counters::Counters;
use crate::flights::Flights;
use crate::parts::split;
use crate::record::{Head, RecordReader, RecordWriter, Refusal, Step};
use crate::{Upper, Watch};
use room::{Memory, Room};
use rpcrdma_engine::{Call, CloseReason, Connection, Event, Io, SlotId, Span};
use rpcrdma_wire::Xid;
use rpcrdma_wire::rpc::CallHeader;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::convert::Infallible;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long Calls of a client that has left may keep the RDMA connection.
pub const LINGER: Duration = Duration::from_secs(30);

/// How long a client may stay in the middle of a record that has been given memory, without a
/// single octet of it.
pub const STALL: Duration = Duration::from_secs(30);

/// Between two looks at a client whose record waits: a look is a system call.
const LOOK: Duration = Duration::from_secs(1);

/// Records handled before others get their turn.
const BURST: usize = 64;

/// Places in the queue to the client beyond one for each slot: for errors made on the spot.
const SPARE_PLACES: usize = 8;

/// How a back treats its connections. No length may exceed the pool's largest span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackSettings {
    /// Calls of one connection at a time: the engine's credits.
    pub slots: u16,
    /// Longest Call record taken from a client, octets.
    pub call_bytes: u32,
    /// Most memory for one eligible result, octets, whatever the client's count says.
    pub result_bytes: u32,
    /// Most memory for one long Reply, octets.
    pub reply_bytes: u32,
    /// Memory for the Reply of a Call that has no bound, octets.
    pub unbound_reply_bytes: u32,
}

/// A Call that has been admitted and is being read.
#[derive(Debug)]
struct Admitted {
    header: CallHeader,
    binding: Binding,
    room: Room,
    memory: Memory,
}

/// A Call the engine has.
#[derive(Debug)]
struct Flight {
    binding: Binding,
    room: Room,
    memory: Memory,
    /// It has been sent again with more room.
    enlarged: bool,
}

/// What is kept while a Reply is being written.
#[derive(Debug)]
struct Answer {
    /// The engine's slot, for the receive buffer the Reply may be in; none for an error made here.
    slot: Option<SlotId>,
    memory: Memory,
}

/// What became of a record whose head is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    /// It is being read, or skipped.
    Going,
    /// Something is missing: later.
    Waits,
    /// It is not one that a client may send.
    Refused,
}

/// What is known of how a client comes on.
#[derive(Debug, Default)]
struct Watched {
    /// Octets it had sent.
    received: u64,
    /// Since when it is no more, with a record begun.
    since: Option<Instant>,
    /// When it is looked for next.
    next: Option<Instant>,
}

/// The back gateway of one TCP connection.
#[derive(Debug)]
pub struct Back {
    /// The client; `None` once it has left or been closed.
    stream: Option<TcpStream>,
    /// The same, of a connection that is over and whose client is not to know before this is
    /// dropped.
    parting: Option<TcpStream>,
    reader: RecordReader,
    writer: RecordWriter<Answer>,
    /// Of the reader's own count, what has been counted already.
    copied: u64,
    reading: Option<Admitted>,
    flights: Flights<Flight>,
    /// The connection was lost with Calls in flight.
    cut_off: bool,
    /// When a connection without a client is ended.
    deadline: Option<Instant>,
    watched: Watched,
    settings: BackSettings,
    counters: Counters,
}

impl Back {
    /// The gateway of a client that has connected by TCP.
    #[must_use]
    pub fn new(stream: TcpStream, settings: &BackSettings) -> Self {
        Self {
            stream: Some(stream),
            parting: None,
            reader: RecordReader::new(CALL_HEAD_BYTES as usize, settings.call_bytes),
            writer: RecordWriter::new(usize::from(settings.slots) + SPARE_PLACES),
            copied: 0,
            reading: None,
            flights: Flights::new(settings.slots),
            cut_off: false,
            deadline: None,
            watched: Watched::default(),
            settings: *settings,
            counters: Counters::default(),
        }
    }

    /// Its connection ended while the upstream owed answers.
    #[must_use]
    pub const fn was_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Writes what is queued, then reads what there is place for. True: there may be more.
    fn advance<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>) -> bool {
        self.flush(conn, io);
        for _ in 0..BURST {
            let Some(stream) = &mut self.stream else {
                return false;
            };
            let step = self.reader.step(stream, io);
            self.counters.payload_copies += self.reader.copied() - self.copied;
            self.copied = self.reader.copied();
            match step {
                Ok(Step::Blocked) => return false,
                Ok(Step::Head(head)) => match self.admit(conn, io, head) {
                    Admission::Going => {}
                    Admission::Waits => return false,
                    Admission::Refused => self.refuse(conn, io),
                },
                Ok(Step::Record(message)) => self.submit(conn, io, message),
                Ok(Step::Skipped(None)) => {}
                Ok(Step::Ended { .. }) | Err(Refusal::Stream(_)) => {
                    self.counters.clients_left += 1;
                    self.leave(conn, io);
                }
                Ok(Step::Skipped(Some(_))) | Err(_) => self.refuse(conn, io),
            }
        }
        true
    }

    /// Once a [`LOOK`], at a client whose octets do not come or are not read. One that is gone
    /// while its record waits is not noticed by reading: its end stands behind that record, and
    /// what the record waits for may be held by its own Calls. One that stops in the middle of a
    /// record holds memory that others wait for.
    fn look_after<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, now: Instant) {
        let received = self.reader.received();
        if received != self.watched.received || self.reading.is_none() {
            self.watched.since = None;
        }
        self.watched.received = received;
        let still = now.saturating_duration_since(*self.watched.since.get_or_insert(now));
        let waits = self.reader.undecided();
        if waits && now >= *self.watched.next.get_or_insert(now) {
            self.watched.next = Some(now + LOOK);
            if has_left(self.stream.as_ref()) {
                self.counters.clients_left += 1;
                self.leave(conn, io);
            }
        }
        if self.reading.is_some() && still >= STALL {
            self.refuse(conn, io);
        }
    }

    /// Takes all a Call needs, or nothing.
    fn admit<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, head: Head) -> Admission {
        let octets = self.reader.head();
        let Some(header) = CallHeader::parse(octets) else {
            return Admission::Refused;
        };
        if self.flights.contains_xid(header.xid) {
            self.counters.duplicate_calls += 1;
            self.reader.skip();
            return Admission::Going;
        }
        // Each Call in flight will need a place for its Reply.
        if !conn.can_submit() || self.writer.places() <= self.flights.len() {
            return Admission::Waits;
        }
        let binding = Binding::of(&header);
        let expected = binding.expected(octets, header.arguments);
        let inline = |chunks| conn.reply_inline_bytes(chunks);
        let room = Room::of(&expected, inline, &self.settings);
        let len = head.len.unwrap_or(self.settings.call_bytes);
        let Some(memory) = Memory::reserve(io, len, &room) else {
            self.counters.memory_waits += 1;
            return Admission::Waits;
        };
        self.reader.accept(io, memory.call.unwrap_or_default());
        self.reading = Some(Admitted {
            header,
            binding,
            room,
            memory,
        });
        Admission::Going
    }

    /// A Call is here, whole.
    fn submit<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, message: Span) {
        let Some(Admitted {
            header,
            binding,
            room,
            memory,
        }) = self.reading.take()
        else {
            return;
        };
        self.counters.records_in += 1;
        let items = binding.call_items(io.octets(message), header.arguments);
        for item in &items {
            self.counters.items_named += 1;
            self.counters.item_bytes += u64::from(item.len);
        }
        let parts = split(message, &items);
        let results = memory.offered(&room);
        let xid = header.xid;
        let call = Call {
            xid,
            parts: &parts,
            results: &results,
            reply: memory.reply,
        };
        match conn.submit(io, call) {
            Ok(slot) => {
                let flight = Flight {
                    binding,
                    room,
                    memory,
                    enlarged: false,
                };
                self.flights.insert(xid, slot, flight);
            }
            Err(_) => {
                memory.release(io);
                self.fail(conn, io, xid);
            }
        }
    }

    /// Tells the client that a Call has failed.
    fn fail<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, xid: Xid) {
        if self.stream.is_none() {
            return;
        }
        self.counters.local_errors += 1;
        let answer = Answer {
            slot: None,
            memory: Memory::default(),
        };
        let error = answers::short(xid, RpcError::System);
        if self.writer.push(&error, &[], answer).is_err() {
            self.leave(conn, io);
        }
    }

    /// Hands queued Replies to the socket; what is written is over.
    fn flush<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        let flushed = self.writer.flush(stream, io);
        while let Some(answer) = self.writer.take_written() {
            self.counters.records_out += 1;
            end(conn, io, answer);
        }
        if flushed.is_err() {
            self.counters.clients_left += 1;
            self.leave(conn, io);
        }
    }

    /// Closes a client that sent what it must not.
    fn refuse<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>) {
        self.counters.refused_records += 1;
        self.leave(conn, io);
    }

    /// Ends the TCP side: nothing is read or written any more, Calls being read or answered
    /// are dropped.
    fn disconnect<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>) {
        self.stream = None;
        if let Some(admitted) = self.reading.take() {
            admitted.memory.release(io);
        }
        while let Some(answer) = self.writer.take_any() {
            end(conn, io, answer);
        }
    }
}

/// True when the client has closed its side, whatever is still to be read from it.
fn has_left(stream: Option<&TcpStream>) -> bool {
    let Some(stream) = stream else { return true };
    let mut watched = [PollFd::new(stream, PollFlags::RDHUP)];
    let no_wait = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // Interrupted: the next try will tell.
    let polled = poll(&mut watched, Some(&no_wait));
    let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    polled.is_ok() && watched.iter().any(|fd| fd.revents().intersects(gone))
}

/// A Reply is written, or nobody wants it any more.
fn end<'m>(conn: &mut Connection, io: &mut impl Io<'m>, answer: Answer) {
    if let Some(slot) = answer.slot {
        conn.finish(io, slot);
    }
    answer.memory.release(io);
}

impl Upper for Back {
    type Order = Infallible;
    type Notice = Infallible;
    type Counters = Counters;

    fn established<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        watch: &mut impl Watch,
        _: Instant,
    ) {
        let Some(stream) = &self.stream else { return };
        let ready = stream
            .set_nonblocking(true)
            .and_then(|()| watch.watch(stream.as_fd()));
        if ready.is_err() {
            self.leave(conn, io);
        }
    }

    fn event<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, event: Event, _: Instant) {
        self.settle(conn, io, event);
        self.flush(conn, io);
        // A slot or memory may be free now for a record that waits; what follows it on the
        // socket had its edge long ago.
        if self.reader.undecided() {
            self.advance(conn, io);
        }
    }

    fn order<'m>(
        &mut self,
        _: &mut Connection,
        _: &mut impl Io<'m>,
        _: &mut impl Watch,
        order: Infallible,
        _: Instant,
    ) {
        match order {}
    }

    fn turn<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, now: Instant) -> bool {
        if self.stream.is_none() && now >= *self.deadline.get_or_insert(now + LINGER) {
            conn.close(io, CloseReason::Local);
        }
        let more = self.advance(conn, io);
        self.look_after(conn, io, now);
        more
    }

    fn lost<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, _: CloseReason) {
        if conn.broke_while_offering() {
            self.parting = self.stream.take();
        }
        self.disconnect(conn, io);
    }

    fn has_notice(&self) -> bool {
        false
    }

    fn take_notice(&mut self) -> Option<Infallible> {
        None
    }

    fn count(&mut self, sum: &mut Counters) {
        self.counters.move_into(sum);
    }
}
