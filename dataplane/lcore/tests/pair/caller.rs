//! An upper layer that makes NULL calls.

use rpcrdma_engine::{CloseReason, Connection, Event, Io, MAX_RESULTS, Part, SlotId, Span};
use rpcrdma_upper::program::{NULL, PROGRAM, VERSION};
use rpcrdma_upper::{Upper, Watch};
use rpcrdma_wire::Xid;
use rpcrdma_wire::rpc::{CALL_BYTES, REPLY_BYTES, emit_call, emit_reply};
use std::convert::Infallible;
use std::time::Instant;

/// Calls in flight.
pub const DEPTH: u16 = 8;

/// Makes NULL calls, [`DEPTH`] at a time, and says when all are answered.
pub struct Caller {
    /// The Call in each slot: its xid and message.
    calls: Vec<Option<(Xid, Span)>>,
    next: Xid,
    total: u32,
    submitted: u32,
    pub answered: u32,
    pub failed: u32,
    said: bool,
}

impl Caller {
    /// One that makes `total` calls.
    pub fn new(total: u32) -> Caller {
        Caller {
            calls: vec![None; DEPTH.into()],
            next: Xid(0x1234_0000),
            total,
            submitted: 0,
            answered: 0,
            failed: 0,
            said: false,
        }
    }

    fn call<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, message: Span) {
        if self.submitted == self.total {
            io.release(message);
            return;
        }
        self.submitted += 1;
        let xid = self.next;
        self.next = Xid(xid.0 + 1);
        let octets = io.octets_mut(message);
        emit_call(octets, xid, PROGRAM, VERSION, NULL).expect("room for a header");
        let parts = [Part {
            span: message,
            item: false,
        }];
        let call = rpcrdma_engine::Call {
            xid,
            parts: &parts,
            results: &[],
            reply: None,
        };
        let slot = conn.submit(io, call).expect("a slot is free");
        self.calls[usize::from(slot.index)] = Some((xid, message));
    }

    fn take(&mut self, slot: SlotId) -> (Xid, Span) {
        let call = &mut self.calls[usize::from(slot.index)];
        call.take().expect("a Call is in it")
    }

    fn reply<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, slot: SlotId) {
        let (xid, message) = self.take(slot);
        let reply = conn.reply(slot).expect("just announced");
        let mut expected = [0; REPLY_BYTES];
        emit_reply(&mut expected, xid).expect("room for a header");
        assert_eq!(io.octets(reply.body), expected);
        assert_eq!(reply.written, [None; MAX_RESULTS]);
        conn.finish(io, slot);
        self.answered += 1;
        self.call(conn, io, message);
    }
}

impl Upper for Caller {
    type Order = Infallible;
    type Notice = u32;
    type Counters = ();

    fn established<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        _: &mut impl Watch,
        _: Instant,
    ) {
        for _ in 0..DEPTH {
            let bytes = u32::try_from(CALL_BYTES).expect("forty");
            let message = io.reserve(bytes).expect("memory");
            self.call(conn, io, message);
        }
    }

    fn event<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, event: Event, _: Instant) {
        match event {
            Event::Reply(slot) => self.reply(conn, io, slot),
            Event::Failed(slot, _) => {
                let (_, message) = self.take(slot);
                io.release(message);
                self.failed += 1;
            }
            event => panic!("{event:?}"),
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

    fn turn<'m>(&mut self, _: &mut Connection, _: &mut impl Io<'m>, _: Instant) -> bool {
        false
    }

    fn lost<'m>(&mut self, _: &mut Connection, _: &mut impl Io<'m>, _: CloseReason) {}

    fn has_notice(&self) -> bool {
        self.answered == self.total && !self.said
    }

    fn take_notice(&mut self) -> Option<u32> {
        let done = self.has_notice();
        self.said |= done;
        done.then_some(self.answered)
    }

    fn count(&mut self, (): &mut ()) {}
}
