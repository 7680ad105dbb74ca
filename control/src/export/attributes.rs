//! Between the file system's words for attributes and errors and those of RFC 1813.

use nfs3_server::nfs3_types::nfs3::{
    fattr3, ftype3, nfsstat3, nfstime3, sattr3, set_atime, set_gid3, set_mode3, set_mtime,
    set_uid3, specdata3,
};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, Statx, StatxFlags, StatxTimestamp, Timespec, Timestamps,
    UTIME_NOW, UTIME_OMIT, Uid, chmodat, chownat, statx, utimensat,
};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd};

/// What one file is, whatever its name: two files never share an identity, not even in turn.
///
/// File systems use inode numbers again, so the time of birth is part of it. Where a file
/// system records none it is zero, and only the number tells files apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    device: (u32, u32),
    inode: u64,
    born: (i64, u32),
}

impl Identity {
    pub(super) fn of(stat: &Statx) -> Self {
        let born = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
        Self {
            device: (stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            born: if born {
                (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)
            } else {
                (0, 0)
            },
        }
    }

    /// True when both are on the same file system.
    pub(super) fn same_device(self, other: Self) -> bool {
        self.device == other.device
    }
}

/// The attributes of `name` in `directory`, a symbolic link's own.
pub(super) fn stat_name(directory: impl AsFd, name: &CStr) -> Result<Statx, nfsstat3> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    statx(
        directory,
        name,
        flags,
        StatxFlags::BASIC_STATS | StatxFlags::BTIME,
    )
    .map_err(refusal)
}

/// The attributes of what a descriptor stands for.
pub(super) fn stat_descriptor(file: impl AsFd) -> Result<Statx, nfsstat3> {
    statx(
        file,
        c"",
        AtFlags::EMPTY_PATH,
        StatxFlags::BASIC_STATS | StatxFlags::BTIME,
    )
    .map_err(refusal)
}

/// The type of a file.
pub(super) fn file_type(stat: &Statx) -> FileType {
    FileType::from_raw_mode(u32::from(stat.stx_mode))
}

/// RFC 1813 section 2.5 `fattr3`.
pub(super) fn fattr(stat: &Statx) -> fattr3 {
    fattr3 {
        type_: match file_type(stat) {
            FileType::Directory => ftype3::NF3DIR,
            FileType::Symlink => ftype3::NF3LNK,
            FileType::BlockDevice => ftype3::NF3BLK,
            FileType::CharacterDevice => ftype3::NF3CHR,
            FileType::Fifo => ftype3::NF3FIFO,
            FileType::Socket => ftype3::NF3SOCK,
            _ => ftype3::NF3REG,
        },
        mode: u32::from(stat.stx_mode) & 0o7777,
        nlink: stat.stx_nlink,
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        size: stat.stx_size,
        used: stat.stx_blocks.saturating_mul(512),
        rdev: specdata3 {
            specdata1: stat.stx_rdev_major,
            specdata2: stat.stx_rdev_minor,
        },
        fsid: (u64::from(stat.stx_dev_major) << 32) | u64::from(stat.stx_dev_minor),
        fileid: stat.stx_ino,
        atime: nfs_time(&stat.stx_atime),
        mtime: nfs_time(&stat.stx_mtime),
        ctime: nfs_time(&stat.stx_ctime),
    }
}

/// Times before 1970 and after 2106 become the nearest that can be said.
fn nfs_time(time: &StatxTimestamp) -> nfstime3 {
    let seconds = u32::try_from(time.tv_sec.max(0)).unwrap_or(u32::MAX);
    nfstime3 {
        seconds,
        nseconds: time.tv_nsec,
    }
}

/// Sets all of `wanted` but the size on what `file` stands for, which may be a symbolic link
/// and may be open with `O_PATH`. Mode first: a change of owner may take set-uid bits away.
pub(super) fn apply(file: impl AsFd, wanted: &sattr3) -> Result<(), nfsstat3> {
    if let set_mode3::Some(mode) = wanted.mode {
        set_mode(&file, mode)?;
    }
    let owner = match wanted.uid {
        set_uid3::Some(uid) => Some(Uid::from_raw(uid)),
        set_uid3::None => None,
    };
    let group = match wanted.gid {
        set_gid3::Some(gid) => Some(Gid::from_raw(gid)),
        set_gid3::None => None,
    };
    if owner.is_some() || group.is_some() {
        chownat(&file, c"", owner, group, AtFlags::EMPTY_PATH).map_err(refusal)?;
    }
    let times = Timestamps {
        last_access: match wanted.atime {
            set_atime::DONT_CHANGE => omit(),
            set_atime::SET_TO_SERVER_TIME => now(),
            set_atime::SET_TO_CLIENT_TIME(time) => timespec(time)?,
        },
        last_modification: match wanted.mtime {
            set_mtime::DONT_CHANGE => omit(),
            set_mtime::SET_TO_SERVER_TIME => now(),
            set_mtime::SET_TO_CLIENT_TIME(time) => timespec(time)?,
        },
    };
    set_times(file, &times)
}

/// Sets the mode. A descriptor open with `O_PATH` refuses `fchmod`, hence the way round
/// through `/proc`, which ends at the very same file whatever has been renamed since.
pub(super) fn set_mode(file: impl AsFd, mode: u32) -> Result<(), nfsstat3> {
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    let mode = Mode::from_raw_mode(mode & 0o7777);
    chmodat(CWD, path, mode, AtFlags::empty()).map_err(refusal)
}

/// Sets the times of what `file` stands for.
pub(super) fn set_times(file: impl AsFd, times: &Timestamps) -> Result<(), nfsstat3> {
    let omitted = |time: &Timespec| time.tv_nsec == omit().tv_nsec;
    if omitted(&times.last_access) && omitted(&times.last_modification) {
        return Ok(());
    }
    utimensat(file, c"", times, AtFlags::EMPTY_PATH).map_err(refusal)
}

fn omit() -> Timespec {
    Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    }
}

fn now() -> Timespec {
    Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    }
}

fn timespec(time: nfstime3) -> Result<Timespec, nfsstat3> {
    if time.nseconds >= 1_000_000_000 {
        return Err(nfsstat3::NFS3ERR_INVAL);
    }
    Ok(Timespec {
        tv_sec: i64::from(time.seconds),
        tv_nsec: i64::from(time.nseconds),
    })
}

/// The RFC 1813 section 2.6 name of a system error.
pub(super) fn refusal(error: Errno) -> nfsstat3 {
    match error {
        Errno::PERM => nfsstat3::NFS3ERR_PERM,
        Errno::NOENT => nfsstat3::NFS3ERR_NOENT,
        Errno::NXIO => nfsstat3::NFS3ERR_NXIO,
        Errno::ACCESS => nfsstat3::NFS3ERR_ACCES,
        Errno::EXIST => nfsstat3::NFS3ERR_EXIST,
        Errno::XDEV => nfsstat3::NFS3ERR_XDEV,
        Errno::NODEV => nfsstat3::NFS3ERR_NODEV,
        Errno::NOTDIR => nfsstat3::NFS3ERR_NOTDIR,
        Errno::ISDIR => nfsstat3::NFS3ERR_ISDIR,
        // With O_NOFOLLOW, ELOOP says that the name is a symbolic link now.
        Errno::INVAL | Errno::LOOP => nfsstat3::NFS3ERR_INVAL,
        Errno::FBIG => nfsstat3::NFS3ERR_FBIG,
        Errno::NOSPC => nfsstat3::NFS3ERR_NOSPC,
        Errno::ROFS => nfsstat3::NFS3ERR_ROFS,
        Errno::MLINK => nfsstat3::NFS3ERR_MLINK,
        Errno::NAMETOOLONG => nfsstat3::NFS3ERR_NAMETOOLONG,
        Errno::NOTEMPTY => nfsstat3::NFS3ERR_NOTEMPTY,
        Errno::DQUOT => nfsstat3::NFS3ERR_DQUOT,
        Errno::OPNOTSUPP | Errno::NOSYS => nfsstat3::NFS3ERR_NOTSUPP,
        // Descriptors or memory are short for the moment: the client waits and tries again.
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => nfsstat3::NFS3ERR_JUKEBOX,
        _ => nfsstat3::NFS3ERR_IO,
    }
}
