//! The reference of all tables and keys, as Markdown, printed from the schema.

use crate::schema::{Key, Kind, ROOT, Table};
use std::fmt::Write;

/// Every table and key, with unit, range, default and meaning, as `config/README.md` has it.
#[must_use]
pub fn reference() -> String {
    let mut text = String::new();
    let mut done = Vec::new();
    for key in ROOT.keys {
        section(key, "", &mut done, &mut text);
    }
    text.trim_end().to_owned() + "\n"
}

/// A table and those in it; each once, however many others share it.
fn section(key: &'static Key, parent: &str, done: &mut Vec<&'static Table>, text: &mut String) {
    let (table, header) = match key.kind {
        Kind::Table(table) | Kind::FormOrTable { table, .. } => {
            (table, format!("[{parent}{}]", key.name))
        }
        Kind::Tables { table, .. } => (table, format!("[[{parent}{}]]", key.name)),
        _ => return,
    };
    if done.iter().any(|known| std::ptr::eq(*known, table)) {
        return;
    }
    done.push(table);
    let heading = format!("### `{header}`\n\n{}\n\n", table.what);
    text.push_str(&heading);
    text.push_str("| key | value | default | what it decides |\n|---|---|---|---|\n");
    for key in table.keys {
        row(key, done, text);
    }
    text.push('\n');
    for inner in table.keys {
        section(inner, &format!("{parent}{}.", key.name), done, text);
    }
}

fn row(key: &Key, done: &[&'static Table], text: &mut String) {
    let shared = |table| done.iter().any(|known| std::ptr::eq(*known, table));
    let (value, default) = match &key.kind {
        Kind::Integer { default, .. } => (key.wanted(), default.to_string()),
        Kind::Flag { default } => ("`true` or `false`".to_owned(), format!("`{default}`")),
        Kind::Word { words, default } => {
            let words: Vec<_> = words().iter().map(|word| format!("`\"{word}\"`")).collect();
            (words.join(" or "), format!("`\"{default}\"`"))
        }
        Kind::Form { form, default } => ((*form).to_owned(), form_default(*default)),
        Kind::FormOrTable { form, .. } => {
            (format!("{form}; or a table, below"), form_default(None))
        }
        Kind::Table(table) if shared(*table) => {
            ("a table".to_owned(), format!("as `[{}]`", table.name))
        }
        Kind::Table(_) => ("a table, below".to_owned(), String::new()),
        Kind::Tables { default, .. } => ("tables, below".to_owned(), form_default(*default)),
    };
    let what = match key.kind {
        Kind::Table(table) if shared(table) => "The same keys, for this endpoint alone.",
        _ => key.what,
    };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "| `{}` | {value} | {default} | {what} |", key.name);
}

/// A default as it would be written: lists and prose as they are, anything else quoted.
fn form_default(default: Option<&str>) -> String {
    match default {
        None => "has to be there".to_owned(),
        Some(text) if text.contains('`') => text.to_owned(),
        Some(list) if list.starts_with('[') => format!("`{list}`"),
        Some(text) => format!("`\"{text}\"`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `look` for every key of every table, with its table's name.
    fn each(table: &'static Table, look: &mut impl FnMut(&'static str, &'static Key)) {
        for key in table.keys {
            look(table.name, key);
            if let Kind::Table(inner)
            | Kind::Tables { table: inner, .. }
            | Kind::FormOrTable { table: inner, .. } = key.kind
            {
                each(inner, look);
            }
        }
    }

    #[test]
    fn every_default_can_be_written() {
        each(&ROOT, &mut |table, key| match &key.kind {
            Kind::Integer {
                min,
                max,
                multiple,
                default,
                ..
            } => {
                assert!((min..=max).contains(&default), "{table}.{}", key.name);
                assert_eq!(default % multiple, 0, "{table}.{}", key.name);
            }
            Kind::Word { words, default } => {
                assert!(words().contains(default), "{table}.{}", key.name);
            }
            _ => {}
        });
    }

    #[test]
    fn no_key_stands_twice_in_a_table() {
        each(&ROOT, &mut |_, key| {
            if let Kind::Table(table)
            | Kind::Tables { table, .. }
            | Kind::FormOrTable { table, .. } = key.kind
            {
                let mut names: Vec<_> = table.keys.iter().map(|key| key.name).collect();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), table.keys.len(), "{}", table.name);
            }
        });
    }
}
