//! Which file a file handle means.
//!
//! A handle is a number given out once and never again while the server runs. Behind it
//! stands a *node*: the file's identity, and one name it was last seen under. To reach the
//! file its names are walked down from the root, one descriptor opened with `O_NOFOLLOW` after
//! the other, and what is found at the end must have the node's identity. So
//!
//! - nothing outside the tree can be reached: there is no step up, and none through a symbolic
//!   link, whoever rearranges the directories meanwhile;
//! - a file that was replaced under its old name is stale, never mistaken for the new one;
//! - renaming a directory costs nothing: what is below it names it by its number.
//!
//! A file with several names (hard links) is one node, under the name seen last. When that
//! name goes, the handle is stale until the file is looked up under another.

use super::attributes::{Identity, file_type, refusal, stat_descriptor, stat_name};
use nfs3_server::nfs3_types::nfs3::nfsstat3;
use rustix::fs::{FileType, Mode, OFlags, Statx, open, openat};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

/// The number of the root.
pub(super) const ROOT: u64 = 1;

/// Most nodes kept. A client makes one per file it looks up; at about 150 octets each this is
/// where it stops, with `NFS3ERR_SERVERFAULT`.
const MAX_NODES: usize = 1 << 20;

/// Most directories between a file and the root. Also what ends a walk round a ring, which
/// stale names can form after directories were moved behind the server's back.
const MAX_DEPTH: usize = 256;

/// Flags of a descriptor that only stands for a file and cannot read or write it.
const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

struct Node {
    parent: u64,
    name: CString,
    identity: Identity,
}

/// All files known by handle.
pub(super) struct Tree {
    root: Arc<OwnedFd>,
    nodes: HashMap<u64, Node>,
    numbers: HashMap<Identity, u64>,
    next: u64,
}

/// Where a file is: a name in an open directory.
pub(super) struct Place {
    directory: Arc<OwnedFd>,
    /// The last component; `.` for the root.
    pub(super) name: CString,
    /// The file's attributes a moment ago.
    pub(super) stat: Statx,
}

impl Place {
    /// The directory that holds the name.
    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Tree {
    /// Opens the directory that becomes the root.
    pub(super) fn open(path: &Path) -> Result<Self, rustix::io::Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(path, flags, Mode::empty())?;
        let stat = stat_descriptor(&root).map_err(|_| rustix::io::Errno::IO)?;
        let identity = Identity::of(&stat);
        let node = Node {
            parent: ROOT,
            name: c".".to_owned(),
            identity,
        };
        Ok(Self {
            root: Arc::new(root),
            nodes: HashMap::from([(ROOT, node)]),
            numbers: HashMap::from([(identity, ROOT)]),
            next: ROOT + 1,
        })
    }

    /// Finds the file behind a number.
    pub(super) fn place(&self, number: u64) -> Result<Place, nfsstat3> {
        let node = self.nodes.get(&number).ok_or(nfsstat3::NFS3ERR_STALE)?;
        let directory = if number == ROOT {
            self.root.clone()
        } else {
            self.walk(node.parent)?
        };
        let stat = stat_name(&directory, &node.name).map_err(gone)?;
        if Identity::of(&stat) != node.identity {
            return Err(nfsstat3::NFS3ERR_STALE);
        }
        Ok(Place {
            directory,
            name: node.name.clone(),
            stat,
        })
    }

    /// Opens the directory behind a number, to name things in it.
    pub(super) fn directory(&self, number: u64) -> Result<Arc<OwnedFd>, nfsstat3> {
        let node = self.nodes.get(&number).ok_or(nfsstat3::NFS3ERR_STALE)?;
        if number == ROOT {
            return Ok(self.root.clone());
        }
        let place = self.place(number)?;
        if file_type(&place.stat) != FileType::Directory {
            return Err(nfsstat3::NFS3ERR_NOTDIR);
        }
        let directory = step(place.directory(), &place.name)?;
        if Identity::of(&stat_descriptor(&directory)?) != node.identity {
            return Err(nfsstat3::NFS3ERR_STALE);
        }
        Ok(Arc::new(directory))
    }

    /// The number of `name` in the directory `parent`, whose attributes are `stat`: the one it
    /// has, or a new one.
    pub(super) fn number(
        &mut self,
        parent: u64,
        name: &CStr,
        stat: &Statx,
    ) -> Result<u64, nfsstat3> {
        let identity = Identity::of(stat);
        if !identity.same_device(self.nodes[&ROOT].identity) {
            // Another file system is mounted here. It is not exported: inode numbers are
            // unique within one file system, and clients take them for the file's own.
            return Err(nfsstat3::NFS3ERR_ACCES);
        }
        if let Some(&number) = self.numbers.get(&identity) {
            if let Some(node) = self.nodes.get_mut(&number).filter(|_| number != ROOT) {
                node.parent = parent;
                if node.name.as_c_str() != name {
                    node.name = name.to_owned();
                }
            }
            return Ok(number);
        }
        if self.nodes.len() >= MAX_NODES {
            return Err(nfsstat3::NFS3ERR_SERVERFAULT);
        }
        let number = self.next;
        self.next += 1;
        self.nodes.insert(
            number,
            Node {
                parent,
                name: name.to_owned(),
                identity,
            },
        );
        self.numbers.insert(identity, number);
        Ok(number)
    }

    /// The directory above `number`, the root's being the root.
    pub(super) fn parent(&self, number: u64) -> Result<u64, nfsstat3> {
        self.nodes
            .get(&number)
            .map(|node| node.parent)
            .ok_or(nfsstat3::NFS3ERR_STALE)
    }

    /// The number of a file already known.
    pub(super) fn known(&self, stat: &Statx) -> Option<u64> {
        self.numbers.get(&Identity::of(stat)).copied()
    }

    /// Makes a number stale for good: its file has lost its last name.
    pub(super) fn forget(&mut self, number: u64) {
        if number == ROOT {
            return;
        }
        if let Some(node) = self.nodes.remove(&number) {
            self.numbers.remove(&node.identity);
        }
    }

    /// Opens a directory by the names of all above it.
    fn walk(&self, number: u64) -> Result<Arc<OwnedFd>, nfsstat3> {
        let mut names = Vec::new();
        let mut above = number;
        while above != ROOT {
            let node = self.nodes.get(&above).ok_or(nfsstat3::NFS3ERR_STALE)?;
            if names.len() == MAX_DEPTH {
                return Err(nfsstat3::NFS3ERR_STALE);
            }
            names.push(node.name.as_c_str());
            above = node.parent;
        }
        let mut directory = self.root.clone();
        for name in names.into_iter().rev() {
            directory = Arc::new(step(directory.as_fd(), name).map_err(gone)?);
        }
        Ok(directory)
    }
}

/// One step down, into a directory that is no symbolic link.
fn step(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, nfsstat3> {
    openat(directory, name, PLACE | OFlags::DIRECTORY, Mode::empty()).map_err(refusal)
}

/// A descriptor that stands for `name` itself, symbolic links included.
pub(super) fn stand(directory: impl AsFd, name: &CStr) -> Result<OwnedFd, nfsstat3> {
    openat(directory, name, PLACE, Mode::empty()).map_err(refusal)
}

/// What a missing name means for a handle, as opposed to a LOOKUP.
fn gone(error: nfsstat3) -> nfsstat3 {
    match error {
        nfsstat3::NFS3ERR_NOENT | nfsstat3::NFS3ERR_NOTDIR | nfsstat3::NFS3ERR_INVAL => {
            nfsstat3::NFS3ERR_STALE
        }
        other => other,
    }
}

/// A file name as a client may send it in an operation that makes, moves or removes a name:
/// one component, of 1 to 255 octets, neither `.` nor `..`.
pub(super) fn new_name(name: &[u8]) -> Result<CString, nfsstat3> {
    match name {
        b"." | b".." => Err(nfsstat3::NFS3ERR_INVAL),
        _ => component(name),
    }
}

/// One component of a path: 1 to 255 octets without `/` and NUL.
pub(super) fn component(name: &[u8]) -> Result<CString, nfsstat3> {
    if name.len() > 255 {
        return Err(nfsstat3::NFS3ERR_NAMETOOLONG);
    }
    if name.is_empty() || name.contains(&b'/') {
        return Err(nfsstat3::NFS3ERR_INVAL);
    }
    CString::new(name).map_err(|_| nfsstat3::NFS3ERR_INVAL)
}
