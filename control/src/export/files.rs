//! Files kept open between a client's READs and WRITEs, which name a file anew each time.

use super::attributes::{Identity, file_type, refusal, stat_descriptor};
use super::tree::Tree;
use nfs3_server::nfs3_types::nfs3::nfsstat3;
use rustix::fs::{FileType, Mode, OFlags, Statx, openat};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Most files open at once; the one unused longest makes room.
const MAX_OPEN: usize = 64;

/// Flags of every open: not through a symbolic link, and no waiting for the other end of a
/// FIFO that has taken the file's name in between.
pub(super) const OPEN: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

struct Open {
    number: u64,
    file: OwnedFd,
    rights: Rights,
    used: u64,
}

/// What an open file can be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    Read,
    Write,
    Both,
}

impl Rights {
    fn include(self, wanted: Rights) -> bool {
        self == Rights::Both || self == wanted
    }
}

/// The open files. Few enough to search one after the other.
#[derive(Default)]
pub(super) struct Files {
    open: Vec<Open>,
    clock: u64,
}

impl Files {
    /// A descriptor of the regular file `number`, good for what is wanted, and its attributes.
    pub(super) fn open(
        &mut self,
        tree: &Tree,
        number: u64,
        wanted: Rights,
    ) -> Result<(BorrowedFd<'_>, Statx), nfsstat3> {
        let kept = self.stat(number);
        let fits = |open: &Open| open.number == number && open.rights.include(wanted);
        let (index, stat) = match (self.open.iter().position(fits), kept) {
            (Some(index), Some(stat)) => (index, stat),
            _ => {
                let (file, stat, rights) = open_regular(tree, number, wanted)?;
                (self.keep(number, file, rights), stat)
            }
        };
        self.clock += 1;
        self.open[index].used = self.clock;
        Ok((self.open[index].file.as_fd(), stat))
    }

    /// Keeps a file that has just been opened or made; its place.
    pub(super) fn keep(&mut self, number: u64, file: OwnedFd, rights: Rights) -> usize {
        self.close(number);
        self.clock += 1;
        let open = Open {
            number,
            file,
            rights,
            used: self.clock,
        };
        if self.open.len() < MAX_OPEN {
            self.open.push(open);
            return self.open.len() - 1;
        }
        let oldest = (0..self.open.len())
            .min_by_key(|&at| self.open[at].used)
            .unwrap_or(0);
        self.open[oldest] = open;
        oldest
    }

    /// The attributes of a file that is open; `None` where it is not, or has lost its last name.
    pub(super) fn stat(&mut self, number: u64) -> Option<Statx> {
        let open = self.open.iter().find(|open| open.number == number)?;
        let stat = stat_descriptor(&open.file).ok()?;
        if stat.stx_nlink == 0 {
            // Nobody can come here by name again: keeping it would only keep its space.
            self.close(number);
            return None;
        }
        Some(stat)
    }

    /// Closes a file if it is open.
    pub(super) fn close(&mut self, number: u64) {
        self.open.retain(|open| open.number != number);
    }
}

/// Opens a regular file by number: for both directions where that is allowed, so that the
/// WRITEs after a READ find it open, and for what is wanted alone otherwise.
fn open_regular(
    tree: &Tree,
    number: u64,
    wanted: Rights,
) -> Result<(OwnedFd, Statx, Rights), nfsstat3> {
    let place = tree.place(number)?;
    // Before the open, because opening a device may do something; and after it, because the
    // name may have been given to another file in between.
    regular(&place.stat)?;
    let open = |access| openat(place.directory(), &place.name, access | OPEN, Mode::empty());
    let (file, rights) = match open(OFlags::RDWR) {
        Ok(file) => (file, Rights::Both),
        Err(_) if wanted == Rights::Read => (open(OFlags::RDONLY).map_err(refusal)?, wanted),
        Err(_) => (open(OFlags::WRONLY).map_err(refusal)?, Rights::Write),
    };
    let stat = stat_descriptor(&file)?;
    if Identity::of(&stat) != Identity::of(&place.stat) {
        return Err(nfsstat3::NFS3ERR_STALE);
    }
    Ok((file, stat, rights))
}

/// Refuses what READ, WRITE and COMMIT cannot be done on (RFC 1813 sections 3.3.6 and 3.3.7:
/// INVAL for whatever is not a regular file).
pub(super) fn regular(stat: &Statx) -> Result<(), nfsstat3> {
    match file_type(stat) {
        FileType::RegularFile => Ok(()),
        _ => Err(nfsstat3::NFS3ERR_INVAL),
    }
}
