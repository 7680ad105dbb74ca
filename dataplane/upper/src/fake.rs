//! What the tests stand on: an arena that only a test would want, and streams with a script.

use rpcrdma_engine::{Access, Counters, Io, Octets, Posted, Refused, Span, WorkId};
use rpcrdma_wire::{Handle, Reject, Segment};
use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};

/// An arena of ordinary memory and a fabric that does nothing. Looking at octets leaks a copy
/// of them, which is how it lives up to the arena's lifetime without unsafe code.
#[derive(Debug, Default)]
pub(crate) struct Fake {
    memory: Vec<u8>,
    live: RefCell<Vec<Span>>,
    counters: Counters,
    /// Octets that may be reserved at any one time.
    pub(crate) ceiling: Option<u64>,
}

impl Fake {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Reserves memory with these octets in it.
    pub(crate) fn hold(&mut self, octets: &[u8]) -> Span {
        let span = self.reserve(u32::try_from(octets.len()).unwrap()).unwrap();
        self.fill(span, octets);
        span
    }

    /// Octets reserved and not released.
    pub(crate) fn in_use(&self) -> u64 {
        self.live
            .borrow()
            .iter()
            .map(|span| u64::from(span.len))
            .sum()
    }
}

impl Io<'static> for Fake {
    fn reserve(&mut self, len: u32) -> Option<Span> {
        let over = |ceiling| self.in_use() + u64::from(len) > ceiling;
        if self.ceiling.is_some_and(over) {
            return None;
        }
        let span = Span {
            offset: self.memory.len() as u64,
            len,
        };
        self.memory.resize(self.memory.len() + len as usize, 0xDD);
        self.live.borrow_mut().push(span);
        Some(span)
    }

    fn release(&mut self, span: Span) {
        let mut live = self.live.borrow_mut();
        let at = live.iter().position(|&held| held == span);
        live.swap_remove(at.expect("released what was never reserved, or twice"));
    }

    fn octets(&self, span: Span) -> &'static [u8] {
        let start = usize::try_from(span.offset).unwrap();
        Box::leak(
            self.memory[start..start + span.len as usize]
                .to_vec()
                .into_boxed_slice(),
        )
    }

    fn fill(&mut self, span: Span, from: &[u8]) {
        assert!(from.len() <= span.len as usize);
        self.octets_mut(span)[..from.len()].copy_from_slice(from);
    }

    fn octets_mut(&mut self, span: Span) -> &mut [u8] {
        let start = usize::try_from(span.offset).unwrap();
        &mut self.memory[start..start + span.len as usize]
    }

    fn post_receive(&mut self, _: Span, _: WorkId) -> Result<(), Refused> {
        Ok(())
    }

    fn send(&mut self, _: &[Octets<'_>], _: Option<Handle>, _: WorkId) -> Result<Posted, Refused> {
        Ok(Posted::Done)
    }

    fn read(&mut self, _: Span, _: Segment, _: WorkId) -> Result<Posted, Refused> {
        Err(Refused::Unsupported)
    }

    fn write(&mut self, _: Span, _: Segment, _: WorkId) -> Result<Posted, Refused> {
        Err(Refused::Unsupported)
    }

    fn expose(&mut self, _: Span, _: Access) -> Result<Segment, Refused> {
        Err(Refused::Unsupported)
    }

    fn retire(&mut self, _: Handle, _: WorkId) -> Result<Posted, Refused> {
        Err(Refused::Unsupported)
    }

    fn retired_by_peer(&mut self, _: Handle) {}

    fn disconnect(&mut self) {}

    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn refused(&mut self, _: Reject, _: &[u8]) {}
}

/// A stream that gives and takes as many octets at a time as its script says, over and over;
/// zero: it would block. An empty script gives and takes everything at once.
#[derive(Debug)]
pub(crate) struct Script {
    given: Vec<u8>,
    at: usize,
    taken: Vec<u8>,
    portions: Vec<usize>,
    turn: usize,
    fails: Option<ErrorKind>,
    reads: usize,
    writes: usize,
}

impl Script {
    pub(crate) fn new(given: Vec<u8>, portions: &[usize]) -> Self {
        let portions = portions.to_vec();
        let (at, turn, reads, writes) = (0, 0, 0, 0);
        Self {
            given,
            at,
            taken: Vec::new(),
            portions,
            turn,
            fails: None,
            reads,
            writes,
        }
    }

    pub(crate) fn failing(kind: ErrorKind) -> Self {
        Self {
            fails: Some(kind),
            ..Self::new(Vec::new(), &[])
        }
    }

    /// True when everything given has been read.
    pub(crate) fn spent(&self) -> bool {
        self.at == self.given.len()
    }

    pub(crate) fn taken(&self) -> &[u8] {
        &self.taken
    }

    pub(crate) fn reads(&self) -> usize {
        self.reads
    }

    pub(crate) fn writes(&self) -> usize {
        self.writes
    }

    fn portion(&mut self) -> io::Result<usize> {
        if let Some(kind) = self.fails {
            return Err(kind.into());
        }
        if self.portions.iter().all(|&portion| portion == 0) {
            return Ok(usize::MAX);
        }
        let portion = self.portions[self.turn % self.portions.len()];
        self.turn += 1;
        if portion == 0 {
            Err(ErrorKind::WouldBlock.into())
        } else {
            Ok(portion)
        }
    }
}

impl Read for Script {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.reads += 1;
        assert!(
            into.iter().any(|slice| !slice.is_empty()),
            "a read of nothing looks like an end"
        );
        let left = self.given.len() - self.at;
        let portion = if left == 0 && self.fails.is_none() {
            0
        } else {
            self.portion()?.min(left)
        };
        let from = &self.given[self.at..self.at + portion];
        let mut rest = from;
        for slice in into {
            let count = slice.len().min(rest.len());
            slice[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
        }
        let count = from.len() - rest.len();
        self.at += count;
        Ok(count)
    }
}

impl Write for Script {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(from)])
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        self.writes += 1;
        let portion = self.portion()?;
        let before = self.taken.len();
        for slice in from {
            let count = slice.len().min(portion - (self.taken.len() - before));
            self.taken.extend_from_slice(&slice[..count]);
        }
        Ok(self.taken.len() - before)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
