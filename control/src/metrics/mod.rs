//! Counters for Prometheus: its text format, version 0.0.4, over HTTP on a thread of its own.
//!
//! The dataplane is not asked: whoever owns the counters says, by a closure, what they were
//! when last looked at.

mod families;
mod http;

pub use families::{Family, Kind, Sample, Value, render};

use crate::endpoint::Endpoint;
use std::io;
use std::net::{SocketAddr, TcpListener};

/// A running metrics server. Dropped, it stops.
#[derive(Debug)]
pub struct Metrics {
    address: SocketAddr,
    _endpoint: Endpoint,
}

impl Metrics {
    /// Serves `/metrics` at `listen`; port 0 is any that is free.
    ///
    /// `snapshot` is called once for each scrape, on the server's thread.
    ///
    /// # Errors
    ///
    /// The address is taken or none of this machine's.
    pub fn start(
        listen: SocketAddr,
        snapshot: impl Fn() -> Vec<Family> + Send + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        let address = listener.local_addr()?;
        let endpoint = Endpoint::start("metrics", listener, http::Scrape::new(snapshot))?;
        Ok(Self {
            address,
            _endpoint: endpoint,
        })
    }

    /// Where it is served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
