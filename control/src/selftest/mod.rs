//! The client half of `rpcrdmad run --self-test`: an NFSv3 client that copies files in and out
//! through whatever stands between it and the server, and checks every octet, both against
//! what it wrote and against what the server has on its disk.
//!
//! It goes through the same door as any client: a TCP port. Nothing here knows about RDMA; the
//! proof that payloads went by direct placement are the dataplane's counters, which the caller
//! reads before and after.

mod contents;
mod progress;
mod report;
mod session;
mod transport;

#[cfg(test)]
mod tests;

pub use progress::Progress;
pub use report::{CounterReport, FileReport, OperationReport, Report};

use anyhow::{Context, Result};
use contents::{Contents, Sum};
use nfs3_client::nfs3_types::nfs3::nfs_fh3;
use report::nanoseconds;
use session::{Listed, Session};
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The lengths of the files copied, octets: nothing, one, around a page and an inline
/// threshold, a larger one, around the longest READ and WRITE, and many of those.
pub const LENGTHS: [u64; 7] = [0, 1, 4095, 4096, 65_536, 1_048_577, 64 << 20];

/// What to test.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where NFS is served.
    pub nfs: SocketAddr,
    /// Where MOUNT is served; on the same host.
    pub mount: SocketAddr,
    /// The path to mount.
    pub path: String,
    /// The served directory, where it can be looked at.
    pub on_disk: Option<PathBuf>,
    /// What the files' contents are made from.
    pub seed: u64,
    /// The files' lengths, octets.
    pub lengths: Vec<u64>,
    /// How long a single answer may take.
    pub patience: Duration,
}

impl Plan {
    /// The usual plan: all of [`LENGTHS`], ten seconds of patience.
    #[must_use]
    pub fn new(nfs: SocketAddr, mount: SocketAddr, path: &str, on_disk: Option<PathBuf>) -> Self {
        let patience = Duration::from_secs(10);
        Self {
            nfs,
            mount,
            path: path.to_owned(),
            on_disk,
            seed: 0x7270_6372,
            lengths: LENGTHS.to_vec(),
            patience,
        }
    }
}

/// Runs a plan in a directory of its own below the export's root, and removes that directory.
///
/// What goes wrong is in the report, never lost: a test that stops half way says where.
#[must_use]
pub fn run(plan: &Plan, progress: &Progress) -> Report {
    let mut report = Report::default();
    match Session::mount(plan) {
        Ok(mut session) => {
            if let Err(error) = exercise(plan, &mut session, progress, &mut report) {
                report.failures.push(format!("{error:#}"));
            }
            report.operations = session.latencies.report();
        }
        Err(error) => report.failures.push(format!("{error:#}")),
    }
    progress.done();
    report.passed = report.failures.is_empty() && report.files.len() == plan.lengths.len();
    report
}

fn exercise(
    plan: &Plan,
    session: &mut Session,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let root = session.root();
    let scratch = format!("self-test-{}", std::process::id());
    let directory = session.make_directory(&root, &scratch)?;
    let on_disk = plan.on_disk.as_ref().map(|path| path.join(&scratch));
    progress.expect(plan.lengths.iter().sum::<u64>() * 2);

    let mut expected = Vec::new();
    for &bytes in &plan.lengths {
        let name = format!("{bytes}-octets");
        let copy = Copy {
            name: &name,
            bytes,
            seed: plan.seed ^ bytes,
        };
        let file = copy
            .there_and_back(session, &directory, on_disk.as_deref(), progress)
            .with_context(|| name.clone())?;
        if !file.matches() {
            report.failures.push(format!("{name}: the contents differ"));
        }
        report.files.push(file);
        expected.push(Listed {
            name,
            bytes: Some(bytes),
        });
    }
    expected.sort();
    if session.list(&directory)? != expected {
        report
            .failures
            .push("the listing is not what was written".to_owned());
    }
    names(session, &directory, report)?;
    for file in &expected {
        session.remove(&directory, &file.name)?;
    }
    session.remove_directory(&root, &scratch)
}

/// Operations on names: a symbolic link, a renaming, a name looked up and gone.
fn names(session: &mut Session, directory: &nfs_fh3, report: &mut Report) -> Result<()> {
    let target = "somewhere/else".repeat(20);
    if session.link_and_read(directory, "link", &target)? != target {
        report
            .failures
            .push("a symbolic link does not say what was written".to_owned());
    }
    session.rename(directory, "link", "renamed")?;
    session.lookup(directory, "renamed")?;
    session.remove(directory, "renamed")?;
    if session.lookup(directory, "renamed").is_ok() {
        report
            .failures
            .push("a removed name is still there".to_owned());
    }
    Ok(())
}

/// One file to be copied.
struct Copy<'a> {
    name: &'a str,
    bytes: u64,
    seed: u64,
}

impl Copy<'_> {
    fn there_and_back(
        &self,
        session: &mut Session,
        directory: &nfs_fh3,
        on_disk: Option<&Path>,
        progress: &Progress,
    ) -> Result<FileReport> {
        progress.at(self.name);
        let file = session.create(directory, self.name)?;
        let (sha256_written, write_ns) = self.write(session, &file, progress)?;
        let sha256_on_disk = on_disk
            .map(|path| sum_of(&path.join(self.name)))
            .transpose()?;
        let file = session.lookup(directory, self.name)?;
        let before = session.waited;
        let mut sum = Sum::default();
        session.read_all(&file, |octets| {
            sum.add(octets);
            progress.advance(octets.len() as u64);
        })?;
        let read_ns = nanoseconds(session.waited - before);
        Ok(FileReport {
            name: self.name.to_owned(),
            bytes: self.bytes,
            sha256_written,
            sha256_on_disk,
            sha256_read: sum.finish(),
            write_ns,
            read_ns,
        })
    }

    fn write(
        &self,
        session: &mut Session,
        file: &nfs_fh3,
        progress: &Progress,
    ) -> Result<(String, u64)> {
        let mut contents = Contents::new(self.seed);
        let mut sum = Sum::default();
        let mut piece = vec![0; session.write_bytes()];
        let mut offset = 0;
        let before = session.waited;
        while offset < self.bytes {
            let left = usize::try_from(self.bytes - offset).unwrap_or(usize::MAX);
            let length = left.min(piece.len());
            let piece = &mut piece[..length];
            contents.fill(piece);
            sum.add(piece);
            session.write(file, offset, piece)?;
            offset += piece.len() as u64;
            progress.advance(piece.len() as u64);
        }
        session.commit(file)?;
        Ok((sum.finish(), nanoseconds(session.waited - before)))
    }
}

/// The SHA-256 of a file on this machine.
fn sum_of(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| path.display().to_string())?;
    let mut sum = Sum::default();
    let mut piece = vec![0; 1 << 16];
    loop {
        match file
            .read(&mut piece)
            .with_context(|| path.display().to_string())?
        {
            0 => return Ok(sum.finish()),
            length => sum.add(&piece[..length]),
        }
    }
}
