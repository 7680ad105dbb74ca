//! Steering tags: what a peer may reach, and how it ends (RFC 5042 sections 6.1 to 6.3).
//!
//! A table of fixed size belongs to one lcore and serves all its streams. An STag is the index of
//! an entry and, above it, random bits from a cryptographic generator, new for each opening: STags
//! are hard to predict (section 6.1.1), and one that was invalidated names nothing when its entry
//! is used again. Offsets begin at a random base, so they say nothing about the arena.
//!
//! ```text
//!   Free --open--> Open --close (local)-------------------------> Free
//!                    '---invalidate (Send with Invalidate)--> Invalidated --reclaim--> Free
//! ```
//!
//! Every access is checked here, before an octet moves: that the STag is valid, that it is for
//! this stream and its protection domain, the right, the wrap, the bounds; in this order.

use rand::RngExt;
use rand::rngs::StdRng;
use rpcrdma_fabric::{Access, Handle, Segment, Span};

/// A steering tag. The fabric calls the same 32 bits a handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stag(pub u32);

impl From<Handle> for Stag {
    fn from(handle: Handle) -> Stag {
        Stag(handle.0)
    }
}

impl From<Stag> for Handle {
    fn from(stag: Stag) -> Handle {
        Handle(stag.0)
    }
}

/// One RDMAP stream, by a number that is never used for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner(pub u64);

/// A protection domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Domain(pub u32);

/// Who asks: a stream, and the one domain that it is in (RFC 5043 section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Party {
    /// The stream.
    pub owner: Owner,
    /// Its protection domain.
    pub domain: Domain,
}

/// Who may use a tagged buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The stream alone that it was opened for: a memory window, which the peer can invalidate.
    Stream,
    /// Every stream of the protection domain: a region, which no peer can invalidate (RFC 5042
    /// section 6.4.5).
    Domain,
}

/// Why an access is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// No open entry has this STag.
    Invalid,
    /// It is open for another stream, or in another protection domain.
    Foreign,
    /// It is open, but not for this.
    Rights,
    /// Offset plus length does not fit in 64 bits.
    Wrap,
    /// Offset or length lead outside the buffer.
    Bounds,
}

/// The entry is not what its owner takes it for. Nothing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Free,
    Open,
    Invalidated,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    stag: u32,
    state: State,
    write: bool,
    shared: bool,
    party: Party,
    /// What the peer calls the buffer's first octet.
    base: u64,
    memory: Span,
}

/// The tagged buffers of one lcore.
#[derive(Debug)]
pub struct StagTable {
    entries: Box<[Entry]>,
    free: Vec<u32>,
    index_bits: u32,
    random: StdRng,
}

impl StagTable {
    /// Most entries of a table. Its index takes 16 bits of an STag then, and 16 are random; all
    /// entries together are one in 65536 of the range (RFC 5040 section 8.1.1, rule 8). A guess
    /// that is wrong ends the guesser's session, and one that is right names a buffer that was
    /// opened for the guesser anyway, or is refused like the others.
    pub const MOST: u32 = 1 << 16;

    /// A table of `entries` (1 to [`StagTable::MOST`]), and where its random bits come from: a generator seeded
    /// by the system, but for tests.
    #[must_use]
    pub fn new(entries: u32, random: StdRng) -> StagTable {
        let entries = entries.clamp(1, StagTable::MOST);
        StagTable {
            entries: vec![Entry::default(); entries as usize].into_boxed_slice(),
            free: (0..entries).rev().collect(),
            index_bits: u32::BITS.wrapping_sub(entries.wrapping_sub(1).leading_zeros()),
            random,
        }
    }

    /// Buffers that can still be opened.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Any 64 bits, hard to predict.
    pub fn draw(&mut self) -> u64 {
        self.random.random()
    }

    #[inline]
    fn index(&self, stag: Stag) -> usize {
        let mask = 1_u32.wrapping_shl(self.index_bits).wrapping_sub(1);
        (stag.0 & mask) as usize
    }

    /// Opens a tagged buffer over `memory`, and says what the peer has to call it. `None` when no
    /// entry is free.
    pub fn open(
        &mut self,
        party: Party,
        scope: Scope,
        memory: Span,
        access: Access,
    ) -> Option<Segment> {
        let index = self.free.pop()?;
        let stag = self.new_stag(index);
        // Below 2^63, and so far from wrapping, whatever the length.
        let base = self.draw() >> 1 & !4095;
        if let Some(entry) = self.entries.get_mut(index as usize) {
            *entry = Entry {
                stag,
                state: State::Open,
                write: access == Access::Write,
                shared: scope == Scope::Domain,
                party,
                base,
                memory,
            };
        }
        Some(Segment {
            handle: Handle(stag),
            length: memory.len,
            offset: base,
        })
    }

    /// Never zero, which version two of RPC-over-RDMA writes for "no handle".
    fn new_stag(&mut self, index: u32) -> u32 {
        loop {
            let key: u32 = self.random.random();
            let stag = key.wrapping_shl(self.index_bits) | index;
            if stag != 0 {
                return stag;
            }
        }
    }

    #[inline]
    fn find(&self, stag: Stag) -> Option<&Entry> {
        self.entries
            .get(self.index(stag))
            .filter(|entry| entry.stag == stag.0 && entry.state != State::Free)
    }

    /// Where `len` octets at `to` of a tagged buffer lie, if `party` may do that with them. The
    /// answer is good until the table is changed.
    #[inline]
    pub fn admit(
        &self,
        party: Party,
        stag: Stag,
        to: u64,
        len: u32,
        access: Access,
    ) -> Result<Span, Violation> {
        let entry = self.find(stag).ok_or(Violation::Invalid)?;
        if entry.state != State::Open {
            return Err(Violation::Invalid);
        }
        if !entry.serves(party) {
            return Err(Violation::Foreign);
        }
        if entry.write != (access == Access::Write) {
            return Err(Violation::Rights);
        }
        let end = to.checked_add(u64::from(len)).ok_or(Violation::Wrap)?;
        let from = to.checked_sub(entry.base).ok_or(Violation::Bounds)?;
        let limit = entry.base.saturating_add(u64::from(entry.memory.len));
        if end > limit {
            return Err(Violation::Bounds);
        }
        Ok(Span {
            // Within the span that was opened, and so within the arena.
            offset: entry.memory.offset.wrapping_add(from),
            len,
        })
    }

    /// Invalidates at the peer's word. A region that is shared stays as it is.
    pub(crate) fn invalidate(&mut self, party: Party, stag: Stag) -> Result<(), Denied> {
        let index = self.index(stag);
        let entry = self.entries.get_mut(index).ok_or(Denied)?;
        let open = entry.stag == stag.0 && entry.state == State::Open;
        if !open || entry.shared || !entry.serves(party) {
            return Err(Denied);
        }
        entry.state = State::Invalidated;
        Ok(())
    }

    /// Ends a buffer of the stream's own at this side's word: from now on nothing of it is
    /// reached, by a Read Response that is half sent neither.
    pub fn close(&mut self, owner: Owner, stag: Stag) -> Result<(), Denied> {
        self.release(owner, stag, State::Open)
    }

    /// Frees a buffer of the stream's own that the peer has invalidated.
    pub fn reclaim(&mut self, owner: Owner, stag: Stag) -> Result<(), Denied> {
        self.release(owner, stag, State::Invalidated)
    }

    fn release(&mut self, owner: Owner, stag: Stag, state: State) -> Result<(), Denied> {
        let index = self.index(stag);
        let entry = self.entries.get_mut(index).ok_or(Denied)?;
        if entry.stag != stag.0 || entry.state != state || entry.party.owner != owner {
            return Err(Denied);
        }
        entry.state = State::Free;
        // Its numbers come from the table itself, which is no longer than that.
        self.free.push(u32::try_from(index).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Frees everything that a stream had opened. Looks at the whole table: for a stream's end.
    pub fn close_all(&mut self, owner: Owner) {
        for (index, entry) in (0_u32..).zip(&mut self.entries) {
            if entry.state != State::Free && entry.party.owner == owner {
                entry.state = State::Free;
                self.free.push(index);
            }
        }
    }
}

impl Entry {
    #[inline]
    fn serves(&self, party: Party) -> bool {
        self.party.domain == party.domain && (self.shared || self.party.owner == party.owner)
    }
}

#[cfg(test)]
mod tests;
