//! The embedded NFSv3 server: a directory of the local file system, read-write, on loopback.
//!
//! Protocol and transport are the crate `nfs3_server`; the file system is ours ([`mirror`] and
//! what it stands on). MOUNT and NFS answer on one port, and the exported path is `/`.
//!
//! It is a demonstration backend, and the test of everything in front of it: whoever may
//! connect to the loopback port has the rights of the user who started it, within the
//! exported directory and on its file system alone (mount points below it are not entered).
//!
//! What the server crate does not do: LINK and MKNOD (refused), REMOVE apart from RMDIR (both
//! remove either), the attributes of MKDIR (set them afterwards). A call whose xid it has seen
//! from the same address and port within a minute is taken for a retransmission and *not
//! answered*: towards it a reconnecting client that repeats its calls must come from another
//! port, so never give this backend a remembered source port.

mod attributes;
mod files;
mod filesystem;
mod listing;
mod mirror;
mod tree;

#[cfg(test)]
mod tests;

use mirror::Mirror;
use nfs3_server::tcp::{NFSTcp, NFSTcpListener};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::Notify;

/// How long the server waits before it accepts again after accepting has failed, which it
/// does when the process has run out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A running server. Dropped, it stops.
#[derive(Debug)]
pub struct Export {
    address: SocketAddrV4,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Export {
    /// Serves `directory` on 127.0.0.1 at `port`, or at a free port where that is zero.
    ///
    /// # Errors
    ///
    /// The directory cannot be opened, the port is taken, or there is no thread to be had.
    pub fn start(directory: &Path, port: u16) -> io::Result<Self> {
        let mirror = Mirror::open(directory)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let bind = format!("{}:{port}", Ipv4Addr::LOCALHOST);
        let listener = runtime.block_on(NFSTcpListener::bind(&bind, mirror))?;
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.get_listen_port());
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept_for_ever(&listener) => {}
                    () = stopped.notified() => {}
                }
            });
            // Leaving ends every connection's task, and with it the connection.
        };
        let thread = std::thread::Builder::new()
            .name("nfs-export".into())
            .spawn(serve)?;
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// Where NFS and MOUNT are served.
    #[must_use]
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// Ends all connections and waits for the thread to end. Calls being executed finish;
    /// their replies may not arrive.
    pub fn stop(self) {}
}

impl Drop for Export {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic there was reported when it happened; there is nothing to add here.
            drop(thread.join());
        }
    }
}

async fn accept_for_ever(listener: &NFSTcpListener<Mirror>) {
    loop {
        if let Err(error) = listener.handle_forever().await {
            tracing::warn!(%error, "the embedded NFS server cannot accept connections");
        }
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}
