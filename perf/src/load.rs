//! The load: a closed loop of Calls on one connection, each answered Call making room for the
//! next, timed by one reading of the clock per answer.
//!
//! A slot's latency is from handing its Call to the engine to the Reply coming up, so waiting
//! for a credit counts. The reading at a Reply is also the start of the Call that follows it in
//! the same slot: nothing else happens in between.

use crate::workload::Workload;
use anyhow::Result;
use arrayvec::ArrayVec;
use hdrhistogram::Histogram;
use quanta::Clock;
use rpcrdma_engine::{
    Call, CloseReason, Connection, Event, IncomingReply, Io, Part, Refused, SlotId, Span,
};
use rpcrdma_upper::Watch;
use rpcrdma_wire::Xid;
use std::time::Instant;

/// Longest latency told apart from longer ones, nanoseconds.
const LONGEST_NS: u64 = 60_000_000_000;

/// Significant figures of a histogram: with three it takes 200 KiB, with two 30, which is what
/// a thousand of them should take.
#[must_use]
pub fn figures(connections: usize) -> u8 {
    if connections > 16 { 2 } else { 3 }
}

/// What one connection measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Latencies, nanoseconds.
    pub latency: Histogram<u64>,
    /// Calls answered, and answered as they should be.
    pub calls: u64,
    /// Calls that failed, or whose answer was wrong.
    pub errors: u64,
}

impl Measured {
    /// Nothing measured, to `figures` significant figures (1 to 5).
    #[must_use]
    pub fn new(figures: u8) -> Self {
        let latency = Histogram::new_with_max(LONGEST_NS, figures.clamp(1, 5));
        Self {
            latency: latency.expect("bounds that a histogram can have"),
            calls: 0,
            errors: 0,
        }
    }

    /// Forgets everything. Its memory has been written to afterwards, all of it: whoever measures next meets no page for the
    /// first time.
    pub fn reset(&mut self) {
        self.latency.reset();
        (self.calls, self.errors) = (0, 0);
    }

    /// Adds what another one measured.
    ///
    /// # Errors
    ///
    /// It has figures that there is no place for here.
    pub fn add(&mut self, other: &Measured) -> Result<()> {
        self.latency.add(&other.latency)?;
        self.calls += other.calls;
        self.errors += other.errors;
        Ok(())
    }
}

/// What the control thread tells a load.
#[derive(Clone, Debug)]
pub enum Order {
    /// Forget what was measured: it was warming up.
    Measure,
    /// Measure into this from now on, and hand back what there is: [`Notice::Measured`].
    Exchange(Box<Measured>),
    /// No further Calls.
    Stop,
}

/// What a load tells the control thread.
#[derive(Debug)]
pub enum Notice {
    /// The first Call was answered.
    Running,
    /// What was measured until [`Order::Exchange`].
    Measured(Box<Measured>),
    /// Stopped, and every Call answered.
    Done,
}

/// One Call to be made over and over.
struct Lane {
    memory: Span,
    /// The Call's parts, in that memory.
    parts: ArrayVec<Part, 3>,
    /// For an eligible result.
    result: Option<Span>,
    /// For a Reply too long to come inline.
    reply: Option<Span>,
    started: u64,
    busy: bool,
}

impl Lane {
    fn give_back<'m>(&mut self, io: &mut impl Io<'m>) {
        let optional = self.result.take().into_iter().chain(self.reply.take());
        for span in optional.chain([std::mem::take(&mut self.memory)]) {
            if span.len > 0 {
                io.release(span);
            }
        }
    }
}

/// The load on one connection.
pub struct Load {
    workload: Workload,
    depth: u16,
    /// Of the service's source: lanes share them where they are more.
    blocks: u32,
    lanes: Vec<Lane>,
    /// The lane of each of the engine's slots.
    lane_of: Vec<u16>,
    clock: Clock,
    next_xid: u32,
    stopping: bool,
    lost: bool,
    running: bool,
    in_flight: u32,
    notice: Option<Notice>,
    /// Everything measured since [`Order::Measure`] or [`Order::Exchange`].
    pub measured: Measured,
}

impl Load {
    /// A load of `depth` Calls in flight, at most the connection's credits, on a service whose
    /// source has so many octets.
    #[must_use]
    pub fn new(workload: Workload, depth: u16, source_bytes: u32, figures: u8) -> Self {
        Self {
            workload,
            depth,
            blocks: workload.blocks(source_bytes),
            lanes: Vec::with_capacity(depth.into()),
            lane_of: vec![0; depth.into()],
            clock: Clock::new(),
            next_xid: 1,
            stopping: false,
            lost: false,
            running: false,
            in_flight: 0,
            notice: None,
            measured: Measured::new(figures),
        }
    }

    /// Lays out every Call in the arena, then makes each once.
    fn start<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>) {
        for _ in 0..self.depth {
            match self.lane(conn, io) {
                Some(lane) => self.lanes.push(lane),
                None => self.measured.errors += 1,
            }
        }
        let now = self.clock.raw();
        for lane in 0..self.lanes.len() {
            self.call(conn, io, lane, now);
        }
    }

    /// The block that a lane reads.
    fn block(&self, lane: u32) -> u32 {
        lane.checked_rem(self.blocks).unwrap_or(0)
    }

    /// Memory for one Call; `None` when the pool has too little.
    fn lane<'m>(&self, conn: &Connection, io: &mut impl Io<'m>) -> Option<Lane> {
        let at = u32::try_from(self.lanes.len()).unwrap_or(0);
        let memory = io.reserve(self.workload.call_bytes())?;
        let result = match self.workload.result_bytes() {
            Some(bytes) => Some(io.reserve(bytes)?),
            None => None,
        };
        let reply_bytes = self.workload.reply_bytes();
        let reply = match reply_bytes > conn.reply_inline_bytes(0) {
            true => Some(io.reserve(reply_bytes)?),
            false => None,
        };
        self.workload.lay_out(io, memory, at, self.block(at));
        Some(Lane {
            memory,
            parts: self.workload.parts(memory),
            result,
            reply,
            started: 0,
            busy: false,
        })
    }

    #[inline]
    fn call<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, at: usize, now: u64) {
        let xid = Xid(self.next_xid);
        self.next_xid = self.next_xid.wrapping_add(1);
        let Some(lane) = self.lanes.get_mut(at) else {
            return;
        };
        io.fill(lane.memory, &xid.0.to_be_bytes());
        let results = lane.result.as_slice();
        let submitted = conn.submit(
            io,
            Call {
                xid,
                parts: &lane.parts,
                results,
                reply: lane.reply,
            },
        );
        match submitted {
            Ok(slot) => {
                lane.started = now;
                lane.busy = true;
                self.in_flight += 1;
                if let (Some(place), Ok(lane)) = (
                    self.lane_of.get_mut(usize::from(slot.index)),
                    u16::try_from(at),
                ) {
                    *place = lane;
                }
            }
            Err(Refused::Busy | Refused::Broken | Refused::Unsupported) => {
                lane.busy = false;
                self.measured.errors += 1;
            }
        }
    }

    #[inline(always)]
    fn answered<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, slot: SlotId) {
        let now = self.clock.raw();
        let right = match conn.reply(slot) {
            Some(reply) => self.is_right(io, &reply, slot),
            None => false,
        };
        conn.finish(io, slot);
        self.over(conn, io, slot, now, right);
    }

    /// A Call is over: counts it and, unless stopping, makes the next one.
    #[inline(always)]
    fn over<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        slot: SlotId,
        now: u64,
        right: bool,
    ) {
        let at = self
            .lane_of
            .get(usize::from(slot.index))
            .map_or(0, |&lane| usize::from(lane));
        let Some(lane) = self.lanes.get_mut(at) else {
            return;
        };
        lane.busy = false;
        self.in_flight -= 1;
        if self.lost {
            lane.give_back(io);
        }
        if right {
            let ns = self.clock.delta_as_nanos(lane.started, now);
            self.measured.latency.saturating_record(ns);
            self.measured.calls += 1;
        } else {
            self.measured.errors += 1;
        }
        if !self.running {
            self.running = true;
            self.notice = Some(Notice::Running);
        }
        if !self.stopping {
            self.call(conn, io, at, now);
        } else if self.in_flight == 0 {
            self.notice = Some(Notice::Done);
        }
    }

    #[inline]
    fn is_right<'m>(&self, io: &impl Io<'m>, reply: &IncomingReply, slot: SlotId) -> bool {
        let at = self.lane_of.get(usize::from(slot.index));
        let Some(&at) = at else {
            return false;
        };
        let result = self.lanes.get(usize::from(at)).and_then(|lane| lane.result);
        let body = io.octets(reply.body);
        self.workload
            .is_right(body, reply.written, self.block(at.into()), |octets| {
                result.map(|span| io.octets(span.first(octets)))
            })
    }
}

impl rpcrdma_upper::Upper for Load {
    type Order = Order;
    type Notice = Notice;
    type Counters = ();

    fn established<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        _: &mut impl Watch,
        _: Instant,
    ) {
        self.start(conn, io);
    }

    #[inline]
    fn event<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, event: Event, _: Instant) {
        match event {
            Event::Reply(slot) => self.answered(conn, io, slot),
            Event::Failed(slot, _) => {
                let now = self.clock.raw();
                self.over(conn, io, slot, now, false);
            }
            Event::NeedsRoom { slot, .. } => {
                let now = self.clock.raw();
                conn.cancel(io, slot);
                self.over(conn, io, slot, now, false);
            }
            _ => {}
        }
    }

    fn order<'m>(
        &mut self,
        _: &mut Connection,
        _: &mut impl Io<'m>,
        _: &mut impl Watch,
        order: Order,
        _: Instant,
    ) {
        match order {
            Order::Measure => self.measured.reset(),
            Order::Exchange(mut other) => {
                std::mem::swap(&mut self.measured, &mut *other);
                self.notice = Some(Notice::Measured(other));
            }
            Order::Stop => {
                self.stopping = true;
                if self.in_flight == 0 {
                    self.notice = Some(Notice::Done);
                }
            }
        }
    }

    fn turn<'m>(&mut self, _: &mut Connection, _: &mut impl Io<'m>, _: Instant) -> bool {
        false
    }

    fn lost<'m>(&mut self, _: &mut Connection, io: &mut impl Io<'m>, _: CloseReason) {
        // What is in flight still ends by its events, and gives back its memory then.
        (self.stopping, self.lost) = (true, true);
        for lane in self.lanes.iter_mut().filter(|lane| !lane.busy) {
            lane.give_back(io);
        }
        if self.in_flight == 0 {
            self.notice = Some(Notice::Done);
        }
    }

    #[inline]
    fn has_notice(&self) -> bool {
        self.notice.is_some()
    }

    fn take_notice(&mut self) -> Option<Notice> {
        self.notice.take()
    }

    fn count(&mut self, (): &mut ()) {}
}
