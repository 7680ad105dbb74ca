//! The embedded NFSv3 server: a directory of the local file system, read-write, on loopback.
//!
//! Protocol and transport are the crate `nfs3_server`; the file system is ours ([`mirror`] and
//! what it stands on). MOUNT and NFS answer on one port; the exported path is [`EXPORT_PATH`].
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
use std::net::{SocketAddr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::Notify;

/// What clients mount. Not `/`: libnfs takes the part before the last slash of a URL for the
/// path to mount, and of `nfs://host/file` nothing is left.
pub const EXPORT_PATH: &str = "/export";

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
    /// Serves `directory` at `listen`, a loopback address of IPv4; port 0 is any that is free.
    /// With `read_only`, whatever would change something is refused with `NFS3ERR_ROFS`.
    ///
    /// # Errors
    ///
    /// The directory cannot be opened, the address is another or taken, or there is no thread
    /// to be had.
    pub fn start(directory: &Path, listen: SocketAddr, read_only: bool) -> io::Result<Self> {
        let mut address = loopback(listen)?;
        let mirror = Mirror::open(directory, read_only)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let mut listener = runtime.block_on(NFSTcpListener::bind(&address.to_string(), mirror))?;
        listener.with_export_name(EXPORT_PATH);
        address.set_port(listener.get_listen_port());
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

/// The server crate reads its address from a text that ends at the first colon, and anybody
/// who reaches the port may do anything: so IPv4, and loopback.
fn loopback(listen: SocketAddr) -> io::Result<SocketAddrV4> {
    match listen {
        SocketAddr::V4(address) if address.ip().is_loopback() => Ok(address),
        other => Err(io::Error::new(
            io::ErrorKind::AddrNotAvailable,
            format!("the embedded NFS server listens on 127.0.0.0/8 alone, not on {other}"),
        )),
    }
}
