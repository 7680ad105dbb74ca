//! TCP for the NFS client crate, without an executor.
//!
//! The self-test does one call at a time and wants to know how long it took: a blocking
//! socket says so with nothing in between. The crate asks for futures; these are done when
//! they are first polled. Unlike the crate's own transports, end of file is an error here, and
//! a peer that says nothing for too long is one, too.

use nfs3_client::io::{AsyncRead, AsyncWrite};
use nfs3_client::net::Connector;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A blocking connection.
#[derive(Debug)]
pub(super) struct Wire(TcpStream);

/// Connects, and gives up on silence, after this long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience(pub(super) Duration);

impl Connector for Patience {
    type Connection = Wire;

    async fn connect(&self, address: SocketAddr) -> io::Result<Wire> {
        let stream = TcpStream::connect_timeout(&address, self.0)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.0))?;
        stream.set_write_timeout(Some(self.0))?;
        Ok(Wire(stream))
    }

    async fn connect_with_port(&self, _: SocketAddr, _: u16) -> io::Result<Wire> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the self-test takes any source port",
        ))
    }
}

impl AsyncRead for Wire {
    async fn async_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.read(into) {
            Ok(0) if !into.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"))
            }
            other => other,
        }
    }
}

impl AsyncWrite for Wire {
    async fn async_write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self.0.write(from) {
            Ok(0) if !from.is_empty() => Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the peer takes nothing",
            )),
            other => other,
        }
    }
}

/// Runs a future over [`Wire`]s, which waits for nothing but them, to its end.
pub(super) fn finish<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}
