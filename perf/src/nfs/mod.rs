//! NFS version 3 (RFC 1813) as a workload, against servers that are somebody else's: which file,
//! found by TCP ([`find`]), and what is done to it, as Calls laid out in the arena.
//!
//! Calls carry AUTH_SYS (RFC 5531 appendix A) with the numbers of who runs this. The data of READ
//! and WRITE is eligible (RFC 8267); all lengths are known beforehand.

mod client;
mod find;

pub use find::{Export, find};

use rpcrdma_engine::{Io, Part, Span};

use arrayvec::ArrayVec;

/// RPC program number of NFS.
const PROGRAM: u32 = 100_003;
/// Its version.
const VERSION: u32 = 3;
/// Longest file handle, octets (NFS3_FHSIZE).
const HANDLE_BYTES: usize = 64;
/// Octets of fattr3.
const ATTRIBUTES: u32 = 84;
/// Octets of a successful Reply's head.
const REPLY: u32 = 24;
/// A Call's head with AUTH_SYS: ten words, and the five of the credential.
const HEAD_WORDS: usize = 15;
/// Octets of the Calls laid out here before their data, at most.
const CALL_ROOM: usize = HEAD_WORDS * 4 + 4 + HANDLE_BYTES + 20;
/// WRITE: as the server likes (UNSTABLE).
const UNSTABLE: u32 = 0;

/// The handle of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHandle {
    octets: [u8; HANDLE_BYTES],
    len: u8,
}

impl FileHandle {
    /// `None` for more octets than a handle can have.
    #[must_use]
    pub fn new(handle: &[u8]) -> Option<Self> {
        let mut octets = [0; HANDLE_BYTES];
        octets.get_mut(..handle.len())?.copy_from_slice(handle);
        let len = u8::try_from(handle.len()).ok()?;
        Some(Self { octets, len })
    }

    fn octets(&self) -> &[u8] {
        self.octets.get(..self.len.into()).unwrap_or_default()
    }
}

/// Whose files they are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl User {
    /// Who runs this process.
    #[must_use]
    pub fn own() -> Self {
        Self {
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
        }
    }
}

/// The procedures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Procedure {
    /// Nothing.
    Null,
    /// The file's attributes.
    Getattr,
    /// So many octets of it.
    Read(u32),
    /// So many octets to it, UNSTABLE.
    Write(u32),
}

impl Procedure {
    fn number(self) -> u32 {
        match self {
            Procedure::Null => 0,
            Procedure::Getattr => 1,
            Procedure::Read(_) => 6,
            Procedure::Write(_) => 7,
        }
    }
}

/// One Call, made over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// What is called.
    pub procedure: Procedure,
    /// The file; any for [`Procedure::Null`].
    pub file: FileHandle,
    /// By whom.
    pub user: User,
}

/// Octets put together a word at a time.
type Octets = ArrayVec<u8, CALL_ROOM>;

fn push(octets: &mut Octets, words: &[u32]) {
    // Never more than there is room for: the longest Call's room is the type's.
    for word in words {
        let _ = octets.try_extend_from_slice(&word.to_be_bytes());
    }
}

impl Work {
    /// Payload octets of one Call.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        match self.procedure {
            Procedure::Null | Procedure::Getattr => 0,
            Procedure::Read(size) | Procedure::Write(size) => size,
        }
    }

    /// The name of the workload.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.procedure {
            Procedure::Null => "nfs-null",
            Procedure::Getattr => "nfs-getattr",
            Procedure::Read(_) => "nfs-read",
            Procedure::Write(_) => "nfs-write",
        }
    }

    /// The Call of lane `lane` up to its data, with xid zero.
    fn head(&self, lane: u32) -> Octets {
        let mut octets = Octets::new();
        let User { uid, gid } = self.user;
        let procedure = self.procedure.number();
        push(&mut octets, &[0, 0, 2, PROGRAM, VERSION, procedure]);
        // AUTH_SYS of 20 octets: stamp, no name, user, group, no other groups; verifier AUTH_NONE.
        push(&mut octets, &[1, 20, 0, 0, uid, gid, 0, 0, 0]);
        if self.procedure == Procedure::Null {
            return octets;
        }
        let handle = self.file.octets();
        push(&mut octets, &[u32::from(self.file.len)]);
        let _ = octets.try_extend_from_slice(handle);
        let pad = handle.len().next_multiple_of(4) - handle.len();
        let _ = octets.try_extend_from_slice(&[0; 3][..pad]);
        let offset = u64::from(lane) * u64::from(self.block_bytes());
        let [high, low] = [(offset >> 32) as u32, (offset & 0xffff_ffff) as u32];
        match self.procedure {
            Procedure::Null | Procedure::Getattr => {}
            Procedure::Read(size) => push(&mut octets, &[high, low, size]),
            Procedure::Write(size) => push(&mut octets, &[high, low, size, UNSTABLE, size]),
        }
        octets
    }

    fn head_bytes(&self) -> u32 {
        u32::try_from(self.head(0).len()).unwrap_or(0)
    }

    /// Octets that the Call brings beside its head.
    fn data_bytes(&self) -> u32 {
        match self.procedure {
            Procedure::Write(size) => size,
            _ => 0,
        }
    }

    /// Octets of the Call in the arena.
    #[must_use]
    pub fn call_bytes(&self) -> u32 {
        self.head_bytes() + self.data_bytes().next_multiple_of(4)
    }

    /// Octets of the eligible result, where there is one.
    #[must_use]
    pub fn result_bytes(&self) -> Option<u32> {
        match self.procedure {
            Procedure::Read(size) => Some(size),
            _ => None,
        }
    }

    /// Octets of the longest Reply without its eligible result.
    #[must_use]
    pub fn reply_bytes(&self) -> u32 {
        REPLY
            + match self.procedure {
                Procedure::Null => 0,
                Procedure::Getattr => 4 + ATTRIBUTES,
                // Attributes, count, end of file, length of the data.
                Procedure::Read(_) => 4 + 4 + ATTRIBUTES + 12,
                // Attributes before and after, count, committed, verifier.
                Procedure::Write(_) => 4 + 4 + 24 + 4 + ATTRIBUTES + 16,
            }
    }

    /// Writes the Call of lane `lane`, but for its xid.
    pub fn lay_out<'m>(&self, io: &mut impl Io<'m>, memory: Span, lane: u32) {
        let head = self.head(lane);
        io.fill(memory, &head);
        let data = memory.skip(self.head_bytes());
        io.octets_mut(data).fill(0x5a);
    }

    /// The Call's parts: WRITE's data is eligible.
    #[must_use]
    pub fn parts(&self, memory: Span) -> ArrayVec<Part, 3> {
        let (head, data) = (self.head_bytes(), self.data_bytes());
        let part = |span, item| Part { span, item };
        let parts = [
            part(memory.first(head), false),
            part(memory.skip(head).first(data), true),
            part(memory.skip(head + data), false),
        ];
        parts.into_iter().filter(|it| it.span.len > 0).collect()
    }

    /// Whether the results, `body` behind the head of a successful Reply, are what they should
    /// be: NFS3_OK, and the count asked for. What is in the file is not looked at.
    #[must_use]
    pub fn is_right(&self, body: &[u8]) -> bool {
        let word = |at: usize| {
            let octets = body.get(at..)?.first_chunk()?;
            Some(u32::from_be_bytes(*octets))
        };
        // Where a value stands that comes behind an optional one of so many octets.
        let behind = |at: usize, octets: u32| match word(at) {
            Some(0) => Some(at + 4),
            Some(1) => Some(at + 4 + octets as usize),
            _ => None,
        };
        let done = self.procedure == Procedure::Null || word(0) == Some(0);
        let count = match self.procedure {
            Procedure::Null | Procedure::Getattr => return done,
            Procedure::Read(_) => behind(4, ATTRIBUTES),
            Procedure::Write(_) => behind(4, 24).and_then(|at| behind(at, ATTRIBUTES)),
        };
        done && count.and_then(word) == Some(self.block_bytes())
    }
}

#[cfg(test)]
mod tests;
