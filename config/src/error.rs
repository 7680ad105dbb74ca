//! What is wrong with a file: every problem, each at its place.
//!
//! A problem reads `file:line:column: key = value: what is wrong; what to do`. Lines and columns
//! count from one, columns in characters. Problems come in the order of their places.

use std::cell::RefCell;
use std::fmt;

/// The longest value that a message repeats whole, in characters.
const SHOWN: usize = 48;

/// Why there is no plan: at least one [`Problem`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file's name, as the operator gave it.
    pub file: String,
    /// In the order of their places.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{}:{problem}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where; `None` when it is not a place in the file (it cannot be read at all).
    pub place: Option<Place>,
    /// The key with the tables it lies in, `front.transport.credits`; empty for syntax errors.
    pub key: String,
    /// The value as it was written, on one line and shortened; empty when there is none.
    pub value: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}:")?;
        }
        match (self.key.as_str(), self.value.as_str()) {
            ("", _) => {}
            (key, "") => write!(f, " {key}:")?,
            (key, value) => write!(f, " {key} = {value}:")?,
        }
        write!(f, " {}; {}", self.what, self.remedy)
    }
}

/// A place in a file. Both count from one; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Lines from one.
    pub line: usize,
    /// Characters from one.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl Place {
    /// The place of the octet at `offset`.
    pub(crate) fn of(text: &str, offset: usize) -> Place {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let lines = before.bytes().filter(|&b| b == b'\n').count();
        let characters = before[line_start..].chars().count();
        Place {
            line: lines + 1,
            column: characters + 1,
        }
    }
}

/// Where a value came from: enough to complain about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Octets from the start of the file.
    pub(crate) offset: usize,
    /// The key with its tables.
    pub(crate) key: String,
    /// The value as it was written; empty for a table.
    pub(crate) value: String,
}

impl Origin {
    /// The same, for a key below this table that has no value. A quoted key may hold anything:
    /// what would break the line is escaped. And it may be as long as the file: it is shortened.
    pub(crate) fn absent(&self, key: &str) -> Origin {
        let key = &shortened(key);
        let harmless = !key.contains(char::is_control);
        let key = if harmless {
            key.to_owned()
        } else {
            key.escape_debug().to_string()
        };
        let key = if self.key.is_empty() {
            key
        } else {
            format!("{}.{key}", self.key)
        };
        Origin {
            offset: self.offset,
            key,
            value: String::new(),
        }
    }
}

/// The problems found so far in one text.
pub(crate) struct Problems<'a> {
    text: &'a str,
    found: RefCell<Vec<(usize, Problem)>>,
}

impl<'a> Problems<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Problems {
            text,
            found: RefCell::default(),
        }
    }

    /// Notes one. The same problem at the same place counts once: endpoints inherit.
    pub(crate) fn add(&self, origin: &Origin, what: impl Into<String>, remedy: impl Into<String>) {
        let problem = Problem {
            place: Some(Place::of(self.text, origin.offset)),
            key: origin.key.clone(),
            value: origin.value.clone(),
            what: what.into(),
            remedy: remedy.into(),
        };
        let mut found = self.found.borrow_mut();
        if !found.iter().any(|(_, known)| *known == problem) {
            found.push((origin.offset, problem));
        }
    }

    /// The line of a value that another message mentions.
    pub(crate) fn line(&self, origin: &Origin) -> usize {
        Place::of(self.text, origin.offset).line
    }

    /// A piece of the text for a message: on one line, shortened.
    pub(crate) fn shown(&self, span: std::ops::Range<usize>) -> String {
        let written = self.text.get(span).unwrap_or_default();
        let line = written.split_whitespace().collect::<Vec<_>>().join(" ");
        shortened(&line)
    }

    /// Whether nothing is wrong so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// Forgets the problems behind `offset`.
    pub(crate) fn keep_before(&self, offset: usize) {
        self.found.borrow_mut().retain(|(place, _)| *place < offset);
    }

    /// All of them, in the order of their places.
    pub(crate) fn into_error(self, file: &str) -> Error {
        let mut found = self.found.into_inner();
        found.sort_by_key(|(offset, _)| *offset);
        let problems = found.into_iter().map(|(_, problem)| problem).collect();
        Error {
            file: file.to_owned(),
            problems,
        }
    }
}

/// The first characters of a text, and dots where there are more.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = "a = 1\nö = \"é\" # x\n";
        assert_eq!(Place::of(text, 0), Place { line: 1, column: 1 });
        assert_eq!(Place::of(text, 6), Place { line: 2, column: 1 });
        let hash = text.find('#').unwrap();
        assert_eq!(Place::of(text, hash), Place { line: 2, column: 9 });
        assert_eq!(Place::of(text, text.len()), Place { line: 3, column: 1 });
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let text = "é".repeat(100);
        let shown = Problems::new(&text).shown(0..text.len());
        let short = format!("{}...", "é".repeat(SHOWN));
        assert_eq!(shown, short);
        let table = Origin {
            offset: 0,
            key: "front".to_owned(),
            value: String::new(),
        };
        assert_eq!(table.absent(&text).key, format!("front.{short}"));
    }
}
