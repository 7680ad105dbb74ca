//! The mirror, operation by operation, without the server crate.

use super::mirror::{Mirror, State};
use super::tree::ROOT;
use nfs3_server::nfs3_types::nfs3::nfstime3;
use nfs3_server::nfs3_types::nfs3::{
    createverf3, fattr3, ftype3, nfsstat3, sattr3, set_mode3, set_mtime, set_size3, stable_how,
};
use nfs3_server::vfs::{DirEntryPlus, FileHandleU64, NextResult};
use nfs3_server::vfs::{NfsReadFileSystem, ReadDirPlusIterator};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::pin::pin;
use std::sync::MutexGuard;
use std::task::{Context, Poll, Waker};
use tempfile::TempDir;

struct Exported {
    directory: TempDir,
    mirror: Mirror,
}

impl Exported {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(directory.path(), false).unwrap();
        Self { directory, mirror }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.mirror.state()
    }

    fn create(&self, name: &str) -> u64 {
        self.state()
            .create(ROOT, name.as_bytes(), &sattr3::default())
            .unwrap()
            .0
    }

    fn write(&self, number: u64, offset: u64, data: &[u8]) -> Result<fattr3, nfsstat3> {
        self.state()
            .write(number, offset, data, stable_how::UNSTABLE)
            .map(|(attributes, _)| attributes)
    }

    fn list(&self, directory: u64, cookie: u64) -> Vec<DirEntryPlus<FileHandleU64>> {
        let directory = FileHandleU64::new(directory);
        let mut listing = now(self.mirror.readdirplus(&directory, cookie)).unwrap();
        std::iter::from_fn(|| match now(listing.next()) {
            NextResult::Ok(entry) => Some(entry),
            NextResult::Eof => None,
            NextResult::Err(error) => panic!("{error}"),
        })
        .collect()
    }
}

/// The output of a future that is done when first polled, as all of the mirror's are.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the mirror waited for something"),
    }
}

fn size(bytes: u64) -> sattr3 {
    sattr3 {
        size: set_size3::Some(bytes),
        ..sattr3::default()
    }
}

#[test]
fn a_file_is_written_read_and_cut() {
    let exported = Exported::new();
    let file = exported.create("file");
    assert_eq!(exported.write(file, 3, b"defg").unwrap().size, 7);
    exported.write(file, 0, b"abc").unwrap();
    assert_eq!(
        exported.state().read(file, 0, 100).unwrap(),
        (b"abcdefg".to_vec(), true)
    );
    assert_eq!(
        exported.state().read(file, 2, 3).unwrap(),
        (b"cde".to_vec(), false)
    );
    assert_eq!(
        exported.state().read(file, 2, 5).unwrap(),
        (b"cdefg".to_vec(), true)
    );
    assert_eq!(exported.state().read(file, 7, 5).unwrap(), (vec![], true));
    assert_eq!(
        exported.state().read(file, u64::MAX, 5).unwrap(),
        (vec![], true)
    );
    assert_eq!(exported.state().set(file, &size(2)).unwrap().size, 2);
    assert_eq!(fs::read(exported.path().join("file")).unwrap(), b"ab");
    assert_eq!(
        exported.write(file, u64::MAX - 1, b"abc").unwrap_err(),
        nfsstat3::NFS3ERR_FBIG
    );
}

#[test]
fn every_stability_is_reported_as_asked_and_commit_works() {
    let exported = Exported::new();
    let file = exported.create("file");
    for stable in [
        stable_how::UNSTABLE,
        stable_how::DATA_SYNC,
        stable_how::FILE_SYNC,
    ] {
        let (_, committed) = exported.state().write(file, 0, b"x", stable).unwrap();
        assert_eq!(committed, stable);
    }
    exported.state().commit(file).unwrap();
}

#[test]
fn numbers_stay_the_same_and_names_do_not_matter() {
    let exported = Exported::new();
    let file = exported.create("a");
    assert_eq!(exported.state().lookup(ROOT, b"a"), Ok(file));
    exported.state().rename((ROOT, b"a"), (ROOT, b"b")).unwrap();
    assert_eq!(exported.state().lookup(ROOT, b"b"), Ok(file));
    assert_eq!(
        exported.state().lookup(ROOT, b"a"),
        Err(nfsstat3::NFS3ERR_NOENT)
    );
    fs::hard_link(exported.path().join("b"), exported.path().join("c")).unwrap();
    assert_eq!(exported.state().lookup(ROOT, b"c"), Ok(file));
    exported.state().remove(ROOT, b"b").unwrap();
    assert_eq!(exported.state().attributes(file).unwrap().nlink, 1);
}

#[test]
fn a_renamed_directory_takes_what_is_below_with_it() {
    let exported = Exported::new();
    let (directory, _) = exported.state().make_directory(ROOT, b"old").unwrap();
    let (file, _) = exported
        .state()
        .create(directory, b"file", &sattr3::default())
        .unwrap();
    exported
        .state()
        .rename((ROOT, b"old"), (ROOT, b"new"))
        .unwrap();
    exported.write(file, 0, b"moved").unwrap();
    assert_eq!(
        fs::read(exported.path().join("new/file")).unwrap(),
        b"moved"
    );
    let (other, _) = exported
        .state()
        .make_directory(directory, b"below")
        .unwrap();
    assert_eq!(
        exported.state().rename((ROOT, b"new"), (other, b"ring")),
        Err(nfsstat3::NFS3ERR_INVAL)
    );
}

#[test]
fn renaming_over_a_file_makes_that_one_stale() {
    let exported = Exported::new();
    let (old, new) = (exported.create("old"), exported.create("new"));
    exported
        .state()
        .rename((ROOT, b"new"), (ROOT, b"old"))
        .unwrap();
    assert_eq!(
        exported.state().attributes(old).unwrap_err(),
        nfsstat3::NFS3ERR_STALE
    );
    assert_eq!(exported.state().lookup(ROOT, b"old"), Ok(new));
    // Onto itself: nothing happens, nothing gets stale.
    exported
        .state()
        .rename((ROOT, b"old"), (ROOT, b"old"))
        .unwrap();
    assert_eq!(exported.state().lookup(ROOT, b"old"), Ok(new));
    exported.state().attributes(new).unwrap();
}

#[test]
fn removed_and_replaced_files_are_stale_even_while_open() {
    let exported = Exported::new();
    let removed = exported.create("removed");
    exported.write(removed, 0, b"x").unwrap();
    exported.state().remove(ROOT, b"removed").unwrap();
    assert_eq!(
        exported.state().read(removed, 0, 1).unwrap_err(),
        nfsstat3::NFS3ERR_STALE
    );

    let replaced = exported.create("replaced");
    exported.write(replaced, 0, b"x").unwrap();
    fs::remove_file(exported.path().join("replaced")).unwrap();
    fs::write(exported.path().join("replaced"), b"another").unwrap();
    assert_eq!(
        exported.state().attributes(replaced).unwrap_err(),
        nfsstat3::NFS3ERR_STALE
    );
    assert_eq!(
        exported.state().read(replaced, 0, 1).unwrap_err(),
        nfsstat3::NFS3ERR_STALE
    );
    assert_ne!(
        exported.state().lookup(ROOT, b"replaced").unwrap(),
        replaced
    );
}

#[test]
fn nothing_above_the_root_can_be_named() {
    let exported = Exported::new();
    let (directory, _) = exported.state().make_directory(ROOT, b"directory").unwrap();
    assert_eq!(exported.state().lookup(ROOT, b".."), Ok(ROOT));
    assert_eq!(exported.state().lookup(directory, b".."), Ok(ROOT));
    assert_eq!(exported.state().lookup(directory, b"."), Ok(directory));
    let bad: [&[u8]; 4] = [b"", b"a/b", b"../x", b"a\0b"];
    for name in bad {
        assert_eq!(
            exported.state().lookup(ROOT, name),
            Err(nfsstat3::NFS3ERR_INVAL)
        );
    }
    for name in [&b"."[..], b".."] {
        assert_eq!(
            exported.state().remove(directory, name),
            Err(nfsstat3::NFS3ERR_INVAL)
        );
    }
    let long = [b'x'; 256];
    assert_eq!(
        exported.state().lookup(ROOT, &long),
        Err(nfsstat3::NFS3ERR_NAMETOOLONG)
    );
}

#[test]
fn symbolic_links_are_kept_and_never_followed() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), b"secret").unwrap();
    let exported = Exported::new();
    let target = outside.path().as_os_str().as_encoded_bytes();
    let (link, attributes) = exported.state().make_link(ROOT, b"link", target).unwrap();
    assert_eq!(attributes.type_, ftype3::NF3LNK);
    assert_eq!(exported.state().read_link(link).unwrap(), target);
    assert_eq!(
        exported.state().lookup(link, b"secret"),
        Err(nfsstat3::NFS3ERR_NOTDIR)
    );

    symlink(outside.path().join("secret"), exported.path().join("file")).unwrap();
    let file = exported.state().lookup(ROOT, b"file").unwrap();
    assert_eq!(
        exported.state().read(file, 0, 9).unwrap_err(),
        nfsstat3::NFS3ERR_INVAL
    );
    let refused = exported
        .state()
        .create(ROOT, b"file", &size(0))
        .unwrap_err();
    assert_eq!(refused, nfsstat3::NFS3ERR_EXIST);
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");

    // A directory that becomes a link out of the tree takes its old contents' numbers along.
    let (directory, _) = exported.state().make_directory(ROOT, b"directory").unwrap();
    let (inner, _) = exported
        .state()
        .create(directory, b"secret", &sattr3::default())
        .unwrap();
    fs::remove_dir_all(exported.path().join("directory")).unwrap();
    symlink(outside.path(), exported.path().join("directory")).unwrap();
    assert_eq!(
        exported.state().read(inner, 0, 9).unwrap_err(),
        nfsstat3::NFS3ERR_STALE
    );
    assert_eq!(
        exported.state().lookup(directory, b"secret"),
        Err(nfsstat3::NFS3ERR_STALE)
    );
}

#[test]
fn exclusive_creation_is_repeatable_and_exclusive() {
    let exported = Exported::new();
    let mine = createverf3([0xff, 2, 3, 4, 5, 6, 7, 8]);
    let file = exported
        .state()
        .create_exclusive(ROOT, b"lock", mine)
        .unwrap();
    assert_eq!(
        exported.state().create_exclusive(ROOT, b"lock", mine),
        Ok(file)
    );
    let other = createverf3([0; 8]);
    assert_eq!(
        exported.state().create_exclusive(ROOT, b"lock", other),
        Err(nfsstat3::NFS3ERR_EXIST)
    );
}

#[test]
fn creating_again_keeps_contents_and_mode_unless_a_size_is_given() {
    let exported = Exported::new();
    let mode = |mode| sattr3 {
        mode: set_mode3::Some(mode),
        ..sattr3::default()
    };
    let (file, attributes) = exported
        .state()
        .create(ROOT, b"file", &mode(0o640))
        .unwrap();
    assert_eq!(attributes.mode, 0o640);
    exported.write(file, 0, b"kept").unwrap();
    let (again, attributes) = exported
        .state()
        .create(ROOT, b"file", &mode(0o777))
        .unwrap();
    assert_eq!((again, attributes.size, attributes.mode), (file, 4, 0o640));
    let (_, attributes) = exported.state().create(ROOT, b"file", &size(0)).unwrap();
    assert_eq!(attributes.size, 0);
    exported.state().make_directory(ROOT, b"directory").unwrap();
    let refused = exported
        .state()
        .create(ROOT, b"directory", &sattr3::default())
        .unwrap_err();
    assert_eq!(refused, nfsstat3::NFS3ERR_EXIST);
}

#[test]
fn attributes_are_set_on_files_and_on_links_themselves() {
    let exported = Exported::new();
    let file = exported.create("file");
    let wanted = sattr3 {
        mode: set_mode3::Some(0o604),
        mtime: set_mtime::SET_TO_CLIENT_TIME(nfstime3 {
            seconds: 1_000,
            nseconds: 5,
        }),
        ..sattr3::default()
    };
    let attributes = exported.state().set(file, &wanted).unwrap();
    assert_eq!(
        (
            attributes.mode,
            attributes.mtime.seconds,
            attributes.mtime.nseconds
        ),
        (0o604, 1_000, 5)
    );
    let metadata = fs::metadata(exported.path().join("file")).unwrap();
    assert_eq!(
        (metadata.permissions().mode() & 0o7777, metadata.mtime()),
        (0o604, 1_000)
    );

    let (link, _) = exported.state().make_link(ROOT, b"link", b"file").unwrap();
    let times = sattr3 {
        mode: set_mode3::None,
        ..wanted
    };
    assert_eq!(
        exported.state().set(link, &times).unwrap().mtime.seconds,
        1_000
    );
    let bad = sattr3 {
        mtime: set_mtime::SET_TO_CLIENT_TIME(nfstime3 {
            seconds: 0,
            nseconds: u32::MAX,
        }),
        ..sattr3::default()
    };
    assert_eq!(
        exported.state().set(file, &bad).unwrap_err(),
        nfsstat3::NFS3ERR_INVAL
    );
}

#[test]
fn a_listing_goes_on_behind_any_of_its_cookies() {
    let exported = Exported::new();
    for index in 0..500 {
        fs::write(exported.path().join(format!("file-{index}")), [0; 3]).unwrap();
    }
    let all = exported.list(ROOT, 0);
    assert_eq!(all.len(), 502);
    let entry = all
        .iter()
        .find(|entry| entry.name.as_ref() == b"file-42")
        .unwrap();
    assert_eq!(entry.name_attributes.as_ref().unwrap().size, 3);
    let number = exported.state().lookup(ROOT, b"file-42").unwrap();
    assert_eq!(entry.name_handle.unwrap().as_u64(), number);
    for start in [0, 1, 250, 500, 501] {
        let rest = exported.list(ROOT, all[start].cookie);
        let names = |entries: &[DirEntryPlus<FileHandleU64>]| {
            entries
                .iter()
                .map(|entry| entry.name.as_ref().to_vec())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(&rest),
            names(&all[start + 1..]),
            "behind entry {start}"
        );
    }
}

#[test]
fn directories_are_removed_only_when_empty() {
    let exported = Exported::new();
    let (directory, _) = exported.state().make_directory(ROOT, b"directory").unwrap();
    exported
        .state()
        .create(directory, b"file", &sattr3::default())
        .unwrap();
    assert_eq!(
        exported.state().remove(ROOT, b"directory"),
        Err(nfsstat3::NFS3ERR_NOTEMPTY)
    );
    exported.state().remove(directory, b"file").unwrap();
    exported.state().remove(ROOT, b"directory").unwrap();
    assert_eq!(
        exported.state().attributes(directory).unwrap_err(),
        nfsstat3::NFS3ERR_STALE
    );
    assert_eq!(
        exported.state().lookup(directory, b".").unwrap_err(),
        nfsstat3::NFS3ERR_STALE
    );
}

#[test]
fn more_files_than_are_kept_open() {
    let exported = Exported::new();
    let files: Vec<u64> = (0..100)
        .map(|index| exported.create(&format!("file-{index}")))
        .collect();
    for (&file, octet) in files.iter().zip(0..) {
        exported.write(file, 0, &[octet]).unwrap();
    }
    for (&file, octet) in files.iter().zip(0..) {
        assert_eq!(exported.state().read(file, 0, 9).unwrap().0, [octet]);
    }
}

#[test]
fn a_fifo_does_not_hold_anybody_up() {
    let exported = Exported::new();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        exported.path().join("fifo"),
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
    let fifo = exported.state().lookup(ROOT, b"fifo").unwrap();
    assert_eq!(
        exported.state().read(fifo, 0, 1).unwrap_err(),
        nfsstat3::NFS3ERR_INVAL
    );
    assert_eq!(
        exported.write(fifo, 0, b"x").unwrap_err(),
        nfsstat3::NFS3ERR_INVAL
    );
    let refused = exported
        .state()
        .create(ROOT, b"fifo", &sattr3::default())
        .unwrap_err();
    assert_eq!(refused, nfsstat3::NFS3ERR_EXIST);
}
