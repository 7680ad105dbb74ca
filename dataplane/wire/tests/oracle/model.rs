//! What the oracle makes of a message: numbers in lists.

/// The limits a message is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) reads: usize,
    pub(crate) chunks: usize,
    pub(crate) segments: usize,
    pub(crate) call: u128,
    pub(crate) reply: u128,
    pub(crate) properties: usize,
    pub(crate) data: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) xid: u32,
    pub(crate) vers: u32,
    pub(crate) credits: u32,
    /// Octets before the payload.
    pub(crate) header: usize,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    Rpc {
        nomsg: bool,
        reply: bool,
        part: Part,
    },
    /// Code and the words behind it.
    Error(Vec<u32>),
    /// The procedure, its sets as (identifier, data), its subsets as words.
    Properties {
        proc: u32,
        set: Vec<(u32, Vec<u8>)>,
        subsets: Vec<Vec<u32>>,
    },
}

/// The chunk lists.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// The direction word, in version two.
    pub(crate) declared: Option<u32>,
    pub(crate) inv: u32,
    pub(crate) reads: Vec<(u32, Seg)>,
    pub(crate) writes: Vec<Vec<Seg>>,
    pub(crate) reply: Option<Vec<Seg>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seg {
    pub(crate) handle: u32,
    pub(crate) length: u32,
    pub(crate) offset: u64,
}
