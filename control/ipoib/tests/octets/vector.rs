//! Golden vectors: one file each, a sentence, the octets, and what is to be said of them.
//!
//! `hex` lines and `zeros` counts follow each other; `says` is in the words of the oracle. `from` says where the octets were
//! recorded, if they were.

use std::path::{Path, PathBuf};

/// What a vector says.
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) octets: Vec<u8>,
    pub(crate) says: String,
}

/// Every vector of a folder, by name.
pub(crate) fn load(folder: &str) -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/vectors")
        .join(folder);
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Vector {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.starts_with("# "), "{name}: no sentence");
    let mut octets = Vec::new();
    let mut says = None;
    for line in text.lines() {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("hex", hex) => octets.extend(hex::decode(hex.replace(' ', "")).unwrap()),
            ("zeros", count) => octets.resize(octets.len() + count.parse::<usize>().unwrap(), 0),
            ("says", words) => says = Some(words.to_owned()),
            ("#" | "from", _) => {}
            _ => panic!("{name}: {line}"),
        }
    }
    Vector {
        says: says.unwrap_or_else(|| panic!("{name}: says nothing")),
        name,
        octets,
    }
}
