//! Tables of state machines, whole, compared with the files that are their documentation.

use rpcrdma_listed::Listed;
use std::fmt::Write as _;
use std::path::Path;

/// The variable of the environment that has files written anew, after a change that is meant:
/// `RPCRDMA_WRITE_PHASES=1 cargo test -p CRATE phases`.
const WRITE: &str = "RPCRDMA_WRITE_PHASES";

/// What `next` leads to. One row for each phase, one column for each event, or the other way round
/// where there are many events; a dot is a step that must never happen.
pub fn table<R: Listed, C: Listed, P: Listed, I>(next: impl Fn(R, C) -> Result<P, I>) -> String {
    let (first, widest) = (longest(R::ALL), longest(P::ALL));
    let width = |column: &C| widest.max(column.name().len());
    let mut text = format!("{:first$}", "");
    for column in C::ALL {
        // Writing to a String cannot fail.
        let _ = write!(text, "  {:width$}", column.name(), width = width(column));
    }
    for row in R::ALL {
        text.truncate(text.trim_end().len());
        let _ = write!(text, "\n{:first$}", row.name());
        for column in C::ALL {
            let to = next(*row, *column).map_or(".", Listed::name);
            let _ = write!(text, "  {to:width$}", width = width(column));
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn longest<L: Listed>(all: &[L]) -> usize {
    let lengths = all.iter().map(|value| value.name().len());
    lengths.max().unwrap_or(0)
}

/// Compares a table with the file of that name in `tests/phases` below the crate's folder, which
/// is its `CARGO_MANIFEST_DIR`.
///
/// # Panics
///
/// They differ: the message has the table as it is now.
pub fn compare(folder: &str, file: &str, found: &str) {
    let path = Path::new(folder).join("tests/phases").join(file);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, found).expect("a writable file");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        wanted == found,
        "{file} is not the table any more, which is now\n{found}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_listed::{Illegal, listed};

    listed! {
        /// A door.
        Door {
            /// It is open.
            Open,
            /// It is shut.
            Shut,
        }
    }

    listed! {
        /// What is done to it.
        Deed {
            /// It is pushed.
            Push,
            /// It is nailed up.
            Barricade,
        }
    }

    fn next(door: Door, deed: Deed) -> Result<Door, Illegal> {
        match (door, deed) {
            (_, Deed::Push) => Ok(Door::Shut),
            (Door::Shut, Deed::Barricade) => Ok(Door::Shut),
            (Door::Open, Deed::Barricade) => Err(Illegal),
        }
    }

    #[test]
    fn a_table_has_every_phase_with_every_event() {
        let expected = "      Push  Barricade\nOpen  Shut  .\nShut  Shut  Shut\n";
        assert_eq!(table(next), expected);
    }

    #[test]
    fn a_table_that_is_another_one_is_not_let_pass() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("tests/phases")).expect("a folder");
        let at = folder.path().to_str().expect("a name");
        std::fs::write(folder.path().join("tests/phases/door.txt"), "this").expect("written");
        compare(at, "door.txt", "this");
        let other = std::panic::catch_unwind(|| compare(at, "door.txt", "that"));
        assert!(other.is_err());
    }
}
