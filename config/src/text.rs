//! The text of a file, or why there is none.

use crate::error::{Error, Place, Problem};
use rustix::fs::{Mode, OFlags, open};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The longest file that is read, in octets.
const FILE_MAX: u64 = 1 << 20;

/// Reads a file whole.
///
/// Nothing that may have no end, or whose octets somebody has yet to write, is read: a pipe at
/// this path would keep its reader for ever.
///
/// # Errors
/// A single problem: the file cannot be read, is none, is too long, or no text. The last one has
/// its place.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let fail = |place, what: String, remedy: &str| Error {
        file: path.display().to_string(),
        problems: vec![Problem {
            place,
            key: String::new(),
            value: String::new(),
            what,
            remedy: remedy.to_owned(),
        }],
    };
    let nowhere = |what| {
        fail(
            None,
            what,
            "give the path of a TOML file that this user may read",
        )
    };
    let octets = octets(path).map_err(|error| nowhere(format!("cannot be read: {error}")))?;
    let Some(octets) = octets else {
        return Err(nowhere("is not a regular file".to_owned()));
    };
    if octets.len() as u64 > FILE_MAX {
        return Err(nowhere(format!("is longer than {FILE_MAX} octets")));
    }
    String::from_utf8(octets).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..good]);
        let place = Some(Place::of(&before, good));
        fail(
            place,
            "is not UTF-8 from here on".to_owned(),
            "save it as UTF-8",
        )
    })
}

/// The file's first octets, one more than it may have at most; `None`: it is no regular file.
fn octets(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // Opening a pipe would wait for its writer, without `NONBLOCK`.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut octets = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut octets)?;
    Ok(Some(octets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mkfifoat};
    use tempfile::NamedTempFile;

    fn problem(path: &Path) -> String {
        let error = read(path).expect_err("no text");
        let told = error.to_string();
        let told = told.strip_prefix(&path.display().to_string());
        told.expect("its name").to_owned()
    }

    fn file(octets: &[u8]) -> NamedTempFile {
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), octets).unwrap();
        file
    }

    #[test]
    fn a_file_is_read_whole_up_to_its_limit() {
        let most = vec![b' '; 1 << 20];
        let longest = file(&most);
        assert_eq!(read(longest.path()).unwrap().len(), most.len());
        let longer = file(&[&most[..], b"\n"].concat());
        assert!(problem(longer.path()).contains(": is longer than 1048576 octets; "));
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        for path in [&pipe, folder.path(), Path::new("/dev/zero")] {
            let told = problem(path);
            assert!(told.starts_with(": is not a regular file; "), "{told}");
        }
        let told = problem(&folder.path().join("none"));
        assert!(told.starts_with(": cannot be read: No such file"), "{told}");
    }

    #[test]
    fn what_is_no_text_is_told_where() {
        let file = file(b"a = 1\n\xC3\xB6 = \"\xFF\"\n");
        let told = ":2:6: is not UTF-8 from here on; save it as UTF-8";
        assert_eq!(problem(file.path()), told);
    }
}
