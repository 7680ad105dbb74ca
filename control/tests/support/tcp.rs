//! RPC by TCP (RFC 5531 section 11): clients of backs, and servers behind fronts that do nothing
//! on their own.

use super::octets::{NFS, call, success, word, words};
use super::{PATIENCE, until};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

/// The last fragment of a record.
const LAST: u32 = 1 << 31;

/// One end of a TCP connection that carries RPC records.
#[derive(Debug)]
pub(crate) struct Stream(TcpStream);

impl Stream {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect(address).expect("a connection"))
    }

    fn of(stream: TcpStream) -> Self {
        stream.set_nonblocking(false).expect("a socket");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
        Self(stream)
    }

    /// Sends one record in one fragment.
    pub(crate) fn send(&mut self, record: &[u8]) {
        self.write_raw(&framed(record));
    }

    /// Sends these octets, whatever they are.
    pub(crate) fn write_raw(&mut self, octets: &[u8]) {
        self.0.write_all(octets).expect("room in time");
    }

    /// The next record; `None` when the other side has ended.
    pub(crate) fn record(&mut self) -> Option<Vec<u8>> {
        let mut record = Vec::new();
        loop {
            let marker = word(&self.octets(4)?, 0);
            record.extend(self.octets(marker & !LAST)?);
            if marker & LAST != 0 {
                return Some(record);
            }
        }
    }

    /// So many octets; `None` when the other side has ended, in order or not.
    fn octets(&mut self, len: u32) -> Option<Vec<u8>> {
        let mut octets = vec![0; len as usize];
        match self.0.read_exact(&mut octets) {
            Ok(()) => Some(octets),
            Err(error) => {
                let ended = [
                    ErrorKind::UnexpectedEof,
                    ErrorKind::ConnectionReset,
                    ErrorKind::BrokenPipe,
                ];
                assert!(ended.contains(&error.kind()), "reading: {error}");
                None
            }
        }
    }

    /// Nothing has come that was not read.
    pub(crate) fn is_silent(&self) -> bool {
        self.0.set_nonblocking(true).expect("a socket");
        let peeked = self.0.peek(&mut [0]);
        self.0.set_nonblocking(false).expect("a socket");
        matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// A second owner of the same connection.
    pub(crate) fn again(&self) -> Self {
        Self(self.0.try_clone().expect("a descriptor"))
    }

    /// Ends it for all owners.
    pub(crate) fn close(&self) {
        // The other side may have been quicker.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// A record with its marker.
pub(crate) fn framed(record: &[u8]) -> Vec<u8> {
    [&words(&[record.len() as u32 | LAST])[..], record].concat()
}

/// A server that accepts and does nothing else.
pub(crate) struct Server(TcpListener);

impl Server {
    pub(crate) fn new() -> Self {
        Self::at(([127, 0, 0, 1], 0).into())
    }

    pub(crate) fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        Self(listener)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("bound")
    }

    pub(crate) fn accept(&self) -> Stream {
        until("a connection to the server", || self.accepted())
    }

    /// A connection that waits.
    pub(crate) fn accepted(&self) -> Option<Stream> {
        match self.0.accept() {
            Ok((stream, _)) => Some(Stream::of(stream)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("accepting: {error}"),
        }
    }
}

/// A variable-length opaque with its length and padding.
pub(crate) fn opaque(data: &[u8]) -> Vec<u8> {
    let mut octets = words(&[data.len() as u32]);
    octets.extend(data);
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets
}

/// NULL of NFS version 3.
pub(crate) fn nfs_null(xid: u32) -> Vec<u8> {
    call(xid, NFS, 3, 0)
}

/// READ of NFS version 3 (RFC 1813 section 3.3.6).
pub(crate) fn nfs_read(xid: u32, count: u32) -> Vec<u8> {
    let arguments = [opaque(&[9; 32]), words(&[0, 0, count])].concat();
    [call(xid, NFS, 3, 6), arguments].concat()
}

/// READ3resok without attributes.
pub(crate) fn nfs_read_reply(xid: u32, data: &[u8]) -> Vec<u8> {
    let results = [words(&[0, 0, data.len() as u32, 1]), opaque(data)].concat();
    [success(xid), results].concat()
}

/// WRITE of NFS version 3 (RFC 1813 section 3.3.7).
pub(crate) fn nfs_write(xid: u32, data: &[u8]) -> Vec<u8> {
    let count = data.len() as u32;
    let arguments = [opaque(&[9; 32]), words(&[0, 0, count, 2]), opaque(data)].concat();
    [call(xid, NFS, 3, 7), arguments].concat()
}

/// WRITE3resok without attributes.
pub(crate) fn nfs_write_reply(xid: u32, count: u32) -> Vec<u8> {
    [success(xid), words(&[0, 0, 0, count, 2, 5, 6])].concat()
}
