//! Fuzz corpora, replayed by ordinary tests.

use std::path::Path;

/// The least that a corpus is: fewer would prove little.
const LEAST: usize = 10;

/// Runs `body` over every file of a target's corpus, in `fuzz/corpus` of the crate whose folder
/// `crate_folder` is (`env!("CARGO_MANIFEST_DIR")`). Says which, so that the last one said is the
/// one to blame.
///
/// # Panics
///
/// What `body` does; and where the corpus cannot be read, or is no corpus to speak of.
pub fn replay(crate_folder: &str, target: &str, body: impl Fn(&[u8])) {
    let folder = Path::new(crate_folder).join("fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files = 0;
    for entry in entries {
        let path = entry.expect("a name").path();
        let octets = std::fs::read(&path).expect("a file");
        println!("{}", path.display());
        body(&octets);
        files += 1;
    }
    assert!(files >= LEAST, "{target}: {files} files");
}
