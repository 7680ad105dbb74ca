//! One engine and a peer that does what a test says, message by message.
//!
//! For tests of single rules. Work is done as soon as it can be, in order, so that a scene
//! plays the same every time; [`Scene::held`] stops the engine's send queue where a test needs
//! the moment before.

use crate::chance::Chance;
use crate::device::Faults;
use crate::link::{Desk, Link};
use bumpalo::Bump;
use rpcrdma_engine::{
    Access, Call, Connection, Event, Io, Octets, Part, Refused, Reply, Setup, SlotId, Span, WorkId,
};
use rpcrdma_wire::private_data::PrivateData;
use rpcrdma_wire::{
    Direction, Emitter, Handle, Header, Limits, Procedure, Segment, Version, Xid, parse,
};
use std::collections::{HashMap, VecDeque};

const ENGINE: usize = 0;
const PEER: usize = 1;
const PEER_RECEIVES: usize = 64;
const PEER_BUFFER_BYTES: u32 = 64 << 10;

/// A place for scenes to play in: what their memory is copied into.
#[must_use]
pub fn stage() -> Bump {
    Bump::new()
}

/// One engine and its scripted peer.
pub struct Scene<'m> {
    /// The connection between the two.
    pub link: Link<'m>,
    /// The engine.
    pub engine: Connection,
    /// Nothing that the engine posts is carried out.
    pub held: bool,
    events: VecDeque<Event>,
    said: VecDeque<Vec<u8>>,
    invalidated: Vec<Handle>,
    exposed: HashMap<u32, Span>,
    lent: HashMap<SlotId, Lent>,
    next: u64,
}

/// Memory lent to the engine for a Call.
#[derive(Clone, Debug, Default)]
pub struct Lent {
    /// The message's blocks.
    pub message: Vec<Span>,
    /// Where results go.
    pub results: Vec<Span>,
    /// Where a long Reply goes.
    pub reply: Option<Span>,
}

/// What a Call of the engine is made of.
#[derive(Clone, Debug, Default)]
pub struct Made<'a> {
    /// Octets, and whether they are an item.
    pub parts: Vec<(&'a [u8], bool)>,
    /// Octets of room for each result.
    pub results: Vec<u32>,
    /// Octets of room for a long Reply.
    pub reply: Option<u32>,
}

impl<'m> Scene<'m> {
    /// A connected engine that was told so, its peer's private data as its own.
    #[must_use]
    pub fn new(stage: &'m Bump, setup: Setup) -> Scene<'m> {
        Scene::with_private_data(stage, setup, Some(setup.private_data()))
    }

    /// A connected engine whose peer sent this private data.
    #[must_use]
    pub fn with_private_data(
        stage: &'m Bump,
        setup: Setup,
        private: Option<PrivateData>,
    ) -> Scene<'m> {
        let mut scene = Scene::unannounced(stage, setup);
        scene.announce(private);
        scene
    }

    /// A connected engine that was not told so.
    #[must_use]
    pub fn unannounced(stage: &'m Bump, setup: Setup) -> Scene<'m> {
        let faults = Faults {
            pending_percent: 0,
            memory_bytes: 8 << 20,
            hostile_peer: true,
            ..Faults::default()
        };
        let link = Link::new(stage, &mut Chance::new(1), [faults; 2]);
        let mut scene = Scene {
            link,
            engine: Connection::new(setup),
            held: false,
            events: VecDeque::new(),
            said: VecDeque::new(),
            invalidated: Vec::new(),
            exposed: HashMap::new(),
            lent: HashMap::new(),
            next: 0,
        };
        scene.connect();
        scene
    }

    fn connect(&mut self) {
        let adopted = self.engine.adopt(&mut self.link.desk(ENGINE));
        assert_eq!(adopted, Ok(()));
        self.link.connect();
        for _ in 0..PEER_RECEIVES {
            self.post_peer();
        }
    }

    /// The engine is told that it is connected.
    pub fn announce(&mut self, private: Option<PrivateData>) {
        let event = self
            .engine
            .established(&mut self.link.desk(ENGINE), private);
        self.note(event);
        self.play();
    }

    /// The same engine on a new connection, after [`Event::Closed`].
    pub fn reconnect(&mut self) {
        self.drain_peer();
        self.link.ends[PEER].exposures.forget();
        self.link.renew();
        assert!(self.engine.reopen());
        self.connect();
        self.announce(None);
    }

    fn drain_peer(&mut self) {
        self.link.take_notice(PEER);
        self.link.ends[PEER].break_down();
        self.link.ends[PEER].finished.clear();
        while let Some(arrival) = self.link.ends[PEER].arrived.pop_front() {
            self.link.desk(PEER).release(arrival.span);
        }
    }

    fn post_peer(&mut self) {
        self.next += 1;
        let id = WorkId(self.next);
        let desk = &mut self.link.desk(PEER);
        let span = desk.reserve(PEER_BUFFER_BYTES).expect("memory");
        desk.post_receive(span, id).expect("a receive");
    }

    /// The engine's side of the connection.
    pub fn desk(&mut self) -> Desk<'_, 'm> {
        self.link.desk(ENGINE)
    }

    /// Does something with the engine and its desk, then plays on.
    pub fn with<T>(&mut self, act: impl FnOnce(&mut Connection, &mut Desk<'_, 'm>) -> T) -> T {
        let done = act(&mut self.engine, &mut self.link.desk(ENGINE));
        self.play();
        done
    }

    fn note(&mut self, event: Event) {
        if event != Event::None {
            self.events.push_back(event);
        }
    }

    /// Everything that can go on does.
    pub fn play(&mut self) {
        while self.play_one() {}
    }

    fn play_one(&mut self) -> bool {
        if let Some(finished) = self.link.ends[ENGINE].finished.pop_front() {
            let desk = &mut self.link.desk(ENGINE);
            let event = self.engine.settle(desk, finished.work.id, finished.result);
            self.note(event);
        } else if let Some(arrival) = self.link.ends[ENGINE].arrived.pop_front() {
            let desk = &mut self.link.desk(ENGINE);
            let event = match arrival.result {
                Ok((len, handle)) => self.engine.receive(desk, arrival.id, len, handle),
                Err(error) => self.engine.settle(desk, arrival.id, Err(error)),
            };
            self.note(event);
        } else if self.engine.runnable() {
            let event = self.engine.resume(&mut self.link.desk(ENGINE));
            self.note(event);
        } else if !self.held && self.link.execute(ENGINE) {
            // One piece of work is done.
        } else if self.link.take_notice(ENGINE) {
            let event = self.engine.disconnected(&mut self.link.desk(ENGINE));
            self.note(event);
        } else {
            return self.play_peer();
        }
        true
    }

    fn play_peer(&mut self) -> bool {
        if self.link.execute(PEER) {
            return true;
        }
        self.link.ends[PEER].finished.clear();
        let Some(arrival) = self.link.ends[PEER].arrived.pop_front() else {
            return false;
        };
        let desk = &mut self.link.desk(PEER);
        if let Ok((len, invalidated)) = arrival.result {
            let message = desk.octets(arrival.span.first(len)).to_vec();
            desk.release(arrival.span);
            self.said.push_back(message);
            self.invalidated.extend(invalidated);
            self.post_peer();
        } else {
            desk.release(arrival.span);
        }
        true
    }

    /// The next event of the engine; `None` where there is none.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The Call that the engine hands up now.
    pub fn called(&mut self) -> SlotId {
        match self.event() {
            Some(Event::Call(slot)) => slot,
            other => panic!("{other:?} where a Call was expected"),
        }
    }

    /// The next message that the peer got; `None` where there is none.
    pub fn said(&mut self) -> Option<Vec<u8>> {
        self.said.pop_front()
    }

    /// The next message that the peer got.
    pub fn heard(&mut self) -> Vec<u8> {
        self.said().expect("a message to the peer")
    }

    /// The handles of the peer that were invalidated by messages to it.
    pub fn invalidated(&mut self) -> Vec<Handle> {
        std::mem::take(&mut self.invalidated)
    }

    /// The peer sends a message.
    pub fn tell(&mut self, message: &[u8]) {
        self.tell_with(message, None);
    }

    /// The peer sends a message and invalidates a handle of the engine.
    pub fn tell_with(&mut self, message: &[u8], invalidate: Option<Handle>) {
        self.next += 1;
        let id = WorkId(self.next);
        let desk = &mut self.link.desk(PEER);
        let sent = desk.send(&[Octets::Bytes(message)], invalidate, id);
        assert!(sent.is_ok(), "the peer cannot send");
        self.play();
    }

    /// The peer exposes some octets.
    pub fn expose(&mut self, octets: &[u8], access: Access) -> Segment {
        let desk = &mut self.link.desk(PEER);
        let len = u32::try_from(octets.len()).expect("short");
        let span = desk.reserve(len).expect("memory");
        desk.fill(span, octets);
        let segment = desk.expose(span, access).expect("a handle");
        self.exposed.insert(segment.handle.0, span);
        segment
    }

    /// What stands in memory that the peer exposed.
    #[must_use]
    pub fn exposed(&self, segment: Segment) -> Vec<u8> {
        let span = self.exposed[&segment.handle.0];
        self.link.ends[PEER].memory.octets(span).to_vec()
    }

    /// The peer writes to the engine's memory. True when it could.
    pub fn write(&mut self, to: Segment, octets: &[u8]) -> bool {
        let Some(span) = self.link.ends[ENGINE].exposures.reach(to, Access::Write) else {
            return false;
        };
        let len = u32::try_from(octets.len()).expect("short");
        let memory = &mut self.link.ends[ENGINE].memory;
        memory.octets_mut(span.first(len)).copy_from_slice(octets);
        true
    }

    /// What the peer finds at a place of the engine's memory that it may read.
    #[must_use]
    pub fn read(&self, from: Segment) -> Option<Vec<u8>> {
        let end = &self.link.ends[ENGINE];
        let span = end.exposures.reach(from, Access::Read)?;
        Some(end.memory.octets(span).to_vec())
    }

    /// The engine makes a Call.
    ///
    /// # Errors
    ///
    /// As [`Connection::submit`].
    pub fn submit(&mut self, xid: u32, made: &Made<'_>) -> Result<SlotId, Refused> {
        let desk = &mut self.link.desk(ENGINE);
        let mut take = |len: usize| {
            let len = u32::try_from(len).expect("short");
            desk.reserve(len).expect("memory")
        };
        let lent = Lent {
            message: made.parts.iter().map(|part| take(part.0.len())).collect(),
            results: made.results.iter().map(|len| take(*len as usize)).collect(),
            reply: made.reply.map(|len| take(len as usize)),
        };
        for (span, (octets, _)) in lent.message.iter().zip(&made.parts) {
            desk.fill(*span, octets);
        }
        let items = made.parts.iter().map(|part| part.1);
        let parts: Vec<Part> = lent
            .message
            .iter()
            .zip(items)
            .map(|(&span, item)| Part { span, item })
            .collect();
        let call = Call {
            xid: Xid(xid),
            parts: &parts,
            results: &lent.results,
            reply: lent.reply,
        };
        let slot = match self.engine.submit(desk, call) {
            Ok(slot) => slot,
            Err(refused) => {
                let blocks = lent.message.into_iter().chain(lent.results);
                blocks
                    .chain(lent.reply)
                    .for_each(|block| desk.release(block));
                return Err(refused);
            }
        };
        self.lent.insert(slot, lent);
        self.play();
        Ok(slot)
    }

    /// The engine makes a Call of `bytes` octets without items, and has no room for results.
    pub fn call(&mut self, xid: u32, bytes: usize) -> SlotId {
        let message = rpc(Direction::Call, xid, bytes);
        let made = Made {
            parts: vec![(&message, false)],
            ..Made::default()
        };
        self.submit(xid, &made).expect("the engine takes it")
    }

    /// The memory lent for a Call.
    #[must_use]
    pub fn lent(&self, slot: SlotId) -> &Lent {
        &self.lent[&slot]
    }

    /// The octets of memory that is the engine's side's own.
    pub fn octets(&mut self, span: Span) -> &'m [u8] {
        self.link.desk(ENGINE).octets(span)
    }

    /// The service answers a Call with `parts`, each of them octets and whether it is an item.
    pub fn answer(&mut self, slot: SlotId, parts: &[(&[u8], bool)]) {
        let desk = &mut self.link.desk(ENGINE);
        let total: usize = parts.iter().map(|part| part.0.len()).sum();
        let memory = desk.reserve(u32::try_from(total).expect("short"));
        let memory = memory.expect("memory");
        let mut at = 0;
        let mut laid = Vec::new();
        for (octets, item) in parts {
            let len = u32::try_from(octets.len()).expect("short");
            let span = memory.skip(at).first(len);
            desk.fill(span, octets);
            laid.push(Part { span, item: *item });
            at += len;
        }
        let reply = Reply {
            head: &[],
            parts: &laid,
            memory: Some(memory),
        };
        let event = self.engine.answer(desk, slot, reply);
        self.note(event);
        self.play();
    }

    /// The service answers a Call with octets of ordinary memory alone.
    pub fn answer_with(&mut self, slot: SlotId, head: &[u8]) {
        let reply = Reply {
            head,
            parts: &[],
            memory: None,
        };
        let event = self.engine.answer(&mut self.link.desk(ENGINE), slot, reply);
        self.note(event);
        self.play();
    }

    /// Everything came back: the engine has said [`Event::Closed`], and nothing is in use but
    /// what was lent for Calls.
    pub fn check_closed(&mut self) {
        assert_eq!(self.events.pop_back(), Some(Event::Closed));
        for (_, lent) in self.lent.drain() {
            let blocks = lent.message.into_iter().chain(lent.results);
            for block in blocks.chain(lent.reply) {
                self.link.desk(ENGINE).release(block);
            }
        }
        assert_eq!(self.link.ends[ENGINE].memory.blocks(), 0);
        assert_eq!(self.link.ends[ENGINE].exposures(), 0);
    }
}

/// An RPC message of `bytes` octets, eight at least, that begins as one does.
#[must_use]
pub fn rpc(direction: Direction, xid: u32, bytes: usize) -> Vec<u8> {
    let mut message = vec![0x5a; bytes.max(8)];
    message[..4].copy_from_slice(&xid.to_be_bytes());
    message[4..8].copy_from_slice(&direction.code().to_be_bytes());
    message
}

/// A header written by hand, and what follows it.
#[must_use]
pub fn message(
    version: Version,
    procedure: Procedure,
    (xid, credits): (u32, u32),
    lists: impl FnOnce(&mut Emitter<'_>),
    payload: &[u8],
) -> Vec<u8> {
    let mut buf = vec![0; 4096];
    let mut header = Emitter::new(&mut buf);
    header.start(version, Xid(xid), credits, procedure);
    lists(&mut header);
    let len = header.finish().expect("a short header");
    buf.truncate(len);
    buf.extend_from_slice(payload);
    buf
}

/// The lists of a message that has none.
pub fn no_lists(direction: Direction) -> impl FnOnce(&mut Emitter<'_>) {
    move |header| {
        header.direction(direction, None);
        header.end_reads().end_writes();
        header.reply_chunk(None::<std::iter::Empty<Segment>>);
    }
}

/// An MSG without chunks that carries an RPC message of `bytes` octets.
#[must_use]
pub fn plain(
    version: Version,
    direction: Direction,
    xid: u32,
    credits: u32,
    bytes: usize,
) -> Vec<u8> {
    let payload = rpc(direction, xid, bytes);
    message(
        version,
        Procedure::Msg,
        (xid, credits),
        no_lists(direction),
        &payload,
    )
}

/// What a message says.
///
/// # Panics
///
/// When it cannot be parsed.
#[must_use]
pub fn header(message: &[u8]) -> Header<'_> {
    let limits = Limits {
        read_segments: 64,
        chunk_segments: 64,
        ..Limits::default()
    };
    parse(message, &limits).expect("a good message")
}
