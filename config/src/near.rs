//! Suggestions for words that are not known.

use crate::schema::{Key, Kind, ROOT, Table};

/// What is wrong with a key that `table` does not have, and what to write in its place. `tabular`:
/// a table or tables stand there.
pub(crate) fn unknown(name: &str, tabular: bool, table: &Table) -> (String, String) {
    let here: Vec<&str> = table.keys.iter().map(|key| key.name).collect();
    let hint = match nearest(name, here.iter().copied()) {
        Some(near) => format!("did you mean {near}? "),
        None => match home(name, tabular, &ROOT, "") {
            Some(home) => format!("it belongs in {home}; "),
            None => String::new(),
        },
    };
    (
        "unknown key".to_owned(),
        format!("{hint}known here: {}", here.join(", ")),
    )
}

/// The candidate most like `name`, if one is like it at all: a third of it may differ.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let allowed = (name.chars().count() / 3).max(1);
    let distances = candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate));
    let best = distances.min_by_key(|(distance, _)| *distance)?;
    (best.0 <= allowed).then_some(best.1)
}

/// The table below `table` that has a key of exactly this name, as its header is written.
fn home(name: &str, tabular: bool, table: &Table, path: &str) -> Option<String> {
    let is_it = |key: &&Key| {
        let takes_tables = matches!(key.kind, Kind::Table(_) | Kind::Tables { .. });
        key.name == name && (tabular || !takes_tables)
    };
    table.keys.iter().find_map(|key| {
        let (inner, brackets) = match key.kind {
            Kind::Table(inner) | Kind::FormOrTable { table: inner, .. } => (inner, ("[", "]")),
            Kind::Tables { table: inner, .. } => (inner, ("[[", "]]")),
            _ => return None,
        };
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{}", inner.name);
        match inner.keys.iter().any(is_it) {
            true => Some(format!("{}{path}{}", brackets.0, brackets.1)),
            false => home(name, tabular, inner, &path),
        }
    })
}

/// Insertions, deletions, changes and swaps of neighbours between two words (optimal string
/// alignment), in three rows.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(last[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, steps) in [
            ("", "", 0),
            ("", "abc", 3),
            ("credits", "credit", 1),
            ("idle_spin_ms", "idle_spin_us", 1),
            ("lcroes", "lcores", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), steps, "{a} {b}");
            assert_eq!(distance(b, a), steps, "{b} {a}");
        }
    }

    #[test]
    fn what_is_not_alike_is_not_suggested() {
        assert_eq!(nearest("tyr", ["try", "off"]), Some("try"));
        assert_eq!(nearest("cores", ["lcores", "idle"]), Some("lcores"));
        assert_eq!(nearest("zebra", ["lcores", "idle"]), None);
        assert_eq!(nearest("x", ["on"]), None);
    }

    #[test]
    fn a_key_of_another_table_is_sent_home() {
        assert_eq!(
            home("memory_mib", false, &ROOT, ""),
            Some("[runtime]".to_owned())
        );
        assert_eq!(
            home("programs", false, &ROOT, ""),
            Some("[[front.backend]]".to_owned())
        );
        assert_eq!(
            home("call_bytes", false, &ROOT, ""),
            Some("[transport.limits]".to_owned())
        );
        assert_eq!(home("nothing", false, &ROOT, ""), None);
        assert_eq!(home("port", true, &ROOT, ""), Some("[dpdk]".to_owned()));
        assert_eq!(
            home("port", false, &ROOT, ""),
            None,
            "no table stands there"
        );
    }
}
