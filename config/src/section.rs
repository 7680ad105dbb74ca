//! Reading one table of the file against its schema.
//!
//! A derived deserializer stops at the first thing it does not understand. This reader walks the
//! spanned value tree itself, so that one run over the file finds every unknown key, every value
//! of a wrong type, out of range or malformed, and every key that is missing. A value that is
//! wrong is noted and from then on absent: what depends on it is not complained about as well.

use crate::error::{Origin, Problems};
use crate::near;
use crate::reading::{Elements, NO_WORD, Reading, Refusal, kind_of, number};
use crate::schema::{Key, Kind, Table};
use crate::words::Word;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// One table, with its place.
pub(crate) struct Section<'a> {
    table: &'a DeTable<'a>,
    schema: &'static Table,
    problems: &'a Problems<'a>,
    /// The table itself, for what is missing in it.
    pub(crate) origin: Origin,
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(crate) fn root(
        table: &'a DeTable<'a>,
        schema: &'static Table,
        problems: &'a Problems<'a>,
    ) -> Self {
        let origin = Origin {
            offset: 0,
            key: String::new(),
            value: String::new(),
        };
        Section {
            table,
            schema,
            problems,
            origin,
        }
        .opened()
    }

    /// Notes every key that the schema does not know.
    fn opened(self) -> Self {
        for (name, value) in self.table {
            let known = self
                .schema
                .keys
                .iter()
                .any(|key| key.name == name.get_ref().as_ref());
            if !known {
                let value_of = value.get_ref();
                let tabular = matches!(value_of, DeValue::Table(_)) || is_tables(value_of);
                let mut origin = self.place(name.get_ref(), value);
                origin.offset = name.span().start;
                let (what, remedy) = near::unknown(name.get_ref(), tabular, self.schema);
                self.problems.add(&origin, what, remedy);
            }
        }
        self
    }

    /// Notes each of `keys` that is absent.
    pub(crate) fn require(&self, keys: &[&'static Key]) {
        for key in keys.iter().filter(|key| !self.table.contains_key(key.name)) {
            let remedy = match &key.kind {
                Kind::Tables { .. } => format!("add at least one [[{}]]", self.below(key.name)),
                _ => format!("add it: {}", key.wanted()),
            };
            self.problems
                .add(&self.origin.absent(key.name), "is missing", remedy);
        }
    }

    /// Whether there is anything under this key, good or not.
    pub(crate) fn has(&self, key: &'static Key) -> bool {
        self.table.contains_key(key.name)
    }

    /// A number in the key's range.
    pub(crate) fn integer(&self, key: &'static Key) -> Option<At<u32>> {
        let Kind::Integer {
            min, max, multiple, ..
        } = key.kind
        else {
            return None;
        };
        let (value, origin) = self.find(key)?;
        let DeValue::Integer(written) = value.get_ref() else {
            return self.wrong_type(&origin, value, "a whole number", key);
        };
        let number = number(written).and_then(|number| u32::try_from(number).ok());
        match number.filter(|number| (min..=max).contains(number)) {
            None => self
                .problems
                .add(&origin, "out of range", format!("give {}", key.wanted())),
            Some(number) if !number.is_multiple_of(multiple) => self.problems.add(
                &origin,
                format!("not a multiple of {multiple}"),
                format!("give {}", number.next_multiple_of(multiple).min(max)),
            ),
            Some(value) => return Some(At { value, origin }),
        }
        None
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, key: &'static Key) -> Option<At<bool>> {
        let (value, origin) = self.find(key)?;
        match *value.get_ref() {
            DeValue::Boolean(value) => Some(At { value, origin }),
            _ => self.wrong_type(&origin, value, "true or false", key),
        }
    }

    /// One of a few words.
    pub(crate) fn word<W: Word>(&self, key: &'static Key) -> Option<At<W>> {
        self.text(key, |text| {
            W::of(text).ok_or_else(|| {
                let nearest = near::nearest(text, W::names());
                let hint = nearest.map_or(String::new(), |n| format!("did you mean \"{n}\"? "));
                Refusal::new(NO_WORD, format!("{hint}give {}", key.wanted()))
            })
        })
    }

    /// A string that `read` understands.
    pub(crate) fn text<T>(
        &self,
        key: &'static Key,
        read: impl FnOnce(&str) -> Result<T, Refusal>,
    ) -> Option<At<T>> {
        let (value, origin) = self.find(key)?;
        match value.get_ref().as_str() {
            Some(text) => self.accept(read(text), origin),
            None => {
                let expected = match key.kind {
                    Kind::FormOrTable { .. } => "a string or a table",
                    _ => "a string",
                };
                self.wrong_type(&origin, value, expected, key)
            }
        }
    }

    /// Any value that `read` understands.
    pub(crate) fn value<T>(
        &self,
        key: &'static Key,
        expected: &str,
        read: impl FnOnce(&DeValue<'_>, &Elements<'_>) -> Reading<T>,
    ) -> Option<At<T>> {
        let (value, origin) = self.find(key)?;
        let elements = Elements {
            key: &origin.key,
            problems: self.problems,
        };
        match read(value.get_ref(), &elements) {
            Reading::Value(value) => Some(At { value, origin }),
            Reading::Refused(refusal) => self.accept(Err(refusal), origin),
            Reading::Noted => None,
            Reading::WrongType => self.wrong_type(&origin, value, expected, key),
        }
    }

    /// The table `key` of this one.
    pub(crate) fn table(&self, key: &'static Key) -> Option<Section<'a>> {
        let Kind::Table(schema) = key.kind else {
            return None;
        };
        let (value, origin) = self.find(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(self.inner(table, schema, origin)),
            other => {
                let what = format!("has to be a table, is {}", kind_of(other));
                self.problems
                    .add(&origin, what, format!("write [{}]", origin.key));
                None
            }
        }
    }

    /// The table that stands in place of a form; `None` where there is none, whatever else there is.
    pub(crate) fn table_for_form(&self, key: &'static Key) -> Option<Section<'a>> {
        let Kind::FormOrTable { table: schema, .. } = key.kind else {
            return None;
        };
        let (value, origin) = self.find(key)?;
        let table = value.get_ref().as_table()?;
        Some(self.inner(table, schema, origin))
    }

    /// The tables `key` of this one, in order.
    pub(crate) fn tables(&self, key: &'static Key) -> Vec<Section<'a>> {
        let Kind::Tables { table: schema, .. } = key.kind else {
            return Vec::new();
        };
        let Some((value, origin)) = self.find(key) else {
            return Vec::new();
        };
        let DeValue::Array(entries) = value.get_ref() else {
            let remedy = format!("write [[{0}]] in place of [{0}]", origin.key);
            self.problems
                .add(&origin, "has to be an array of tables", remedy);
            return Vec::new();
        };
        let mut sections = Vec::new();
        for entry in entries {
            let mut origin = self.place(key.name, entry);
            match entry.get_ref() {
                DeValue::Table(table) => {
                    origin.value.clear();
                    sections.push(self.inner(table, schema, origin));
                }
                _ => {
                    let remedy = format!("write [[{}]]", origin.key);
                    self.problems.add(&origin, "has to be a table", remedy);
                }
            }
        }
        sections
    }

    fn inner(&self, table: &'a DeTable<'a>, schema: &'static Table, mut origin: Origin) -> Self {
        origin.value.clear();
        Section {
            table,
            schema,
            problems: self.problems,
            origin,
        }
        .opened()
    }

    fn find(&self, key: &'static Key) -> Option<(&'a Spanned<DeValue<'a>>, Origin)> {
        let value = self.table.get(key.name)?;
        Some((value, self.place(key.name, value)))
    }

    fn place(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Origin {
        let span = value.span();
        let tabular = matches!(value.get_ref(), DeValue::Table(_)) || is_tables(value.get_ref());
        let shown = if tabular {
            String::new()
        } else {
            self.problems.shown(span.clone())
        };
        Origin {
            offset: span.start,
            key: self.below(name),
            value: shown,
        }
    }

    fn below(&self, name: &str) -> String {
        self.origin.absent(name).key
    }

    fn accept<T>(&self, result: Result<T, Refusal>, origin: Origin) -> Option<At<T>> {
        match result {
            Ok(value) => Some(At { value, origin }),
            Err(Refusal { what, remedy }) => {
                self.problems.add(&origin, what, remedy);
                None
            }
        }
    }

    fn wrong_type<T>(
        &self,
        origin: &Origin,
        value: &Spanned<DeValue<'_>>,
        expected: &str,
        key: &Key,
    ) -> Option<T> {
        let what = format!("has to be {expected}, is {}", kind_of(value.get_ref()));
        self.problems
            .add(origin, what, format!("give {}", key.wanted()));
        None
    }
}

fn is_tables(value: &DeValue<'_>) -> bool {
    value
        .as_array()
        .is_some_and(|list| list.iter().any(|entry| entry.get_ref().is_table()))
}
