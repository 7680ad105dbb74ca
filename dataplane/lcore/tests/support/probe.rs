//! An upper layer that does as it is told, and tells what it is called for.

use rpcrdma_engine::{CloseReason, Connection, Event, Io, Span};
use rpcrdma_upper::{Upper, Watch};
use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// What a [`Probe`] is told to do.
pub enum Do {
    /// Give these notices.
    Say(Vec<u32>),
    /// Give this notice when the connection is established.
    SayWhenEstablished(u32),
    /// Watch this socket: say 1000 in the first `turn`, and in each that finds something to read.
    Watch(UnixStream),
    /// Hold that much memory, asked for again in each `turn` until it is there: then say the
    /// connection's own word.
    Hold {
        /// Octets.
        bytes: u32,
        /// The word.
        word: u32,
    },
    /// Give back what is held.
    LetGo,
    /// Ask for this many more turns, and say 2000 in each.
    Again(u32),
    /// Panic.
    Panic,
}

/// An upper layer that does as it is told.
#[derive(Default)]
pub struct Probe {
    pub notices: VecDeque<u32>,
    pub established: bool,
    pub lost: Option<CloseReason>,
    socket: Option<UnixStream>,
    fresh: bool,
    word: Option<u32>,
    wanted: Option<(u32, u32)>,
    held: Option<Span>,
    again: u32,
    counted: u64,
}

impl Probe {
    fn try_to_hold<'m>(&mut self, io: &mut impl Io<'m>) {
        if let Some((bytes, word)) = self.wanted
            && let Some(span) = io.reserve(bytes)
        {
            self.wanted = None;
            self.held = Some(span);
            self.notices.push_back(word);
        }
    }

    fn let_go<'m>(&mut self, io: &mut impl Io<'m>) {
        if let Some(span) = self.held.take() {
            io.release(span);
        }
    }
}

impl Upper for Probe {
    type Order = Do;
    type Notice = u32;
    type Counters = u64;

    fn established<'m>(
        &mut self,
        _: &mut Connection,
        _: &mut impl Io<'m>,
        _: &mut impl Watch,
        _: Instant,
    ) {
        assert!(!self.established, "said once");
        self.established = true;
        self.notices.extend(self.word.take());
    }

    fn event<'m>(&mut self, _: &mut Connection, _: &mut impl Io<'m>, _: Event, _: Instant) {}

    fn order<'m>(
        &mut self,
        _: &mut Connection,
        io: &mut impl Io<'m>,
        watch: &mut impl Watch,
        order: Do,
        _: Instant,
    ) {
        self.counted += 1;
        match order {
            Do::Say(words) => self.notices.extend(words),
            Do::SayWhenEstablished(word) => self.word = Some(word),
            Do::Watch(socket) => {
                socket.set_nonblocking(true).expect("a socket can be");
                watch.watch(socket.as_fd()).expect("watched");
                self.socket = Some(socket);
                self.fresh = true;
            }
            Do::Hold { bytes, word } => {
                self.wanted = Some((bytes, word));
                self.try_to_hold(io);
            }
            Do::LetGo => self.let_go(io),
            Do::Again(turns) => self.again = turns,
            Do::Panic => panic!("as told"),
        }
    }

    fn turn<'m>(&mut self, _: &mut Connection, io: &mut impl Io<'m>, _: Instant) -> bool {
        self.try_to_hold(io);
        if let Some(socket) = &mut self.socket
            && (std::mem::take(&mut self.fresh) || socket.read(&mut [0; 16]).is_ok())
        {
            self.notices.push_back(1000);
        }
        if self.again > 0 {
            self.again -= 1;
            self.notices.push_back(2000);
        }
        self.again > 0
    }

    fn lost<'m>(&mut self, _: &mut Connection, io: &mut impl Io<'m>, reason: CloseReason) {
        assert_eq!(self.lost, None, "said once");
        self.lost = Some(reason);
        self.wanted = None;
        self.let_go(io);
    }

    fn has_notice(&self) -> bool {
        !self.notices.is_empty()
    }

    fn take_notice(&mut self) -> Option<u32> {
        self.notices.pop_front()
    }

    fn count(&mut self, sum: &mut u64) {
        *sum += std::mem::take(&mut self.counted);
    }
}
