//! The TCP ends of the gateways: a client of the back, a server behind the front.

use super::{Pair, setups};
use rpcrdma_engine::Setup;
use rpcrdma_upper::back::{Back, BackSettings};
use rpcrdma_upper::counters::Counters;
use rpcrdma_upper::front::{BackendId, Front, FrontNotice, FrontOrder, FrontSettings, Routes};
use rpcrdma_upper::{Upper, record};
use rpcrdma_wire::Version;
use rustix::net::sockopt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

/// NFS version 3, its two readers and writers of data, and one without a binding.
pub(crate) const NFS: u32 = 100_003;
pub(crate) const READ: u32 = 6;
pub(crate) const WRITE: u32 = 7;
pub(crate) const READDIR: u32 = 16;
pub(crate) const NLM: u32 = 100_021;

pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Octets nobody else has.
pub(crate) fn payload(len: usize, seed: u8) -> Vec<u8> {
    (0..=250_u8)
        .cycle()
        .take(len)
        .map(|octet| octet ^ seed)
        .collect()
}

/// A variable-length opaque with its length and padding.
pub(crate) fn opaque(data: &[u8]) -> Vec<u8> {
    let mut octets = words(&[u32::try_from(data.len()).unwrap()]);
    octets.extend(data);
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets
}

/// An RPC Call with AUTH_NONE.
pub(crate) fn call(xid: u32, program: u32, procedure: u32, arguments: &[u8]) -> Vec<u8> {
    let head = words(&[xid, 0, 2, program, 3, procedure, 0, 0, 0, 0]);
    [head, arguments.to_vec()].concat()
}

/// A successful RPC Reply with AUTH_NONE.
pub(crate) fn reply(xid: u32, results: &[u8]) -> Vec<u8> {
    [words(&[xid, 1, 0, 0, 0, 0]), results.to_vec()].concat()
}

/// An accepted Reply of another status.
pub(crate) fn error(xid: u32, status: u32) -> Vec<u8> {
    words(&[xid, 1, 0, 0, 0, status])
}

pub(crate) fn read_call(xid: u32, count: u32) -> Vec<u8> {
    call(
        xid,
        NFS,
        READ,
        &[opaque(&[9; 32]), words(&[0, 0, count])].concat(),
    )
}

/// READ3resok, without attributes.
pub(crate) fn read_reply(xid: u32, data: &[u8]) -> Vec<u8> {
    let count = u32::try_from(data.len()).unwrap();
    reply(xid, &[words(&[0, 0, count, 1]), opaque(data)].concat())
}

pub(crate) fn write_call(xid: u32, data: &[u8]) -> Vec<u8> {
    let count = u32::try_from(data.len()).unwrap();
    let arguments = [opaque(&[9; 32]), words(&[0, 0, count, 2]), opaque(data)].concat();
    call(xid, NFS, WRITE, &arguments)
}

/// WRITE3resok, without attributes.
pub(crate) fn write_reply(xid: u32, count: u32) -> Vec<u8> {
    reply(xid, &words(&[0, 0, 0, count, 2, 5, 6]))
}

/// Splits a record into fragments of `len` octets.
pub(crate) fn in_fragments(record: &[u8], len: usize) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut chunks = record.chunks(len).peekable();
    while let Some(chunk) = chunks.next() {
        let last = if chunks.peek().is_none() {
            record::MAX_FRAGMENT_BYTES + 1
        } else {
            0
        };
        octets.extend((u32::try_from(chunk.len()).unwrap() | last).to_be_bytes());
        octets.extend(chunk);
    }
    octets
}

/// A TCP peer that never blocks.
pub(crate) struct Peer {
    stream: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    pub(crate) ended: bool,
    /// Does not read.
    pub(crate) deaf: bool,
}

impl Peer {
    fn new(stream: TcpStream) -> Self {
        stream.set_nonblocking(true).unwrap();
        Self {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            ended: false,
            deaf: false,
        }
    }

    pub(crate) fn send(&mut self, record: &[u8]) {
        self.send_raw(&in_fragments(record, record.len().max(1)));
    }

    pub(crate) fn send_raw(&mut self, octets: &[u8]) {
        self.output.extend(octets);
        self.pump();
    }

    /// Ends with everything said.
    pub(crate) fn close(&mut self) {
        assert!(self.output.is_empty());
        self.drop_stream();
    }

    /// Ends wherever it is.
    pub(crate) fn drop_stream(&mut self) {
        self.output.clear();
        self.stream.shutdown(Shutdown::Both).unwrap();
    }

    pub(crate) fn pump(&mut self) {
        while !self.output.is_empty() && !self.ended {
            match self.stream.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.ended = true,
            }
        }
        let mut octets = [0; 1 << 16];
        while !self.deaf && !self.ended {
            match self.stream.read(&mut octets) {
                Ok(0) => self.ended = true,
                Ok(count) => self.input.extend(&octets[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.ended = true,
            }
        }
    }

    /// The next record, if it is here whole. The gateways write one fragment a record.
    pub(crate) fn record(&mut self) -> Option<Vec<u8>> {
        let marker = u32::from_be_bytes(*self.input.first_chunk()?);
        assert_ne!(marker >> 31, 0, "a last fragment");
        let end = 4 + (marker & record::MAX_FRAGMENT_BYTES) as usize;
        let record = self.input.get(4..end)?.to_vec();
        self.input.drain(..end);
        Some(record)
    }
}

pub(crate) const BACK: BackSettings = BackSettings {
    slots: 32,
    call_bytes: 2 << 20,
    result_bytes: 2 << 20,
    reply_bytes: 1 << 18,
    unbound_reply_bytes: 1 << 16,
};

/// A socket buffer that is soon full, octets.
const SMALL: usize = 1 << 13;

/// A TCP client, both gateways, and a TCP server: NFS and NFSACL go to it, and what has no
/// binding; RPC programs from 200000 on nowhere.
pub(crate) struct Gateways {
    pub(crate) pair: Pair<Back, Front>,
    pub(crate) client: Peer,
    pub(crate) servers: Vec<Peer>,
    listener: TcpListener,
    /// The server does not take connections.
    pub(crate) unreachable: bool,
}

impl Gateways {
    pub(crate) fn new() -> Self {
        Self::with(setups(Version::Two, Version::Two), &BACK)
    }

    pub(crate) fn with(setups: (Setup, Setup), settings: &BackSettings) -> Self {
        Self::through(TcpListener::bind("127.0.0.1:0").unwrap(), setups, settings)
    }

    /// With sockets that hold so little that they are soon full.
    pub(crate) fn with_small_sockets(settings: &BackSettings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // The kernel doubles what it is told.
        sockopt::set_socket_recv_buffer_size(&listener, SMALL / 2).unwrap();
        sockopt::set_socket_send_buffer_size(&listener, SMALL / 2).unwrap();
        Self::through(listener, setups(Version::Two, Version::Two), settings)
    }

    fn through(listener: TcpListener, setups: (Setup, Setup), settings: &BackSettings) -> Self {
        let (near, far) = connected(&listener);
        let routes = Routes::new([(NFS, BackendId(0)), (NLM, BackendId(0))], None);
        let front = FrontSettings {
            routes: Arc::new(routes),
            slots: 32,
            reply_bytes: 2 << 20,
        };
        let pair = Pair::with(setups, Back::new(far, settings), Front::new(&front));
        let client = Peer::new(near);
        Self {
            pair,
            client,
            servers: Vec::new(),
            listener,
            unreachable: false,
        }
    }

    pub(crate) fn turn(&mut self) {
        while let Some(FrontNotice::BackendWanted(backend)) = self.pair.server.upper.take_notice() {
            let stream = (!self.unreachable).then(|| {
                let (near, far) = connected(&self.listener);
                self.servers.push(Peer::new(far));
                near
            });
            self.pair
                .order_server(FrontOrder::Backend { backend, stream });
        }
        self.client.pump();
        self.servers.iter_mut().for_each(Peer::pump);
        self.pair.turn();
    }

    /// Turns until `done` gives something.
    pub(crate) fn until<T>(
        &mut self,
        what: &str,
        mut done: impl FnMut(&mut Self) -> Option<T>,
    ) -> T {
        let begun = Instant::now();
        loop {
            if let Some(done) = done(self) {
                return done;
            }
            assert!(begun.elapsed().as_secs() < 20, "never came: {what}");
            self.turn();
            std::thread::yield_now();
        }
    }

    /// The next record at the server.
    pub(crate) fn served(&mut self) -> Vec<u8> {
        self.until("a call", |all| {
            all.servers.last_mut().and_then(Peer::record)
        })
    }

    /// The next record at the server, while the client's lcore sees no socket.
    pub(crate) fn served_without_client_turns(&mut self) -> Vec<u8> {
        let begun = Instant::now();
        loop {
            self.pair.turn_server();
            self.server().pump();
            if let Some(record) = self.server().record() {
                return record;
            }
            assert!(begun.elapsed().as_secs() < 20, "never came");
            std::thread::yield_now();
        }
    }

    /// The next record at the client.
    pub(crate) fn answered(&mut self) -> Vec<u8> {
        self.until("a reply", |all| all.client.record())
    }

    pub(crate) fn server(&mut self) -> &mut Peer {
        self.servers.last_mut().expect("a server")
    }

    /// One call through all, and its reply back, octet for octet.
    pub(crate) fn exchange(&mut self, call: &[u8], reply: &[u8]) {
        self.client.send(call);
        let served = self.served();
        assert!(served == call, "the call changed on its way");
        self.server().send(reply);
        let answered = self.answered();
        assert!(answered == reply, "the reply changed on its way");
    }

    /// Turns a few times, for what must not happen.
    pub(crate) fn settle(&mut self) {
        for _ in 0..50 {
            self.turn();
        }
    }

    /// Until both ends are closed; nothing is left behind.
    pub(crate) fn closed(&mut self) {
        self.until("the end", |all| {
            (all.pair.client.closed && all.pair.server.closed).then_some(())
        });
        self.pair.end();
    }

    pub(crate) fn counted(&mut self) -> (Counters, Counters) {
        let (mut back, mut front) = (Counters::default(), Counters::default());
        self.pair.client.upper.count(&mut back);
        self.pair.server.upper.count(&mut front);
        (back, front)
    }
}

fn connected(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    near.set_nodelay(true).unwrap();
    if sockopt::socket_recv_buffer_size(listener).unwrap() <= SMALL {
        sockopt::set_socket_send_buffer_size(&near, SMALL).unwrap();
    }
    let far = listener.accept().unwrap().0;
    far.set_nodelay(true).unwrap();
    (near, far)
}
