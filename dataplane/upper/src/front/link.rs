//! One backend of one RDMA connection: its TCP connection, the Calls on their way to it, and
//! the Replies on their way back.
//!
//! A Call waits in `waiting`, in order, until there is a socket and memory for its longest
//! Reply; then its record is queued where it lies, and it is in flight. So a Reply that comes
//! always has a place to go, and the socket is always read.

use crate::binding::Binding;
use crate::counters::Counters;
use crate::flights::Flights;
use crate::parts::split;
use crate::record::{Head, RecordReader, RecordWriter, Step};
use rpcrdma_engine::{Connection, Io, Reply, SlotId, Span};
use rpcrdma_wire::rpc::{self, CallHeader, MessageType, ReplyHeader};
use std::collections::VecDeque;
use std::net::TcpStream;

/// Octets of a Reply that are looked at before the rest is read: its xid would do; with the
/// end of one small Reply often comes the whole of the next.
const HEAD_BYTES: usize = 256;

/// Replies handled before others get their turn.
const BURST: usize = 64;

/// The backend's stream ended or makes no sense any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    /// The backend sent what it must not.
    pub(super) refused: bool,
}

const GONE: Broken = Broken { refused: false };
const REFUSED: Broken = Broken { refused: true };

/// Where a link is in its life.
#[derive(Debug)]
enum State {
    /// No socket, and none asked for.
    Down,
    /// A socket is needed: the control thread is to be told.
    Wanted,
    /// It has been told.
    Asked,
    /// Connected.
    Up(Box<Channel>),
}

#[derive(Debug)]
struct Channel {
    stream: TcpStream,
    reader: RecordReader,
    writer: RecordWriter<SlotId>,
    /// Of the reader's own count, what has been counted already.
    copied: u64,
}

/// A Call the backend has, or is being given.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    binding: Binding,
    /// Where its Reply goes.
    room: Span,
    /// Its record is written whole. Before that nobody can have answered it.
    sent: bool,
}

/// One backend as one RDMA connection knows it.
#[derive(Debug)]
pub(super) struct Link {
    state: State,
    waiting: VecDeque<SlotId>,
    flights: Flights<Awaited>,
    /// The Call whose Reply is being read.
    receiving: Option<(SlotId, Awaited)>,
    slots: u16,
    /// Longest Reply taken, octets.
    reply_bytes: u32,
}

impl Link {
    pub(super) fn new(slots: u16, reply_bytes: u32) -> Self {
        Self {
            state: State::Down,
            waiting: VecDeque::with_capacity(slots.into()),
            flights: Flights::new(slots),
            receiving: None,
            slots,
            reply_bytes,
        }
    }

    /// Puts a Call behind those that wait. True when that makes a socket needed.
    pub(super) fn enqueue(&mut self, slot: SlotId) -> bool {
        self.waiting.push_back(slot);
        self.want()
    }

    /// Asks for a socket, if Calls wait and there is none. True when that is news.
    pub(super) fn want(&mut self) -> bool {
        let news = matches!(self.state, State::Down) && !self.waiting.is_empty();
        if news {
            self.state = State::Wanted;
        }
        news
    }

    /// True, once, when the control thread is to be asked for a socket.
    pub(super) fn ask(&mut self) -> bool {
        let wanted = matches!(self.state, State::Wanted);
        if wanted {
            self.state = State::Asked;
        }
        wanted
    }

    /// The socket is here: non-blocking, and watched. A second one is closed again.
    pub(super) fn connected(&mut self, stream: TcpStream) {
        if matches!(self.state, State::Up(_)) {
            return;
        }
        self.state = State::Up(Box::new(Channel {
            stream,
            reader: RecordReader::new(HEAD_BYTES, self.reply_bytes),
            writer: RecordWriter::new(self.slots.into()),
            copied: 0,
        }));
    }

    /// Nothing has been given to the backend that it has not answered.
    pub(super) fn quiet(&self) -> bool {
        self.flights.is_empty() && self.receiving.is_none()
    }

    /// The socket is closed. Calls in flight stay on the books, for [`Link::abandon`].
    pub(super) fn disconnect(&mut self) {
        self.state = State::Down;
    }

    /// Gives waiting Calls to the backend, as many as have room.
    pub(super) fn pump<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        counters: &mut Counters,
    ) -> Result<(), Broken> {
        let State::Up(channel) = &mut self.state else {
            return Ok(());
        };
        while let Some(&slot) = self.waiting.front() {
            let Some(call) = conn.call(io, slot) else {
                self.waiting.pop_front();
                continue;
            };
            if !channel.writer.has_place() {
                break;
            }
            let Some(room) = io.reserve(call.reply_room().min(self.reply_bytes)) else {
                counters.memory_waits += 1;
                break;
            };
            self.waiting.pop_front();
            if channel.writer.push(&[], &[call.message], slot).is_err() {
                io.release(room);
                conn.abandon(io, slot, true);
                continue;
            }
            let header = CallHeader::parse(io.octets(call.message));
            let binding = header.as_ref().map_or(Binding::NONE, Binding::of);
            self.flights.insert(
                call.xid,
                slot,
                Awaited {
                    binding,
                    room,
                    sent: false,
                },
            );
        }
        self.flush(io, counters)
    }

    fn flush<'m>(&mut self, io: &mut impl Io<'m>, counters: &mut Counters) -> Result<(), Broken> {
        let State::Up(channel) = &mut self.state else {
            return Ok(());
        };
        channel
            .writer
            .flush(&mut channel.stream, io)
            .map_err(|_| GONE)?;
        while let Some(slot) = channel.writer.take_written() {
            counters.records_out += 1;
            if let Some(awaited) = self.flights.by_slot_mut(slot) {
                awaited.sent = true;
            }
        }
        Ok(())
    }

    /// Reads Replies and answers their Calls. True: there may be more.
    pub(super) fn read<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        counters: &mut Counters,
    ) -> Result<bool, Broken> {
        for _ in 0..BURST {
            let State::Up(channel) = &mut self.state else {
                return Ok(false);
            };
            let step = channel.reader.step(&mut channel.stream, io);
            counters.payload_copies += channel.reader.copied() - channel.copied;
            channel.copied = channel.reader.copied();
            match step {
                Ok(Step::Blocked) => return Ok(false),
                Ok(Step::Head(head)) => self.begin(conn, io, counters, head)?,
                Ok(Step::Record(message)) => self.answer(conn, io, counters, message),
                Ok(Step::Skipped(_)) => self.outgrown(conn, io, counters),
                Ok(Step::Ended { .. }) => return Err(GONE),
                Err(crate::record::Refusal::Stream(_)) => return Err(GONE),
                Err(_) => return Err(REFUSED),
            }
        }
        Ok(true)
    }

    /// A Reply has begun: finds its Call, and the memory reserved for it.
    fn begin<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        counters: &mut Counters,
        head: Head,
    ) -> Result<(), Broken> {
        let State::Up(channel) = &mut self.state else {
            return Ok(());
        };
        let Some((xid, MessageType::Reply)) = rpc::peek(channel.reader.head()) else {
            return Err(REFUSED);
        };
        if self
            .flights
            .by_xid(xid)
            .is_some_and(|awaited| !awaited.sent)
        {
            return Err(REFUSED);
        }
        let Some((slot, mut awaited)) = self.flights.take_xid(xid) else {
            counters.unknown_replies += 1;
            channel.reader.skip();
            return Ok(());
        };
        let len = head.len.unwrap_or(0);
        if len > awaited.room.len {
            // Longer than can be sent as it is. Whole, the engine can keep it for a retry with
            // more room (V2-20); so it gets memory if there is any, but nobody waits for that.
            counters.long_replies += 1;
            io.release(awaited.room);
            let Some(room) = io.reserve(len) else {
                channel.reader.skip();
                conn.abandon(io, slot, true);
                return Ok(());
            };
            awaited.room = room;
        }
        channel.reader.accept(io, awaited.room);
        self.receiving = Some((slot, awaited));
        Ok(())
    }

    /// A Reply is here, whole.
    fn answer<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        counters: &mut Counters,
        message: Span,
    ) {
        let Some((slot, awaited)) = self.receiving.take() else {
            return;
        };
        counters.records_in += 1;
        let octets = io.octets(message);
        let succeeded = ReplyHeader::parse(octets).filter(ReplyHeader::succeeded);
        let items = succeeded
            .map(|header| awaited.binding.reply_items(octets, header.results))
            .unwrap_or_default();
        for item in &items {
            counters.items_named += 1;
            counters.item_bytes += u64::from(item.len);
        }
        let parts = split(message, &items);
        conn.answer(
            io,
            slot,
            Reply {
                head: &[],
                parts: &parts,
                memory: Some(awaited.room),
            },
        );
    }

    /// A Reply in several fragments grew past the room for it, and has been read to its end.
    fn outgrown<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        counters: &mut Counters,
    ) {
        let Some((slot, awaited)) = self.receiving.take() else {
            return;
        };
        counters.long_replies += 1;
        io.release(awaited.room);
        conn.abandon(io, slot, true);
    }

    /// Gives up every Call here and all memory held for them.
    pub(super) fn abandon<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>) {
        self.state = State::Down;
        while let Some(slot) = self.waiting.pop_front() {
            conn.abandon(io, slot, false);
        }
        let receiving = self.receiving.take();
        for (slot, awaited) in receiving
            .into_iter()
            .chain(std::iter::from_fn(|| self.flights.pop()))
        {
            io.release(awaited.room);
            conn.abandon(io, slot, false);
        }
    }
}
