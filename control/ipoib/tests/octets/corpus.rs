//! The fuzz corpora, replayed.

use crate::bodies;
use std::path::Path;

/// Runs `body` over every file of a corpus; an empty one would prove nothing.
fn replay(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let octets = std::fs::read(&path).unwrap();
        println!("{}", path.display());
        body(&octets);
        files += 1;
    }
    assert!(files >= 10, "{target}: {files} files");
}

#[test]
fn mad() {
    replay("mad", bodies::mad);
}

#[test]
fn encapsulation() {
    replay("encapsulation", bodies::encapsulation);
}

#[test]
fn arp() {
    replay("arp", bodies::arp);
}

#[test]
fn discovery() {
    replay("discovery", bodies::discovery);
}
