//! The front gateway: Calls arrive by RDMA and go to TCP backends, one TCP connection for each
//! RDMA connection and backend, xids unchanged.
//!
//! # The way of a Call
//!
//! The engine hands it up whole and contiguous, as it stands on TCP but for the record marker.
//! Its program number names the backend. It waits there, in order, for two things: the socket,
//! which the control thread makes when it is first needed, and memory for the longest Reply
//! that could still be sent. Then it goes out by one vectored write from where it lies. Its
//! Reply is read straight into the memory reserved, its eligible items are named, and the
//! engine places them by RDMA Write from there.
//!
//! # When things end
//!
//! A backend that goes away while it owes answers takes the RDMA connection with it: the client
//! connects again and sends its calls again, which is what its transport is made for. A backend
//! that goes away idle is connected to again when it is next needed. When the RDMA connection
//! goes, so do its sockets, and what was in flight is forgotten.

mod link;
mod routes;

pub use routes::{BackendId, Routes};

use crate::answers::{self, RpcError};
use crate::counters::Counters;
use crate::{Upper, Watch};
use link::{Broken, Link};
use rpcrdma_engine::{CloseReason, Connection, Event, Io, Reply, SlotId};
use rpcrdma_wire::rpc::CallHeader;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

/// How a front treats its connections.
#[derive(Clone, Debug)]
pub struct FrontSettings {
    /// Where programs go.
    pub routes: Arc<Routes>,
    /// Calls of one connection at a time: the engine's credits.
    pub slots: u16,
    /// Longest Reply record taken from a backend, octets; no more than the pool's largest span.
    pub reply_bytes: u32,
}

/// What the control thread tells a front.
#[derive(Debug)]
pub enum FrontOrder {
    /// What came of connecting to a backend.
    Backend {
        /// Which one.
        backend: BackendId,
        /// The socket, connected; `None` where it cannot be.
        stream: Option<TcpStream>,
    },
}

/// What a front tells the control thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontNotice {
    /// A socket to this backend is needed: answer with [`FrontOrder::Backend`].
    BackendWanted(BackendId),
}

/// The front gateway of one RDMA connection.
#[derive(Debug)]
pub struct Front {
    routes: Arc<Routes>,
    links: Box<[Link]>,
    /// Links that want a socket and have not asked.
    wanted: u16,
    /// The connection is ending: nothing is begun any more.
    over: bool,
    counters: Counters,
}

impl Front {
    /// A front without sockets yet. Allocates what it needs for its Calls.
    #[must_use]
    pub fn new(settings: &FrontSettings) -> Self {
        let link = |_| Link::new(settings.slots, settings.reply_bytes);
        Self {
            routes: Arc::clone(&settings.routes),
            links: (0..settings.routes.backends()).map(link).collect(),
            wanted: 0,
            over: false,
            counters: Counters::default(),
        }
    }

    fn call<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, slot: SlotId) {
        let Some(call) = conn.call(io, slot) else {
            return;
        };
        let Some(header) = CallHeader::parse(io.octets(call.message)) else {
            conn.abandon(io, slot, true);
            return;
        };
        let Some(BackendId(id)) = self.routes.backend_of(header.program) else {
            self.counters.local_errors += 1;
            let head = answers::short(call.xid, RpcError::ProgramUnavailable);
            conn.answer(
                io,
                slot,
                Reply {
                    head: &head,
                    parts: &[],
                    memory: None,
                },
            );
            return;
        };
        let Some(link) = self.links.get_mut(usize::from(id)) else {
            return;
        };
        self.wanted += u16::from(link.enqueue(slot));
        let pumped = link.pump(conn, io, &mut self.counters);
        self.judge(conn, io, usize::from(id), pumped);
    }

    /// One link's turn. True: it may have more.
    fn serve<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, id: usize) -> bool {
        let Some(link) = self.links.get_mut(id) else {
            return false;
        };
        let more = link.read(conn, io, &mut self.counters);
        let pumped = more.and_then(|more| link.pump(conn, io, &mut self.counters).map(|()| more));
        self.judge(conn, io, id, pumped).unwrap_or(false)
    }

    /// Takes note of a broken link: the end of the connection, if it owes answers.
    fn judge<'m, T>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        id: usize,
        outcome: Result<T, Broken>,
    ) -> Option<T> {
        let broken = match outcome {
            Ok(outcome) => return Some(outcome),
            Err(broken) => broken,
        };
        let link = self.links.get_mut(id)?;
        self.counters.refused_records += u64::from(broken.refused);
        link.disconnect();
        if link.quiet() {
            self.counters.backends_idled += 1;
            self.wanted += u16::from(link.want());
        } else {
            self.counters.backends_lost += 1;
            self.end(conn, io);
        }
        None
    }

    fn end<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>) {
        self.over = true;
        conn.close(io, CloseReason::Local);
    }

    fn backend<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        watch: &mut impl Watch,
        BackendId(id): BackendId,
        stream: Option<TcpStream>,
    ) {
        let ready = |stream: TcpStream| {
            stream.set_nonblocking(true).ok()?;
            watch.watch(stream.as_fd()).ok()?;
            Some(stream)
        };
        let Some(link) = self.links.get_mut(usize::from(id)) else {
            return;
        };
        let Some(stream) = stream.and_then(ready) else {
            self.counters.backends_unreachable += 1;
            self.end(conn, io);
            return;
        };
        self.counters.backends_connected += 1;
        link.connected(stream);
        let pumped = link.pump(conn, io, &mut self.counters);
        self.judge(conn, io, usize::from(id), pumped);
    }
}

impl Upper for Front {
    type Order = FrontOrder;
    type Notice = FrontNotice;
    type Counters = Counters;

    fn established<'m>(
        &mut self,
        _: &mut Connection,
        _: &mut impl Io<'m>,
        _: &mut impl Watch,
        _: Instant,
    ) {
    }

    fn event<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, event: Event, _: Instant) {
        match event {
            Event::Call(slot) if !self.over => self.call(conn, io, slot),
            Event::Call(slot) => {
                conn.abandon(io, slot, false);
            }
            _ => {}
        }
    }

    fn order<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        watch: &mut impl Watch,
        order: FrontOrder,
        _: Instant,
    ) {
        let FrontOrder::Backend { backend, stream } = order;
        if !self.over {
            self.backend(conn, io, watch, backend, stream);
        }
    }

    fn turn<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, _: Instant) -> bool {
        let mut more = false;
        for id in 0..self.links.len() {
            if self.over {
                return false;
            }
            more |= self.serve(conn, io, id);
        }
        more
    }

    fn lost<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, _: CloseReason) {
        self.over = true;
        self.wanted = 0;
        for link in &mut self.links {
            link.abandon(conn, io);
        }
    }

    fn has_notice(&self) -> bool {
        self.wanted > 0
    }

    fn take_notice(&mut self) -> Option<FrontNotice> {
        let place = self.links.iter_mut().position(Link::ask)?;
        self.wanted = self.wanted.saturating_sub(1);
        u16::try_from(place)
            .ok()
            .map(BackendId)
            .map(FrontNotice::BackendWanted)
    }

    fn count(&mut self, sum: &mut Counters) {
        self.counters.move_into(sum);
    }
}
