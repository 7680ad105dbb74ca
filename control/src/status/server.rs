//! The socket, and the thread that answers there.

use super::document::Document;
use crate::endpoint::{Endpoint, Protocol};
use rustix::fs::{Mode, chmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Connections that wait while others are served.
const BACKLOG: i32 = 16;

/// A status socket being served. Dropped, it ends and takes its file along.
#[derive(Debug)]
pub struct StatusSocket {
    path: PathBuf,
    /// Device and inode of the file, so that nobody else's is taken along.
    file: (u64, u64),
    _endpoint: Endpoint,
}

/// Another process answers at the path, or the path belongs to something that is no socket.
#[derive(Debug)]
pub struct Occupied(&'static str);

impl std::fmt::Display for Occupied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Occupied {}

impl StatusSocket {
    /// Serves documents at `path`. `snapshot` is called once for each client, on the server's
    /// thread. A missing directory is made, for the owner alone, where its own parent exists: a
    /// mistyped path is not followed by a tree of directories. A socket that somebody left behind
    /// is removed, but only when nobody answers there any more.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::AddrInUse`] with [`Occupied`] inside, or what the system says.
    pub fn start(
        path: &Path,
        snapshot: impl Fn() -> Document + Send + 'static,
    ) -> io::Result<Self> {
        make_directory(path)?;
        let listener = match open(path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                remove_stale(path)?;
                open(path)?
            }
            other => other?,
        };
        let metadata = fs::symlink_metadata(path)?;
        let endpoint = Endpoint::start("status", listener, Tell(snapshot))?;
        Ok(Self {
            path: path.to_owned(),
            file: (metadata.dev(), metadata.ino()),
            _endpoint: endpoint,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.file);
        if ours {
            // Left behind, it is found to be stale by the next one.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    let Some(parent) = path.parent() else {
        return Ok(());
    };
    if parent.as_os_str().is_empty() || parent.is_dir() {
        return Ok(());
    }
    DirBuilder::new().mode(0o700).create(parent)
}

/// Binds, restricts, then listens: nobody can connect before the mode is right.
fn open(path: &Path) -> io::Result<UnixListener> {
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    chmod(path, Mode::RUSR | Mode::WUSR)?;
    listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let occupied = |why| io::Error::new(ErrorKind::AddrInUse, Occupied(why));
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(occupied(
            "there is a file of that name, and it is no socket",
        ));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(occupied("another process answers there")),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

struct Tell<F>(F);

impl<F: Fn() -> Document + Send + 'static> Protocol for Tell<F> {
    fn answer(&mut self, _: &[u8]) -> Option<Vec<u8>> {
        // Maps with text keys, numbers and texts: none of it can fail. Nothing is an answer
        // that the client can tell from a document.
        let mut text = serde_json::to_vec(&(self.0)()).unwrap_or_default();
        text.push(b'\n');
        Some(text)
    }
}
