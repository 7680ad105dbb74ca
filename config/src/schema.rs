//! Every table and key of the file, as data: names, units, ranges, defaults, meaning.
//!
//! The one place for them. The reader checks against it, the plan takes its defaults from it,
//! messages list from it, and the reference in `config/README.md` is printed from it.

mod appliance;
mod dpdk;
mod endpoints;
mod iwarp_sctp;
mod link;
mod transport;
mod verbs;

pub(crate) use appliance::*;
pub(crate) use dpdk::*;
pub(crate) use endpoints::*;
pub(crate) use iwarp_sctp::*;
pub(crate) use link::*;
pub(crate) use transport::*;
pub(crate) use verbs::*;

use crate::words::Word;

/// A table of the file.
pub(crate) struct Table {
    /// Its name, without the tables around it.
    pub(crate) name: &'static str,
    /// What it is for, one sentence.
    pub(crate) what: &'static str,
    /// All that may stand in it.
    pub(crate) keys: &'static [&'static Key],
}

/// A key of a table.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What it decides.
    pub(crate) what: &'static str,
}

/// What a value may be.
pub(crate) enum Kind {
    /// A number; `unit` is for people, empty where there is none.
    Integer {
        min: u32,
        max: u32,
        multiple: u32,
        default: u32,
        unit: &'static str,
    },
    /// `true` or `false`.
    Flag { default: bool },
    /// One of a few words.
    Word {
        words: fn() -> Vec<&'static str>,
        default: &'static str,
    },
    /// Anything else; `form` says what it looks like, no `default`: it has to be there.
    Form {
        form: &'static str,
        default: Option<&'static str>,
    },
    /// A form as above without default, or a table in its place.
    FormOrTable {
        form: &'static str,
        table: &'static Table,
    },
    /// `[name]`.
    Table(&'static Table),
    /// `[[name]]`; no `default`: one at least has to be there.
    Tables {
        table: &'static Table,
        default: Option<&'static str>,
    },
}

impl Key {
    /// What it takes, in words.
    pub(crate) fn wanted(&self) -> String {
        match &self.kind {
            Kind::Integer {
                min,
                max,
                multiple,
                unit,
                ..
            } => {
                let to = if max - min == *multiple { "or" } else { "to" };
                format!("{min} {to} {max} {unit}").trim_end().to_owned()
            }
            Kind::Flag { .. } => "true or false".to_owned(),
            Kind::Word { words, .. } => {
                let quoted: Vec<_> = words().iter().map(|word| format!("\"{word}\"")).collect();
                quoted.join(" or ")
            }
            Kind::Form { form, .. } => form.replace('`', ""),
            Kind::FormOrTable { form, .. } => format!("{}, or a table", form.replace('`', "")),
            Kind::Table(table) => format!("[{}]", table.name),
            Kind::Tables { table, .. } => format!("[[{}]]", table.name),
        }
    }

    /// The default of an integer key; zero for any other.
    pub(crate) fn default_integer(&self) -> u32 {
        if let Kind::Integer { default, .. } = self.kind {
            default
        } else {
            0
        }
    }

    /// The default of a flag; `false` for any other key.
    pub(crate) fn default_flag(&self) -> bool {
        matches!(self.kind, Kind::Flag { default: true })
    }

    /// The default of a word; the first word for a key of another kind.
    pub(crate) fn default_word<W: Word>(&self) -> W {
        let Kind::Word { default, .. } = self.kind else {
            return W::WORDS[0].1;
        };
        W::of(default).unwrap_or(W::WORDS[0].1)
    }

    /// The default of a form; empty for any other key.
    pub(crate) fn default_form(&self) -> &'static str {
        if let Kind::Form {
            default: Some(text),
            ..
        } = self.kind
        {
            text
        } else {
            ""
        }
    }
}

const fn integer(
    name: &'static str,
    (min, max): (u32, u32),
    default: u32,
    unit: &'static str,
    what: &'static str,
) -> Key {
    Key {
        name,
        kind: Kind::Integer {
            min,
            max,
            multiple: 1,
            default,
            unit,
        },
        what,
    }
}

const fn flag(name: &'static str, default: bool, what: &'static str) -> Key {
    Key {
        name,
        kind: Kind::Flag { default },
        what,
    }
}

const fn word<W: Word>(name: &'static str, default: &'static str, what: &'static str) -> Key {
    Key {
        name,
        kind: Kind::Word {
            words: W::names,
            default,
        },
        what,
    }
}

const fn form(
    name: &'static str,
    form: &'static str,
    default: Option<&'static str>,
    what: &'static str,
) -> Key {
    Key {
        name,
        kind: Kind::Form { form, default },
        what,
    }
}

const fn table(table: &'static Table) -> Key {
    Key {
        name: table.name,
        kind: Kind::Table(table),
        what: table.what,
    }
}

const fn tables(table: &'static Table) -> Key {
    Key {
        name: table.name,
        kind: Kind::Tables {
            table,
            default: None,
        },
        what: table.what,
    }
}

/// Tables that are not needed; `default` says, in prose, what is without them.
const fn optional_tables(table: &'static Table, default: &'static str) -> Key {
    Key {
        name: table.name,
        kind: Kind::Tables {
            table,
            default: Some(default),
        },
        what: table.what,
    }
}

/// The file itself.
pub(crate) static ROOT: Table = Table {
    name: "",
    what: "",
    keys: &[
        &RUNTIME_TABLE,
        &METRICS_TABLE,
        &STATUS_TABLE,
        &TRANSPORT_TABLE,
        &VERBS_TABLE,
        &IWARP_SCTP_TABLE,
        &FRONT_TABLES,
        &BACK_TABLES,
        &SERVICE_TABLES,
        &EXPORT_TABLE,
        &LINK_TABLES,
        &DPDK_TABLE,
    ],
};
