//! The built-in benchmark program: [`Service`], and the layout of its messages.
//!
//! Program [`PROGRAM`] (from the range that RFC 5531 section 13.1 leaves to the user), version
//! [`VERSION`], in XDR (RFC 4506):
//!
//! ```text
//! void     NULL(void)        = 0;
//! opaque<> ECHO(opaque<>)    = 1;   /* nothing eligible */
//! opaque<> READ(read_args)   = 2;   /* the result is DDP-eligible */
//! written  WRITE(write_args) = 3;   /* data is DDP-eligible */
//!
//! struct read_args  { unsigned offset; unsigned count; };
//! struct write_args { bool checksum; opaque data<>; };
//! struct written    { unsigned count; unsigned checksum; };
//! ```
//!
//! READ gives octets `offset` to `offset + count` of the service's source, and fewer where the
//! source ends; the source is one span of the lcore's arena, filled once with [`pattern`], so
//! READ copies nothing. WRITE looks at its data only if asked for the [`checksum`].

use crate::answers::{self, RpcError};
use crate::counters::Counters;
use crate::xdr::{Cursor, padding};
use crate::{Upper, Watch};
use rpcrdma_engine::{CloseReason, Connection, Event, Io, Part, Reply, SlotId, Span};
use rpcrdma_wire::Xid;
use rpcrdma_wire::rpc::{CALL_BYTES, CallHeader, RPC_VERSION};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Instant;

/// The program number, user-defined.
pub const PROGRAM: u32 = 0x2052_444D;
/// The only version.
pub const VERSION: u32 = 1;
/// Octets of the source of a service that somebody else has set up: those asking it for more get
/// less.
pub const SOURCE_BYTES: u32 = 1 << 20;
/// Does nothing.
pub const NULL: u32 = 0;
/// Gives its argument back.
pub const ECHO: u32 = 1;
/// Gives octets of the source.
pub const READ: u32 = 2;
/// Takes octets.
pub const WRITE: u32 = 3;

/// Echoes up to this long are put together outside the arena.
const SHORT_ECHO: usize = 512;

/// A Call of NULL with AUTH_NONE behind its xid: the whole of it, to be compared in one go.
const NULL_CALL: [u8; CALL_BYTES - 4] = null_call();

/// An accepted and successful Reply with AUTH_NONE behind its xid, results to follow.
const SUCCESS: [u8; 20] = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

const fn null_call() -> [u8; CALL_BYTES - 4] {
    let words = [0, RPC_VERSION, PROGRAM, VERSION, NULL, 0, 0, 0, 0];
    let mut octets = [0; CALL_BYTES - 4];
    let mut at = 0;
    while at < octets.len() {
        octets[at] = words[at / 4].to_be_bytes()[at % 4];
        at += 1;
    }
    octets
}

/// The octet at `offset` of every source: a period of 251 fits no power of two.
#[must_use]
pub fn pattern(offset: u32) -> u8 {
    u8::try_from(offset % 251).unwrap_or_default()
}

/// Fills a source with [`pattern`]. Once, before the lcore serves from it.
pub fn fill_source(source: &mut [u8]) {
    for (octet, offset) in source.iter_mut().zip(0..) {
        *octet = pattern(offset);
    }
}

/// The sum, modulo 2^32, of the data's big-endian words, zeros after its end.
#[must_use]
pub fn checksum(data: &[u8]) -> u32 {
    let (words, rest) = data.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let sum = words.iter().fold(0_u32, |sum, &word| {
        sum.wrapping_add(u32::from_be_bytes(word))
    });
    sum.wrapping_add(u32::from_be_bytes(last))
}

/// A Call, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request<'a> {
    Null,
    Echo(&'a [u8]),
    Read { offset: u32, count: u32 },
    Write { checksum: bool, data: &'a [u8] },
}

/// Reads a Call with a header that parsed.
fn request<'a>(header: &CallHeader, message: &'a [u8]) -> Result<Request<'a>, RpcError> {
    if header.rpc_version != RPC_VERSION {
        return Err(RpcError::RpcMismatch);
    }
    if header.gss.is_some() {
        return Err(RpcError::BadCredential);
    }
    if header.program != PROGRAM {
        return Err(RpcError::ProgramUnavailable);
    }
    if header.version != VERSION {
        return Err(RpcError::ProgramMismatch {
            low: VERSION,
            high: VERSION,
        });
    }
    let mut arguments = Cursor::new(message, header.arguments);
    let request = match header.procedure {
        NULL => Some(Request::Null),
        ECHO => arguments.take_opaque(u32::MAX).map(Request::Echo),
        READ => arguments.take_word().zip(arguments.take_word()).map(read),
        WRITE => take_write(&mut arguments),
        _ => return Err(RpcError::ProcedureUnavailable),
    };
    request
        .filter(|_| arguments.at() == message.len())
        .ok_or(RpcError::GarbageArguments)
}

fn read((offset, count): (u32, u32)) -> Request<'static> {
    Request::Read { offset, count }
}

fn take_write<'a>(arguments: &mut Cursor<'a>) -> Option<Request<'a>> {
    let checksum = match arguments.take_word()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let data = arguments.take_opaque(u32::MAX)?;
    Some(Request::Write { checksum, data })
}

/// The Reply to a NULL call in its usual form, whose every octet behind the xid is known.
#[inline]
fn null_reply(message: &[u8]) -> Option<[u8; 24]> {
    let (&xid, rest) = message.split_first_chunk::<4>()?;
    (rest == NULL_CALL).then(|| success(xid))
}

/// The head of a successful Reply.
#[inline]
fn success(xid: [u8; 4]) -> [u8; 24] {
    let mut head = [0; 24];
    head[..4].copy_from_slice(&xid);
    head[4..].copy_from_slice(&SUCCESS);
    head
}

/// The built-in program on one connection.
#[derive(Debug)]
pub struct Service {
    source: Span,
    /// Echoes that wait for memory, in order.
    waiting: VecDeque<SlotId>,
    counters: Counters,
}

impl Service {
    /// The program for one connection of at most `slots` Calls at a time. READ gives octets of
    /// `source`, which stays its owner's: one source serves all connections of an lcore.
    #[must_use]
    pub fn new(source: Span, slots: u16) -> Self {
        let waiting = VecDeque::with_capacity(slots.into());
        Self {
            source,
            waiting,
            counters: Counters::default(),
        }
    }

    /// Answers a Call; false: it waits for memory.
    #[inline(always)]
    fn serve<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, slot: SlotId) -> bool {
        let Some(call) = conn.call(io, slot) else {
            return true;
        };
        let message = io.octets(call.message);
        match null_reply(message) {
            Some(head) => {
                say(conn, io, slot, &head);
                true
            }
            None => self.serve_other(conn, io, slot, call.xid, message),
        }
    }

    /// Any Call but a NULL in its usual form.
    #[inline(never)]
    fn serve_other<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        slot: SlotId,
        whose: Xid,
        message: &[u8],
    ) -> bool {
        let Some(header) = CallHeader::parse(message) else {
            conn.abandon(io, slot, true);
            return true;
        };
        let xid = whose.0.to_be_bytes();
        match request(&header, message) {
            Ok(Request::Null) => say(conn, io, slot, &success(xid)),
            Ok(Request::Read { offset, count }) => {
                let span = self.source.skip(offset).first(count);
                let item = Part { span, item: true };
                let parts = if span.len > 0 { &[item][..] } else { &[] };
                words(conn, io, slot, xid, &[span.len], parts);
            }
            Ok(Request::Write {
                checksum: wanted,
                data,
            }) => {
                let sum = if wanted { checksum(data) } else { 0 };
                words(conn, io, slot, xid, &[octets(data), sum], &[]);
            }
            Ok(Request::Echo(data)) => return self.echo(conn, io, slot, xid, data),
            Err(error) => {
                self.counters.local_errors += 1;
                say(conn, io, slot, &answers::short(whose, error));
            }
        }
        true
    }

    /// The Call's own memory may be written by the peer again as soon as it is answered, so an
    /// echo is a copy. False: there is no memory for it, or others wait for some already.
    fn echo<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        slot: SlotId,
        xid: [u8; 4],
        data: &[u8],
    ) -> bool {
        let len = octets(data);
        let padded = len.saturating_add(padding(len));
        let mut head = [0; 28 + SHORT_ECHO + 3];
        head[..24].copy_from_slice(&success(xid));
        head[24..28].copy_from_slice(&len.to_be_bytes());
        if data.len() <= SHORT_ECHO {
            head[28..28 + data.len()].copy_from_slice(data);
            say(conn, io, slot, &head[..28 + padded as usize]);
        } else {
            if self.waiting.front().is_some_and(|&first| first != slot) {
                return false;
            }
            let Some(memory) = io.reserve(padded) else {
                self.counters.memory_waits += 1;
                return false;
            };
            io.fill(memory, data);
            io.fill(memory.skip(len), &[0; 3][..padding(len) as usize]);
            let parts = &[Part {
                span: memory,
                item: false,
            }];
            let head = &head[..28];
            conn.answer(
                io,
                slot,
                Reply {
                    head,
                    parts,
                    memory: Some(memory),
                },
            );
        }
        self.counters.payload_copies += u64::from(len);
        true
    }
}

/// A Reply that is all here.
fn say<'m>(conn: &mut Connection, io: &mut impl Io<'m>, slot: SlotId, head: &[u8]) {
    conn.answer(
        io,
        slot,
        Reply {
            head,
            parts: &[],
            memory: None,
        },
    );
}

/// A successful Reply of a few words, then `parts`.
fn words<'m>(
    conn: &mut Connection,
    io: &mut impl Io<'m>,
    slot: SlotId,
    xid: [u8; 4],
    results: &[u32],
    parts: &[Part],
) {
    let mut head = arrayvec::ArrayVec::<u8, 32>::from_iter(success(xid));
    head.extend(results.iter().flat_map(|word| word.to_be_bytes()));
    conn.answer(
        io,
        slot,
        Reply {
            head: &head,
            parts,
            memory: None,
        },
    );
}

/// The length of data out of an RPC message, which has a length of 32 bits.
fn octets(data: &[u8]) -> u32 {
    u32::try_from(data.len()).unwrap_or(u32::MAX)
}

impl Upper for Service {
    type Order = Infallible;
    type Notice = Infallible;
    type Counters = Counters;

    fn established<'m>(
        &mut self,
        _: &mut Connection,
        _: &mut impl Io<'m>,
        _: &mut impl Watch,
        _: Instant,
    ) {
    }

    #[inline]
    fn event<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, event: Event, _: Instant) {
        if let Event::Call(slot) = event
            && !self.serve(conn, io, slot)
        {
            self.waiting.push_back(slot);
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

    fn turn<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, _: Instant) -> bool {
        while let Some(&slot) = self.waiting.front() {
            if !self.serve(conn, io, slot) {
                break;
            }
            self.waiting.pop_front();
        }
        false
    }

    fn lost<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, _: CloseReason) {
        while let Some(slot) = self.waiting.pop_front() {
            conn.abandon(io, slot, false);
        }
    }

    #[inline]
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

#[cfg(test)]
mod tests;
