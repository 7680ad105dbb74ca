//! READDIR and READDIRPLUS: a directory read in batches.
//!
//! A cookie is the file system's own position behind an entry (`d_off`), so a listing goes on
//! where it stopped even when other entries have come or gone meanwhile.

use super::attributes::{fattr, refusal, stat_name};
use super::mirror::{Mirror, State};
use super::tree::ROOT;
use nfs3_server::nfs3_types::nfs3::nfsstat3;
use nfs3_server::vfs::{DirEntryPlus, FileHandleU64, NextResult, ReadDirPlusIterator};
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom, openat, seek};
use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// Octets of one batch of entries, as the kernel writes them.
const BATCH_BYTES: usize = 16 * 1024;

struct Entry {
    inode: u64,
    name: CString,
    cookie: u64,
}

/// A directory being listed.
pub(super) struct Listing<'a> {
    mirror: &'a Mirror,
    number: u64,
    directory: OwnedFd,
    batch: VecDeque<Entry>,
}

impl<'a> Listing<'a> {
    /// Opens a directory behind `cookie`, which is zero or an entry's.
    pub(super) fn open(mirror: &'a Mirror, number: u64, cookie: u64) -> Result<Self, nfsstat3> {
        let place = mirror.state().tree.directory(number)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(&place, c".", flags, Mode::empty()).map_err(refusal)?;
        if cookie != 0 {
            seek(&directory, SeekFrom::Start(cookie)).map_err(|_| nfsstat3::NFS3ERR_BAD_COOKIE)?;
        }
        Ok(Self {
            mirror,
            number,
            directory,
            batch: VecDeque::new(),
        })
    }

    fn step(&mut self) -> Result<Option<DirEntryPlus<FileHandleU64>>, nfsstat3> {
        if self.batch.is_empty() {
            self.batch = read_batch(&self.directory)?;
        }
        let Some(entry) = self.batch.pop_front() else {
            return Ok(None);
        };
        Ok(Some(self.describe(entry)))
    }

    /// Adds attributes and handle. An entry that cannot have them (gone by now, or a mount
    /// point) is listed without: both are optional (RFC 1813 section 3.3.17).
    fn describe(&self, entry: Entry) -> DirEntryPlus<FileHandleU64> {
        let found = self.find(&mut self.mirror.state(), &entry.name).ok();
        let (number, attributes) = found.unzip();
        DirEntryPlus {
            fileid: attributes
                .as_ref()
                .map_or(entry.inode, |attributes| attributes.fileid),
            name: entry.name.into_bytes().into(),
            cookie: entry.cookie,
            name_attributes: attributes,
            name_handle: number.map(FileHandleU64::new),
        }
    }

    fn find(
        &self,
        state: &mut State,
        name: &CStr,
    ) -> Result<(u64, nfs3_server::nfs3_types::nfs3::fattr3), nfsstat3> {
        let number = match name.to_bytes() {
            b"." => self.number,
            // Above the root stands whatever holds the exported directory: not the client's business.
            b".." if self.number == ROOT => ROOT,
            b".." => state.tree.parent(self.number)?,
            _ => {
                let stat = stat_name(&self.directory, name)?;
                let number = state.tree.number(self.number, name, &stat)?;
                return Ok((number, fattr(&stat)));
            }
        };
        Ok((number, fattr(&state.tree.place(number)?.stat)))
    }
}

fn read_batch(directory: impl AsFd) -> Result<VecDeque<Entry>, nfsstat3> {
    let mut buffer = vec![MaybeUninit::uninit(); BATCH_BYTES];
    let mut entries = RawDir::new(directory, &mut buffer);
    let mut batch = VecDeque::new();
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(refusal)?;
        batch.push_back(Entry {
            inode: entry.ino(),
            name: entry.file_name().to_owned(),
            cookie: entry.next_entry_cookie(),
        });
        if entries.is_buffer_empty() {
            break;
        }
    }
    Ok(batch)
}

impl ReadDirPlusIterator<FileHandleU64> for Listing<'_> {
    async fn next(&mut self) -> NextResult<DirEntryPlus<FileHandleU64>> {
        match self.step() {
            Ok(Some(entry)) => NextResult::Ok(entry),
            Ok(None) => NextResult::Eof,
            Err(refusal) => NextResult::Err(refusal),
        }
    }
}
