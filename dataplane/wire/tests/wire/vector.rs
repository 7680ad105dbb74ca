//! Golden vectors: one file each, a sentence, the octets, what is to become of them.

use rpcrdma_wire::{Reject, Role, role_of};
use std::path::{Path, PathBuf};

/// What a vector says.
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) rulings: Vec<String>,
    pub(crate) role: Role,
    pub(crate) octets: Vec<u8>,
    pub(crate) outcome: Outcome,
}

/// What is to become of its octets.
pub(crate) enum Outcome {
    /// Taken, and described so.
    Accept(String),
    /// Refused, and what goes back: its name, and its octets if any.
    Reject(Reject, String, Option<Vec<u8>>),
}

/// Every vector, by name.
pub(crate) fn load() -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Vector {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let field = |key: &str| -> Vec<&str> {
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.filter(|(k, _)| *k == key).map(|(_, v)| v).collect()
    };
    let octets = unhex(&field("hex").concat());
    let outcome = match (field("accept")[..].first(), field("reject")[..].first()) {
        (Some(text), None) => Outcome::Accept((*text).to_owned()),
        (None, Some(text)) => {
            let (reject, answer) = text.split_once(' ').unwrap();
            let known = Reject::ALL.iter().find(|known| known.name() == reject);
            let hex = field("answer-hex").first().map(|hex| unhex(hex));
            Outcome::Reject(
                *known.unwrap_or_else(|| panic!("{name}: no reject {reject}")),
                answer.to_owned(),
                hex,
            )
        }
        _ => panic!("{name}: neither or both of accept and reject"),
    };
    let role = match field("role").first() {
        None => role_of(&octets),
        Some(&"responder") => Role::Responder,
        Some(&"requester") => Role::Requester,
        Some(other) => panic!("{name}: no role {other}"),
    };
    let rulings = field("ruling").join(" ");
    Vector {
        rulings: rulings.split_whitespace().map(str::to_owned).collect(),
        name,
        role,
        octets,
        outcome,
    }
}

fn unhex(text: &str) -> Vec<u8> {
    hex::decode(text.replace(' ', "")).unwrap()
}
