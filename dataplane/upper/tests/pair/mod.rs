//! Two engines, an upper layer on each, and the fabric between them, run by hand.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod tcp;
pub(crate) mod world;

use rpcrdma_engine::{CloseReason, Connection, Event, Setup, Side};
use rpcrdma_upper::{Upper, Watch};
use rpcrdma_wire::Version;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;
use world::{Completion, Desk, World};

/// The client's side of the world.
pub(crate) const CLIENT: usize = 0;
/// The server's.
pub(crate) const SERVER: usize = 1;

/// Tests call `turn` all the time, so nothing is watched.
struct Unwatched;

impl Watch for Unwatched {
    fn watch(&mut self, _: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// One end of the connection.
pub(crate) struct End<U> {
    pub(crate) conn: Connection,
    pub(crate) upper: U,
    pub(crate) lost: Option<CloseReason>,
    pub(crate) closed: bool,
}

impl<U: Upper> End<U> {
    fn new(setup: Setup, upper: U) -> Self {
        Self {
            conn: Connection::new(setup),
            upper,
            lost: None,
            closed: false,
        }
    }

    fn establish(&mut self, desk: &mut Desk<'_>, peer: &Setup, now: Instant) {
        let event = self.conn.established(desk, Some(peer.private_data()));
        self.handle(desk, event, now);
        self.upper
            .established(&mut self.conn, desk, &mut Unwatched, now);
    }

    /// Does what there is to do, until there is nothing. True: something was done.
    fn run(&mut self, world: &mut World, side: usize, now: Instant) -> bool {
        let mut busy = false;
        while !self.closed {
            let completion = world.halves[side].completions.pop_front();
            let mut desk = world.desk(side);
            let event = match completion {
                Some(Completion::Received {
                    id,
                    message,
                    invalidated,
                }) => self.conn.receive(&mut desk, id, message.len, invalidated),
                Some(Completion::Settled { id, result }) => self.conn.settle(&mut desk, id, result),
                Some(Completion::Disconnected) => self.conn.disconnected(&mut desk),
                None if self.conn.runnable() => self.conn.resume(&mut desk),
                None => break,
            };
            busy = true;
            self.handle(&mut desk, event, now);
        }
        busy
    }

    fn handle(&mut self, desk: &mut Desk<'_>, event: Event, now: Instant) {
        match event {
            Event::None | Event::Property => {}
            Event::Lost(reason) => {
                assert_eq!(self.lost.replace(reason), None, "lost once");
                self.upper.lost(&mut self.conn, desk, reason);
            }
            Event::Closed => self.closed = true,
            event => self.upper.event(&mut self.conn, desk, event, now),
        }
    }
}

/// A client and a server, connected.
pub(crate) struct Pair<C, S> {
    pub(crate) world: World,
    pub(crate) client: End<C>,
    pub(crate) server: End<S>,
    /// The clock, moved by hand.
    pub(crate) now: Instant,
}

/// Both sides' setups, with the highest version each speaks.
pub(crate) fn setups(client: Version, server: Version) -> (Setup, Setup) {
    let setup = |side, version_max| Setup {
        version_max,
        ..Setup::new(side)
    };
    (setup(Side::Client, client), setup(Side::Server, server))
}

impl<C: Upper, S: Upper> Pair<C, S> {
    pub(crate) fn new(version: Version, client: C, server: S) -> Self {
        Self::with(setups(version, version), client, server)
    }

    pub(crate) fn with((client_setup, server_setup): (Setup, Setup), client: C, server: S) -> Self {
        let now = Instant::now();
        let mut world = World::default();
        let mut client = End::new(client_setup, client);
        let mut server = End::new(server_setup, server);
        client
            .conn
            .adopt(&mut world.desk(CLIENT))
            .expect("receives");
        server
            .conn
            .adopt(&mut world.desk(SERVER))
            .expect("receives");
        server.establish(&mut world.desk(SERVER), &client_setup, now);
        client.establish(&mut world.desk(CLIENT), &server_setup, now);
        Self {
            world,
            client,
            server,
            now,
        }
    }

    /// One turn of both lcores.
    pub(crate) fn turn(&mut self) {
        let client = &mut self.client;
        if !client.closed {
            client
                .upper
                .turn(&mut client.conn, &mut self.world.desk(CLIENT), self.now);
            client.conn.wake();
        }
        self.turn_server();
    }

    /// One turn of the server's lcore, and on both what the fabric brings.
    pub(crate) fn turn_server(&mut self) {
        let server = &mut self.server;
        if !server.closed {
            server
                .upper
                .turn(&mut server.conn, &mut self.world.desk(SERVER), self.now);
            server.conn.wake();
        }
        let mut busy = true;
        while busy {
            busy = self.client.run(&mut self.world, CLIENT, self.now);
            busy |= self.server.run(&mut self.world, SERVER, self.now);
        }
    }

    /// Turns until `done` says so.
    pub(crate) fn turn_until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed().as_secs() < 20, "never came: {what}");
            self.turn();
            std::thread::yield_now();
        }
    }

    /// Tells the server's upper layer something.
    pub(crate) fn order_server(&mut self, order: S::Order) {
        let server = &mut self.server;
        let desk = &mut self.world.desk(SERVER);
        server
            .upper
            .order(&mut server.conn, desk, &mut Unwatched, order, self.now);
    }

    /// Ends both connections, and sees to it that nothing is left behind.
    pub(crate) fn end(&mut self) {
        self.world.cut();
        self.turn_until("the end", |pair| pair.client.closed && pair.server.closed);
        for half in &self.world.halves {
            assert_eq!((half.in_use(), half.exposed()), (0, 0), "leaked");
        }
    }
}
