//! What is called: the procedures of the built-in program, or of NFS, as Calls laid out in the
//! arena.

use crate::nfs;
use arrayvec::ArrayVec;
use rpcrdma_engine::{Io, MAX_RESULTS, Part, Span};
use rpcrdma_fabric::pool::LONGEST;
use rpcrdma_upper::program;
use rpcrdma_wire::Xid;
use rpcrdma_wire::rpc::{CALL_BYTES, REPLY_BYTES, emit_call};

/// Octets of a Call's head.
const CALL: u32 = 40;
const _: () = assert!(CALL as usize == CALL_BYTES);
/// Octets of a successful Reply's head.
const REPLY: u32 = 24;
const _: () = assert!(REPLY as usize == REPLY_BYTES);
/// WRITE's arguments before the data: whether to sum it, and its length.
const WRITE_HEAD: u32 = 8;

/// Which procedure, and how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// NULL: nothing either way.
    Null,
    /// ECHO of so many octets, inline or as a long message.
    Echo(u32),
    /// READ of so many octets, by Write chunk.
    Read(u32),
    /// WRITE of so many octets, by Read chunk where they do not fit inline.
    Write(u32),
    /// A procedure of NFS, on a server that has it.
    Nfs(nfs::Work),
}

impl Workload {
    /// Payload octets that one Call moves.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        match *self {
            Workload::Null => 0,
            Workload::Echo(size) => u64::from(size) * 2,
            Workload::Read(size) | Workload::Write(size) => size.into(),
            Workload::Nfs(ref work) => work.block_bytes().into(),
        }
    }

    /// Octets of the one block that a Call moves.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        match *self {
            Workload::Null => 0,
            Workload::Echo(size) | Workload::Read(size) | Workload::Write(size) => size,
            Workload::Nfs(ref work) => work.block_bytes(),
        }
    }

    /// The procedure's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match *self {
            Workload::Null => "null",
            Workload::Echo(_) => "echo",
            Workload::Read(_) => "read",
            Workload::Write(_) => "write",
            Workload::Nfs(ref work) => work.name(),
        }
    }

    /// Octets of the Call in the arena.
    #[must_use]
    pub fn call_bytes(&self) -> u32 {
        match *self {
            Workload::Null => CALL,
            Workload::Echo(size) => CALL + 4 + padded(size),
            Workload::Read(_) => CALL + 8,
            Workload::Write(size) => CALL + WRITE_HEAD + padded(size),
            Workload::Nfs(ref work) => work.call_bytes(),
        }
    }

    /// Octets of the eligible result, where there is one.
    #[must_use]
    pub fn result_bytes(&self) -> Option<u32> {
        match *self {
            Workload::Read(size) => Some(size),
            Workload::Nfs(ref work) => work.result_bytes(),
            _ => None,
        }
    }

    /// Octets of the Reply without its eligible result.
    #[must_use]
    pub fn reply_bytes(&self) -> u32 {
        match *self {
            Workload::Null => REPLY,
            Workload::Echo(size) => REPLY + 4 + padded(size),
            Workload::Read(_) => REPLY + 4,
            Workload::Write(_) => REPLY + 8,
            Workload::Nfs(ref work) => work.reply_bytes(),
        }
    }

    /// Where in the service's source a block is that READ asks for.
    fn offset(&self, block: u32) -> u32 {
        match *self {
            Workload::Read(size) => block.saturating_mul(size),
            _ => 0,
        }
    }

    /// Blocks that a source of so many octets has. Each lane reads one of its own as far as they
    /// go, so that the working set is that of as many transfers as are in flight.
    #[must_use]
    pub fn blocks(&self, source_bytes: u32) -> u32 {
        match *self {
            Workload::Read(size) => (source_bytes / size.max(1)).max(1),
            _ => 1,
        }
    }

    /// Octets that the service's source must have for `depth` lanes.
    #[must_use]
    pub fn source_bytes(&self, depth: u16) -> u64 {
        match *self {
            Workload::Read(size) => {
                u64::from(size) * u64::from(depth).min(self.blocks(LONGEST).into())
            }
            _ => 0,
        }
    }

    /// Writes the Call of lane `lane`, but for its xid; READ asks for that block.
    pub fn lay_out<'m>(&self, io: &mut impl Io<'m>, memory: Span, lane: u32, block: u32) {
        let (procedure, words, data) = match *self {
            Workload::Null => (program::NULL, ArrayVec::<u32, 2>::new(), 0),
            Workload::Echo(size) => (program::ECHO, [size].into_iter().collect(), size),
            Workload::Read(size) => (
                program::READ,
                [self.offset(block), size].into_iter().collect(),
                0,
            ),
            Workload::Write(size) => (program::WRITE, [0, size].into_iter().collect(), size),
            Workload::Nfs(ref work) => return work.lay_out(io, memory, lane),
        };
        let mut head = [0; CALL_BYTES];
        // The buffer has exactly the length of a Call.
        let _ = emit_call(
            &mut head,
            Xid(0),
            program::PROGRAM,
            program::VERSION,
            procedure,
        );
        io.fill(memory, &head);
        let mut at = CALL;
        for word in words {
            io.fill(memory.skip(at), &word.to_be_bytes());
            at += 4;
        }
        program::fill_source(io.octets_mut(memory.skip(at).first(data)));
        let pad = padded(data) - data;
        io.fill(
            memory.skip(at + data),
            [0; 3].get(..pad as usize).unwrap_or_default(),
        );
    }

    /// The Call's parts: WRITE's data is eligible.
    #[inline]
    #[must_use]
    pub fn parts(&self, memory: Span) -> ArrayVec<Part, 3> {
        let part = |span, item| Part { span, item };
        match *self {
            Workload::Nfs(ref work) => work.parts(memory),
            Workload::Write(size) => {
                let head = CALL + WRITE_HEAD;
                let data = memory.skip(head).first(size);
                let pad = memory.skip(head + size);
                let parts = [
                    part(memory.first(head), false),
                    part(data, true),
                    part(pad, false),
                ];
                parts.into_iter().filter(|part| part.span.len > 0).collect()
            }
            _ => [part(memory, false)].into_iter().collect(),
        }
    }

    /// Whether a Reply is what it should be: success, and the octets asked for, READ's of that
    /// block, of which the first and last are looked at.
    #[inline]
    pub fn is_right<'m>(
        &self,
        body: &[u8],
        written: [Option<u32>; MAX_RESULTS],
        block: u32,
        result: impl FnOnce(u32) -> Option<&'m [u8]>,
    ) -> bool {
        let succeeded = body
            .first_chunk::<REPLY_BYTES>()
            .and_then(|head| head.last_chunk())
            .is_some_and(|behind_xid| *behind_xid == SUCCESS);
        let word = |at: usize| {
            let octets = body.get(at..)?.first_chunk()?;
            Some(u32::from_be_bytes(*octets))
        };
        succeeded
            && match *self {
                Workload::Null => true,
                Workload::Nfs(ref work) => {
                    work.is_right(body.get(REPLY_BYTES..).unwrap_or_default())
                }
                Workload::Echo(size) => {
                    let data = body.get(REPLY_BYTES + 4..);
                    word(REPLY_BYTES) == Some(size) && data.is_some_and(|data| fits(data, 0, size))
                }
                Workload::Write(size) => word(REPLY_BYTES) == Some(size),
                Workload::Read(size) => {
                    let octets = match written {
                        [Some(octets), ..] if octets > 0 => result(octets),
                        _ => body.get(REPLY_BYTES + 4..),
                    };
                    word(REPLY_BYTES) == Some(size)
                        && octets.is_some_and(|data| fits(data, self.offset(block), size))
                }
            }
    }
}

/// An accepted, successful Reply behind its xid.
const SUCCESS: [u8; REPLY_BYTES - 4] = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn padded(size: u32) -> u32 {
    size.next_multiple_of(4)
}

/// `data` begins with `size` octets of the pattern from `offset`, judged by the first and last.
fn fits(data: &[u8], offset: u32, size: u32) -> bool {
    let Some(data) = data.get(..size as usize) else {
        return false;
    };
    let last = data
        .last()
        .is_none_or(|&last| last == program::pattern(offset.wrapping_add(size).wrapping_sub(1)));
    last && data
        .first()
        .is_none_or(|&first| first == program::pattern(offset))
}
