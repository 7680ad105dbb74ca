//! From the name of a file to its handle: rpcbind, MOUNT, LOOKUP or CREATE, SETATTR.

use super::client::{Arguments, Client};
use super::{FileHandle, PROGRAM, User, VERSION};
use anyhow::{Context, Result, bail, ensure};
use std::net::{IpAddr, SocketAddr};

/// MOUNT (RFC 1813 appendix I).
const MOUNT: (u32, u32) = (100_005, 3);
/// The portmapper (RFC 1833 section 3): version two is enough to ask for a TCP port.
const PORTMAP: (u32, u32) = (100_000, 2);
const PORTMAP_PORT: u16 = 111;
const TCP: u32 = 6;
/// No such entry (NFS3ERR_NOENT).
const NOENT: u32 = 2;

/// A file of an export, and where the server's programs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The server.
    pub server: IpAddr,
    /// The TCP port of MOUNT; `None`: as its portmapper says.
    pub mount_port: Option<u16>,
    /// The TCP port of NFS.
    pub nfs_port: u16,
    /// The path to mount.
    pub path: String,
    /// The file in it, which is made where there is none.
    pub file: String,
}

/// Finds the file, made as long as `bytes` if it is not.
///
/// # Errors
///
/// The server, at whichever step, says no.
pub fn find(export: &Export, user: User, bytes: u64) -> Result<FileHandle> {
    let at = |port| SocketAddr::new(export.server, port);
    let mount_port = match export.mount_port {
        Some(port) => port,
        None => port_of(at(PORTMAP_PORT), MOUNT, user).context("where MOUNT is")?,
    };
    let mut mount = Client::connect(at(mount_port), MOUNT, user)?;
    let mut results = mount.call(1, Arguments::default().opaque(export.path.as_bytes()))?;
    let status = results.word()?;
    ensure!(status == 0, "MOUNT of {}: status {status}", export.path);
    let root = results.opaque()?;

    let mut nfs = Client::connect(at(export.nfs_port), (PROGRAM, VERSION), user)?;
    let name = export.file.as_bytes();
    let mut results = nfs.call(3, Arguments::default().opaque(&root).opaque(name))?;
    let handle = match results.word()? {
        0 => results.opaque()?,
        NOENT => create(&mut nfs, &root, name)?,
        status => bail!("LOOKUP of {}: status {status}", export.file),
    };
    lengthen(&mut nfs, &handle, bytes)?;
    FileHandle::new(&handle).context("a file handle of more than 64 octets")
}

/// The TCP port of a program.
fn port_of(portmap: SocketAddr, (program, version): (u32, u32), user: User) -> Result<u16> {
    let mut client = Client::connect(portmap, PORTMAP, user)?;
    let mapping = [program, version, TCP, 0];
    let port = client
        .call(3, Arguments::default().words(&mapping))?
        .word()?;
    let port = u16::try_from(port).ok().filter(|&port| port != 0);
    port.with_context(|| format!("program {program} is not registered"))
}

/// Makes an empty file.
fn create(nfs: &mut Client, root: &[u8], name: &[u8]) -> Result<Vec<u8>> {
    // UNCHECKED; sattr3: mode 0644, nothing else.
    let mut arguments = Arguments::default();
    arguments.opaque(root).opaque(name);
    arguments.words(&[0, 1, 0o644, 0, 0, 0, 0, 0]);
    let mut results = nfs.call(8, &arguments)?;
    let status = results.word()?;
    ensure!(status == 0, "CREATE: status {status}");
    ensure!(results.word()? == 1, "CREATE: no file handle");
    results.opaque()
}

/// Makes a file longer than it is, where it has to be.
fn lengthen(nfs: &mut Client, handle: &[u8], bytes: u64) -> Result<()> {
    let mut results = nfs.call(1, Arguments::default().opaque(handle))?;
    let status = results.word()?;
    ensure!(status == 0, "GETATTR: status {status}");
    // Type, mode, links, owner, group; then the size.
    for _ in 0..5 {
        results.word()?;
    }
    let size = u64::from(results.word()?) << 32 | u64::from(results.word()?);
    if size >= bytes {
        return Ok(());
    }
    let [high, low] = [(bytes >> 32) as u32, (bytes & 0xffff_ffff) as u32];
    // sattr3: the size alone; no guard.
    let mut arguments = Arguments::default();
    arguments.opaque(handle);
    arguments.words(&[0, 0, 0, 1, high, low, 0, 0, 0]);
    let status = nfs.call(2, &arguments)?.word()?;
    ensure!(status == 0, "SETATTR of the size: status {status}");
    Ok(())
}
