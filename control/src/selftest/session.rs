//! One mounted export, and the calls that the self-test makes on it, each of them timed.

use super::Plan;
use super::report::Latencies;
use super::transport::{Patience, Wire, finish};
use anyhow::{Context, Result, anyhow, bail};
use nfs3_client::nfs3_types::nfs3::{
    COMMIT3args, CREATE3args, FSINFO3args, LOOKUP3args, MKDIR3args, Nfs3Option, Nfs3Result,
    READ3args, READDIRPLUS3args, READLINK3args, REMOVE3args, RENAME3args, RMDIR3args, SYMLINK3args,
    WRITE3args, cookieverf3, createhow3, diropargs3, filename3, nfs_fh3, nfspath3, sattr3,
    set_size3, stable_how, symlinkdata3,
};
use nfs3_client::nfs3_types::xdr_codec::Opaque;
use nfs3_client::{Nfs3Connection, Nfs3ConnectionBuilder, RpcError};
use std::time::{Duration, Instant};

/// Most octets of one READ or WRITE, whatever the server would take.
const TRANSFER_BYTES: u32 = 1 << 20;
/// Octets of directory entries asked for at a time: few, so that a listing takes several calls.
const LISTING_BYTES: u32 = 1024;

/// A mounted export.
pub(super) struct Session {
    connection: Nfs3Connection<Wire>,
    read_bytes: u32,
    write_bytes: u32,
    /// How long each operation took.
    pub(super) latencies: Latencies,
    /// How long all of them took together.
    pub(super) waited: Duration,
}

/// One name of a listing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) bytes: Option<u64>,
}

impl Session {
    /// Mounts the plan's path.
    pub(super) fn mount(plan: &Plan) -> Result<Self> {
        let &Plan {
            nfs,
            mount,
            patience,
            ref path,
            ..
        } = plan;
        if nfs.ip() != mount.ip() {
            bail!("NFS at {nfs} and MOUNT at {mount}: the client wants both on one host");
        }
        let builder = Nfs3ConnectionBuilder::new(Patience(patience), nfs.ip().to_string(), path)
            .connect_from_privileged_port(false)
            .nfs3_port(nfs.port())
            .mount_port(mount.port());
        let mut latencies = Latencies::default();
        let start = Instant::now();
        let connection =
            finish(builder.mount()).with_context(|| format!("cannot mount {path} from {mount}"))?;
        latencies.record("MNT", start.elapsed());
        let mut session = Self {
            connection,
            read_bytes: TRANSFER_BYTES,
            write_bytes: TRANSFER_BYTES,
            latencies,
            waited: Duration::ZERO,
        };
        session.ask_sizes()?;
        Ok(session)
    }

    /// Makes one call, and takes the time.
    fn call<T>(
        &mut self,
        operation: &'static str,
        call: impl AsyncFnOnce(&mut Nfs3Connection<Wire>) -> T,
    ) -> T {
        let start = Instant::now();
        let result = finish(call(&mut self.connection));
        let took = start.elapsed();
        self.waited += took;
        self.latencies.record(operation, took);
        result
    }

    pub(super) fn root(&self) -> nfs_fh3 {
        self.connection.root_nfs_fh3()
    }

    fn ask_sizes(&mut self) -> Result<()> {
        let args = FSINFO3args {
            fsroot: self.root(),
        };
        let info = self.call("FSINFO", async |nfs| nfs.fsinfo(&args).await);
        let info = accepted("FSINFO", info)?;
        self.read_bytes = info.rtmax.clamp(1, TRANSFER_BYTES);
        self.write_bytes = info.wtmax.clamp(1, TRANSFER_BYTES);
        Ok(())
    }

    pub(super) fn make_directory(&mut self, parent: &nfs_fh3, name: &str) -> Result<nfs_fh3> {
        let args = MKDIR3args {
            where_: place(parent, name),
            attributes: sattr3::default(),
        };
        let made = self.call("MKDIR", async |nfs| nfs.mkdir(&args).await);
        handle("MKDIR", accepted("MKDIR", made)?.obj)
    }

    /// Makes an empty file, or empties the one that is there.
    pub(super) fn create(&mut self, parent: &nfs_fh3, name: &str) -> Result<nfs_fh3> {
        let attributes = sattr3 {
            size: set_size3::Some(0),
            ..sattr3::default()
        };
        let how = createhow3::UNCHECKED(attributes);
        let args = CREATE3args {
            where_: place(parent, name),
            how,
        };
        let made = self.call("CREATE", async |nfs| nfs.create(&args).await);
        handle("CREATE", accepted("CREATE", made)?.obj)
    }

    pub(super) fn lookup(&mut self, parent: &nfs_fh3, name: &str) -> Result<nfs_fh3> {
        let args = LOOKUP3args {
            what: place(parent, name),
        };
        let found = self.call("LOOKUP", async |nfs| nfs.lookup(&args).await);
        Ok(accepted("LOOKUP", found)?.object)
    }

    /// Octets that one call of [`Session::write`] takes at most.
    pub(super) fn write_bytes(&self) -> usize {
        self.write_bytes as usize
    }

    /// Writes `data`, no longer than [`Session::write_bytes`], without asking for stability.
    pub(super) fn write(&mut self, file: &nfs_fh3, offset: u64, data: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < data.len() {
            let rest = &data[done..];
            let args = WRITE3args {
                file: file.clone(),
                offset: offset + done as u64,
                count: u32::try_from(rest.len()).context("too long for one WRITE")?,
                stable: stable_how::UNSTABLE,
                data: Opaque::borrowed(rest),
            };
            let result = self.call("WRITE", async |nfs| nfs.write(&args).await);
            match accepted("WRITE", result)?.count as usize {
                0 => bail!("WRITE: the server took nothing and called it success"),
                count if count > rest.len() => {
                    bail!("WRITE: the server took {count} octets of {}", rest.len())
                }
                count => done += count,
            }
        }
        Ok(())
    }

    pub(super) fn commit(&mut self, file: &nfs_fh3) -> Result<()> {
        let args = COMMIT3args {
            file: file.clone(),
            offset: 0,
            count: 0,
        };
        let result = self.call("COMMIT", async |nfs| nfs.commit(&args).await);
        accepted("COMMIT", result).map(|_| ())
    }

    /// Reads a file from its start to its end, a piece at a time.
    pub(super) fn read_all(&mut self, file: &nfs_fh3, mut take: impl FnMut(&[u8])) -> Result<u64> {
        let mut offset = 0;
        loop {
            let args = READ3args {
                file: file.clone(),
                offset,
                count: self.read_bytes,
            };
            let result = self.call("READ", async |nfs| nfs.read(&args).await);
            let read = accepted("READ", result)?;
            if read.data.len() != read.count as usize || read.count > self.read_bytes {
                bail!(
                    "READ: {} octets came, {} announced, {} asked for",
                    read.data.len(),
                    read.count,
                    self.read_bytes
                );
            }
            take(&read.data);
            offset += u64::from(read.count);
            match (read.eof, read.count) {
                (true, _) => return Ok(offset),
                (false, 0) => bail!("READ: nothing came at {offset}, and not the end of the file"),
                (false, _) => {}
            }
        }
    }

    /// All names but `.` and `..`, in order.
    pub(super) fn list(&mut self, directory: &nfs_fh3) -> Result<Vec<Listed>> {
        let (mut cookie, mut cookieverf) = (0, cookieverf3::default());
        let mut names = Vec::new();
        loop {
            let dir = directory.clone();
            let (dircount, maxcount) = (LISTING_BYTES, LISTING_BYTES * 4);
            let args = READDIRPLUS3args {
                dir,
                cookie,
                cookieverf,
                dircount,
                maxcount,
            };
            let result = self.call("READDIRPLUS", async |nfs| nfs.readdirplus(&args).await);
            let page = accepted("READDIRPLUS", result)?;
            cookieverf = page.cookieverf;
            let entries = page.reply.entries.into_inner();
            match entries.last() {
                Some(last) => cookie = last.cookie,
                None if !page.reply.eof => bail!("READDIRPLUS: an empty page, and not the last"),
                None => {}
            }
            names.extend(
                entries
                    .iter()
                    .map(listed)
                    .filter(|entry| !matches!(entry.name.as_str(), "." | "..")),
            );
            if page.reply.eof {
                names.sort();
                return Ok(names);
            }
        }
    }

    /// Makes a symbolic link, and reads it back.
    pub(super) fn link_and_read(
        &mut self,
        parent: &nfs_fh3,
        name: &str,
        target: &str,
    ) -> Result<String> {
        let symlink = symlinkdata3 {
            symlink_attributes: sattr3::default(),
            symlink_data: nfspath3(Opaque::borrowed(target.as_bytes())),
        };
        let args = SYMLINK3args {
            where_: place(parent, name),
            symlink,
        };
        let made = self.call("SYMLINK", async |nfs| nfs.symlink(&args).await);
        let args = READLINK3args {
            symlink: handle("SYMLINK", accepted("SYMLINK", made)?.obj)?,
        };
        let read = self.call("READLINK", async |nfs| nfs.readlink(&args).await);
        let path = accepted("READLINK", read)?.data.0.into_owned();
        String::from_utf8(path).context("READLINK: not the path that was written")
    }

    pub(super) fn rename(&mut self, parent: &nfs_fh3, from: &str, to: &str) -> Result<()> {
        let args = RENAME3args {
            from: place(parent, from),
            to: place(parent, to),
        };
        let result = self.call("RENAME", async |nfs| nfs.rename(&args).await);
        accepted("RENAME", result).map(|_| ())
    }

    pub(super) fn remove(&mut self, parent: &nfs_fh3, name: &str) -> Result<()> {
        let args = REMOVE3args {
            object: place(parent, name),
        };
        let result = self.call("REMOVE", async |nfs| nfs.remove(&args).await);
        accepted("REMOVE", result).map(|_| ())
    }

    pub(super) fn remove_directory(&mut self, parent: &nfs_fh3, name: &str) -> Result<()> {
        let args = RMDIR3args {
            object: place(parent, name),
        };
        let result = self.call("RMDIR", async |nfs| nfs.rmdir(&args).await);
        accepted("RMDIR", result).map(|_| ())
    }
}

fn place<'a>(directory: &nfs_fh3, name: &'a str) -> diropargs3<'a> {
    diropargs3 {
        dir: directory.clone(),
        name: filename3(Opaque::borrowed(name.as_bytes())),
    }
}

fn listed(entry: &nfs3_client::nfs3_types::nfs3::entryplus3<'_>) -> Listed {
    let bytes = match &entry.name_attributes {
        Nfs3Option::Some(attributes) => Some(attributes.size),
        Nfs3Option::None => None,
    };
    Listed {
        name: String::from_utf8_lossy(entry.name.as_ref()).into_owned(),
        bytes,
    }
}

/// Turns the three ways of an answer into two.
fn accepted<T, E>(operation: &str, result: Result<Nfs3Result<T, E>, RpcError>) -> Result<T> {
    match result.with_context(|| operation.to_owned())? {
        Nfs3Result::Ok(value) => Ok(value),
        Nfs3Result::Err((status, _)) => Err(anyhow!("{operation}: {status}")),
    }
}

fn handle(operation: &str, handle: Nfs3Option<nfs_fh3>) -> Result<nfs_fh3> {
    match handle {
        Nfs3Option::Some(handle) => Ok(handle),
        Nfs3Option::None => Err(anyhow!("{operation}: the server gives no file handle")),
    }
}
