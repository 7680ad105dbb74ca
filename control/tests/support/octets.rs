//! Messages made by hand: RPC (RFC 5531), RPC-over-RDMA version one (RFC 8166) and version two
//! (draft-cel-nfsv4-rpcrdma-version-two-03, section 6), word by word.

/// A version of RPC-over-RDMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

pub(crate) use Version::{One, Two};

impl Version {
    pub(crate) fn code(self) -> u32 {
        match self {
            One => 1,
            Two => 2,
        }
    }
}

pub(crate) const MSG: u32 = 0;
pub(crate) const NOMSG: u32 = 1;
pub(crate) const ERROR: u32 = 4;

/// The built-in benchmark program.
pub(crate) const BENCHMARK: u32 = 0x2052_444D;
/// NFS, of which version 3 is spoken.
pub(crate) const NFS: u32 = 100_003;
/// Octets of a Call's header with AUTH_NONE.
pub(crate) const CALL_BYTES: u32 = 40;

/// Big-endian words.
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The word at `at` of a message.
pub(crate) fn word(message: &[u8], at: usize) -> u32 {
    let octets = message[at..at + 4].try_into().expect("four octets");
    u32::from_be_bytes(octets)
}

/// Octets of which no two neighbouring pages are alike.
pub(crate) fn payload(len: u32, salt: u32) -> Vec<u8> {
    let octet = |at: u32| (at.wrapping_add(salt).wrapping_mul(167) >> 3) as u8;
    (0..len).map(octet).collect()
}

/// One segment: handle, length, offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) handle: u32,
    pub(crate) length: u32,
    pub(crate) offset: u64,
}

/// A segment of memory that nobody has.
pub(crate) fn segment(handle: u32, length: u32, offset: u64) -> Segment {
    Segment {
        handle,
        length,
        offset,
    }
}

impl Segment {
    fn words(self) -> [u32; 4] {
        [
            self.handle,
            self.length,
            (self.offset >> 32) as u32,
            self.offset as u32,
        ]
    }

    /// The same with another length: what a Reply returns.
    pub(crate) fn of(self, length: u32) -> Self {
        Self { length, ..self }
    }
}

/// A header of either version with its chunk lists.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    version: Version,
    xid: u32,
    credits: u32,
    procedure: u32,
    direction: u32,
    invalidate: u32,
    reads: Vec<(u32, Segment)>,
    writes: Vec<Vec<Segment>>,
    reply: Option<Vec<Segment>>,
}

/// An MSG Call without chunks that asks for 8 credits.
pub(crate) fn head(version: Version, xid: u32) -> Head {
    Head {
        version,
        xid,
        credits: 8,
        procedure: MSG,
        direction: 0,
        invalidate: 0,
        reads: Vec::new(),
        writes: Vec::new(),
        reply: None,
    }
}

impl Head {
    pub(crate) fn credits(mut self, credits: u32) -> Self {
        self.credits = credits;
        self
    }

    pub(crate) fn procedure(mut self, procedure: u32) -> Self {
        self.procedure = procedure;
        self
    }

    /// Version two: CALL 0, REPLY 1.
    pub(crate) fn direction(mut self, direction: u32) -> Self {
        self.direction = direction;
        self
    }

    /// Version two: the handle that may be invalidated.
    pub(crate) fn invalidate(mut self, handle: u32) -> Self {
        self.invalidate = handle;
        self
    }

    pub(crate) fn read(mut self, position: u32, segment: Segment) -> Self {
        self.reads.push((position, segment));
        self
    }

    pub(crate) fn write(mut self, chunk: &[Segment]) -> Self {
        self.writes.push(chunk.to_vec());
        self
    }

    pub(crate) fn reply(mut self, chunk: &[Segment]) -> Self {
        self.reply = Some(chunk.to_vec());
        self
    }

    /// The header and what follows it.
    pub(crate) fn with(&self, payload: &[u8]) -> Vec<u8> {
        let mut all = vec![self.xid, self.version.code(), self.credits, self.procedure];
        if self.version == Two {
            all.extend([self.direction, self.invalidate]);
        }
        for (position, segment) in &self.reads {
            all.extend([1, *position]);
            all.extend(segment.words());
        }
        all.push(0);
        for chunk in &self.writes {
            all.push(1);
            extend_chunk(&mut all, chunk);
        }
        all.push(0);
        all.push(u32::from(self.reply.is_some()));
        if let Some(chunk) = &self.reply {
            extend_chunk(&mut all, chunk);
        }
        [words(&all), payload.to_vec()].concat()
    }
}

fn extend_chunk(all: &mut Vec<u32>, chunk: &[Segment]) {
    all.push(chunk.len() as u32);
    all.extend(chunk.iter().flat_map(|segment| segment.words()));
}

/// The chunk lists of an MSG or NOMSG in version one or two, and what follows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lists {
    pub(crate) reads: Vec<(u32, Segment)>,
    pub(crate) writes: Vec<Vec<Segment>>,
    pub(crate) reply: Option<Vec<Segment>>,
    pub(crate) payload: Vec<u8>,
}

impl Lists {
    /// Reads them from a message that is known to be well formed.
    pub(crate) fn of(message: &[u8]) -> Self {
        let mut at = match word(message, 4) {
            1 => 16,
            _ => 24,
        };
        let mut next = || {
            at += 4;
            word(message, at - 4)
        };
        let mut reads = Vec::new();
        while next() == 1 {
            let position = next();
            reads.push((position, take_segment(&mut next)));
        }
        let mut writes = Vec::new();
        while next() == 1 {
            writes.push(take_chunk(&mut next));
        }
        let reply = (next() == 1).then(|| take_chunk(&mut next));
        Self {
            reads,
            writes,
            reply,
            payload: message[at..].to_vec(),
        }
    }
}

fn take_chunk(next: &mut impl FnMut() -> u32) -> Vec<Segment> {
    (0..next()).map(|_| take_segment(next)).collect()
}

fn take_segment(next: &mut impl FnMut() -> u32) -> Segment {
    let (handle, length) = (next(), next());
    let offset = u64::from(next()) << 32 | u64::from(next());
    segment(handle, length, offset)
}

/// An ERROR, from its code on.
pub(crate) fn error(version: u32, xid: u32, credits: u32, body: &[u32]) -> Vec<u8> {
    words(&[&[xid, version, credits, ERROR], body].concat())
}

/// An RPC Call with AUTH_NONE, up to its arguments.
pub(crate) fn call(xid: u32, program: u32, version: u32, procedure: u32) -> Vec<u8> {
    words(&[xid, 0, 2, program, version, procedure, 0, 0, 0, 0])
}

/// A successful RPC Reply, up to its results.
pub(crate) fn success(xid: u32) -> Vec<u8> {
    words(&[xid, 1, 0, 0, 0, 0])
}

/// NULL of the benchmark program.
pub(crate) fn null(xid: u32) -> Vec<u8> {
    call(xid, BENCHMARK, 1, 0)
}

/// ECHO of `data`, which is a multiple of four octets.
pub(crate) fn echo(xid: u32, data: &[u8]) -> Vec<u8> {
    let len = words(&[data.len() as u32]);
    [call(xid, BENCHMARK, 1, 1), len, data.to_vec()].concat()
}

/// READ of octets of the benchmark program's source.
pub(crate) fn read(xid: u32, offset: u32, count: u32) -> Vec<u8> {
    [call(xid, BENCHMARK, 1, 2), words(&[offset, count])].concat()
}

/// WRITE of `len` octets, of which the sum is wanted, up to its data.
pub(crate) fn write(xid: u32, len: u32) -> Vec<u8> {
    [call(xid, BENCHMARK, 1, 3), words(&[1, len])].concat()
}

/// Where the data of [`write()`] belongs.
pub(crate) const WRITE_DATA: u32 = CALL_BYTES + 8;

/// What READ gives: the octet at `offset` of the source.
pub(crate) fn source(offset: u32, len: u32) -> Vec<u8> {
    (offset..offset + len).map(|at| (at % 251) as u8).collect()
}

/// The sum that WRITE gives: of big-endian words, modulo 2^32.
pub(crate) fn sum(data: &[u8]) -> u32 {
    let word = |chunk: &[u8]| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_be_bytes(word)
    };
    data.chunks(4).map(word).fold(0, u32::wrapping_add)
}
