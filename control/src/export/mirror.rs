//! A directory of the local file system, as the NFS server's file system.
//!
//! Every operation ends before it returns: there is nothing to wait for but the kernel, the
//! server has a thread to itself, and handing each call to a second thread would cost more
//! than most of them take. It also makes each operation atomic towards all others.
//!
//! The server acts as the user it runs as. Who the client says it is decides nothing: the
//! export listens on loopback alone, and AUTH_SYS proves nothing there.

use super::attributes::{
    apply, fattr, file_type, refusal, set_mode, set_times, stat_descriptor, stat_name,
};
use super::files::{Files, OPEN, Rights, regular};
use super::tree::{Tree, component, new_name, stand};
use nfs3_server::nfs3_types::nfs3::{
    createverf3, fattr3, nfsstat3, sattr3, set_mode3, set_size3, stable_how,
};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Statx, Timespec, Timestamps, fdatasync, fsync, ftruncate,
    mkdirat, openat, readlinkat, renameat, symlinkat, unlinkat,
};
use rustix::io::{Errno, pread, pwrite};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most octets of one READ or WRITE: what FSINFO tells clients.
pub(super) const TRANSFER_BYTES: u32 = 1 << 20;

/// Permissions of what a client makes without naming any.
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// The exported directory.
pub(super) struct Mirror {
    state: Mutex<State>,
    pub(super) read_only: bool,
}

/// What changes.
pub(super) struct State {
    pub(super) tree: Tree,
    files: Files,
}

impl Mirror {
    /// Exports `path`, which must be a directory.
    pub(super) fn open(path: &Path, read_only: bool) -> Result<Self, Errno> {
        let state = State {
            tree: Tree::open(path)?,
            files: Files::default(),
        };
        Ok(Self {
            state: Mutex::new(state),
            read_only,
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves nothing half done here that a later call could misread.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(super) fn lookup(&mut self, directory: u64, name: &[u8]) -> Result<u64, nfsstat3> {
        let name = component(name)?;
        match name.to_bytes() {
            b"." => self.tree.directory(directory).map(|_| directory),
            b".." => self
                .tree
                .directory(directory)
                .and_then(|_| self.tree.parent(directory)),
            _ => {
                let place = self.tree.directory(directory)?;
                let stat = stat_name(&place, &name)?;
                self.tree.number(directory, &name, &stat)
            }
        }
    }

    pub(super) fn attributes(&mut self, number: u64) -> Result<fattr3, nfsstat3> {
        match self.files.stat(number) {
            Some(stat) => Ok(fattr(&stat)),
            None => self.tree.place(number).map(|place| fattr(&place.stat)),
        }
    }

    /// The octets from `offset` on, at most `count`, and whether the file ends with them.
    pub(super) fn read(
        &mut self,
        number: u64,
        offset: u64,
        count: u32,
    ) -> Result<(Vec<u8>, bool), nfsstat3> {
        let (file, stat) = self.files.open(&self.tree, number, Rights::Read)?;
        let size = stat.stx_size;
        let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = left.min(count.min(TRANSFER_BYTES) as usize);
        let mut data = vec![0; count];
        let mut filled = 0;
        while filled < count {
            match pread(file, &mut data[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(Errno::INTR) => {}
                Err(error) => return Err(refusal(error)),
            }
        }
        data.truncate(filled);
        let end = filled < count || offset.saturating_add(filled as u64) >= size;
        Ok((data, end))
    }

    /// Writes all of `data`, and reports how stably (RFC 1813 section 3.3.7).
    pub(super) fn write(
        &mut self,
        number: u64,
        offset: u64,
        data: &[u8],
        stable: stable_how,
    ) -> Result<(fattr3, stable_how), nfsstat3> {
        let (file, _) = self.files.open(&self.tree, number, Rights::Write)?;
        offset
            .checked_add(data.len() as u64)
            .filter(|&end| i64::try_from(end).is_ok())
            .ok_or(nfsstat3::NFS3ERR_FBIG)?;
        let mut written = 0;
        while written < data.len() {
            match pwrite(file, &data[written..], offset + written as u64) {
                Ok(more) => written += more,
                Err(Errno::INTR) => {}
                Err(error) => return Err(refusal(error)),
            }
        }
        match stable {
            stable_how::UNSTABLE => {}
            stable_how::DATA_SYNC => fdatasync(file).map_err(refusal)?,
            stable_how::FILE_SYNC => fsync(file).map_err(refusal)?,
        }
        Ok((fattr(&stat_descriptor(file)?), stable))
    }

    /// COMMIT, of the whole file whatever range is asked for.
    pub(super) fn commit(&mut self, number: u64) -> Result<(), nfsstat3> {
        let (file, _) = self.files.open(&self.tree, number, Rights::Write)?;
        fsync(file).map_err(refusal)
    }

    pub(super) fn set(&mut self, number: u64, wanted: &sattr3) -> Result<fattr3, nfsstat3> {
        let place = self.tree.place(number)?;
        let file = stand(place.directory(), &place.name)?;
        if let set_size3::Some(size) = wanted.size {
            let (file, _) = self.files.open(&self.tree, number, Rights::Write)?;
            ftruncate(file, size).map_err(refusal)?;
        }
        apply(&file, wanted)?;
        Ok(fattr(&stat_descriptor(&file)?))
    }

    /// CREATE, UNCHECKED or (the caller having looked) GUARDED. An existing file keeps all
    /// but the size. Owner and group are the server's: a client that must have others sets
    /// them afterwards and learns whether that is allowed.
    pub(super) fn create(
        &mut self,
        directory: u64,
        name: &[u8],
        wanted: &sattr3,
    ) -> Result<(u64, fattr3), nfsstat3> {
        let name = new_name(name)?;
        let place = self.tree.directory(directory)?;
        let existed = match stat_name(&place, &name) {
            // Not opened even to be refused: it may be a device.
            Ok(stat) if regular(&stat).is_err() => return Err(nfsstat3::NFS3ERR_EXIST),
            Ok(_) => true,
            Err(nfsstat3::NFS3ERR_NOENT) => false,
            Err(error) => return Err(error),
        };
        let flags = OFlags::CREATE | OFlags::RDWR | OPEN;
        let file = openat(&place, &name, flags, Mode::from_raw_mode(0o600)).map_err(refusal)?;
        regular(&stat_descriptor(&file)?)?;
        if !existed {
            set_mode(&file, mode_of(wanted, FILE_MODE))?;
        }
        if let set_size3::Some(size) = wanted.size {
            ftruncate(&file, size).map_err(refusal)?;
        }
        if !existed {
            apply_times(&file, wanted)?;
        }
        self.adopt(directory, &name, file)
    }

    /// CREATE, EXCLUSIVE: the verifier is kept in the file's times, which the client sets
    /// next anyway (RFC 1813 section 3.3.8), so that a repetition is told from a second client.
    pub(super) fn create_exclusive(
        &mut self,
        directory: u64,
        name: &[u8],
        verifier: createverf3,
    ) -> Result<u64, nfsstat3> {
        let name = new_name(name)?;
        let place = self.tree.directory(directory)?;
        let times = verifier_times(verifier);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OPEN;
        match openat(&place, &name, flags, Mode::from_raw_mode(0o600)) {
            Ok(file) => {
                set_mode(&file, FILE_MODE)?;
                set_times(&file, &times)?;
                self.adopt(directory, &name, file).map(|(number, _)| number)
            }
            Err(Errno::EXIST) => {
                let stat = stat_name(&place, &name)?;
                let same = stat.stx_atime.tv_sec == times.last_access.tv_sec
                    && stat.stx_mtime.tv_sec == times.last_modification.tv_sec;
                if !same || regular(&stat).is_err() {
                    return Err(nfsstat3::NFS3ERR_EXIST);
                }
                self.tree.number(directory, &name, &stat)
            }
            Err(error) => Err(refusal(error)),
        }
    }

    /// Numbers a file that was just made, and keeps it open: WRITEs follow, also to a file
    /// whose mode would not let it be opened again.
    fn adopt(
        &mut self,
        directory: u64,
        name: &CStr,
        file: OwnedFd,
    ) -> Result<(u64, fattr3), nfsstat3> {
        let stat = stat_descriptor(&file)?;
        let number = self.tree.number(directory, name, &stat)?;
        self.files.keep(number, file, Rights::Both);
        Ok((number, fattr(&stat)))
    }

    pub(super) fn make_directory(
        &mut self,
        directory: u64,
        name: &[u8],
    ) -> Result<(u64, fattr3), nfsstat3> {
        let name = new_name(name)?;
        let place = self.tree.directory(directory)?;
        mkdirat(&place, &name, Mode::from_raw_mode(0o700)).map_err(refusal)?;
        set_mode(stand(&place, &name)?, DIRECTORY_MODE)?;
        self.made(directory, &name, &place)
    }

    pub(super) fn make_link(
        &mut self,
        directory: u64,
        name: &[u8],
        target: &[u8],
    ) -> Result<(u64, fattr3), nfsstat3> {
        let name = new_name(name)?;
        let target = CString::new(target).map_err(|_| nfsstat3::NFS3ERR_INVAL)?;
        let place = self.tree.directory(directory)?;
        symlinkat(&target, &place, &name).map_err(refusal)?;
        self.made(directory, &name, &place)
    }

    fn made(
        &mut self,
        directory: u64,
        name: &CStr,
        place: impl AsFd,
    ) -> Result<(u64, fattr3), nfsstat3> {
        let stat = stat_name(place, name)?;
        Ok((self.tree.number(directory, name, &stat)?, fattr(&stat)))
    }

    pub(super) fn read_link(&mut self, number: u64) -> Result<Vec<u8>, nfsstat3> {
        let place = self.tree.place(number)?;
        if file_type(&place.stat) != FileType::Symlink {
            return Err(nfsstat3::NFS3ERR_INVAL);
        }
        readlinkat(place.directory(), &place.name, Vec::new())
            .map(CString::into_bytes)
            .map_err(refusal)
    }

    /// REMOVE and RMDIR: the server crate does not tell them apart.
    pub(super) fn remove(&mut self, directory: u64, name: &[u8]) -> Result<(), nfsstat3> {
        let name = new_name(name)?;
        let place = self.tree.directory(directory)?;
        let stat = stat_name(&place, &name)?;
        let flags = match file_type(&stat) {
            FileType::Directory => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        unlinkat(&place, &name, flags).map_err(refusal)?;
        self.lost_name(&stat);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8])) -> Result<(), nfsstat3> {
        let (from_name, to_name) = (new_name(from.1)?, new_name(to.1)?);
        let from_place = self.tree.directory(from.0)?;
        let to_place = self.tree.directory(to.0)?;
        let moved = stat_name(&from_place, &from_name)?;
        let replaced = stat_name(&to_place, &to_name).ok();
        renameat(&from_place, &from_name, &to_place, &to_name).map_err(refusal)?;
        let same = replaced.as_ref().is_some_and(|stat| {
            self.tree.known(stat).is_some() && self.tree.known(stat) == self.tree.known(&moved)
        });
        if let Some(stat) = replaced.filter(|_| !same) {
            self.lost_name(&stat);
        }
        self.tree.number(to.0, &to_name, &moved).map(|_| ())
    }

    /// A name of the file with these attributes, taken before, is gone.
    fn lost_name(&mut self, before: &Statx) {
        let last = before.stx_nlink <= 1 || file_type(before) == FileType::Directory;
        if let Some(number) = self.tree.known(before).filter(|_| last) {
            self.files.close(number);
            self.tree.forget(number);
        }
    }
}

fn mode_of(wanted: &sattr3, default: u32) -> u32 {
    match wanted.mode {
        set_mode3::Some(mode) => mode,
        set_mode3::None => default,
    }
}

/// The times alone of `wanted`.
fn apply_times(file: impl AsFd, wanted: &sattr3) -> Result<(), nfsstat3> {
    apply(
        file,
        &sattr3 {
            atime: wanted.atime,
            mtime: wanted.mtime,
            ..sattr3::default()
        },
    )
}

/// The verifier as two times that every file system can hold: 31 bits of seconds each.
fn verifier_times(verifier: createverf3) -> Timestamps {
    let seconds = |octets: [u8; 4]| Timespec {
        tv_sec: i64::from(u32::from_be_bytes(octets) & 0x7fff_ffff),
        tv_nsec: 0,
    };
    let [a, b, c, d, e, f, g, h] = verifier.0;
    Timestamps {
        last_access: seconds([a, b, c, d]),
        last_modification: seconds([e, f, g, h]),
    }
}
