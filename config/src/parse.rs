//! From text to plan.

use crate::Machine;
use crate::check;
use crate::error::{Error, Problems};
use crate::file::File;
use crate::plan::Plan;
use crate::resolve;
use crate::schema;
use crate::section::Section;
use crate::syntax;
use crate::text;
use std::path::Path;
use toml::de::DeTable;

/// Reads and checks a file.
///
/// # Errors
/// As [`parse`]; and a single problem when there is no text to be had: the file cannot be read, is
/// no regular file, is too long, or is not UTF-8.
pub fn load(path: &Path, machine: &Machine) -> Result<Plan, Error> {
    let text = text::read(path)?;
    parse(&path.display().to_string(), &text, machine)
}

/// Checks a text and makes the plan of it. `file` is its name in messages.
///
/// # Errors
/// Every problem that can be told, in the order of their places. Where the TOML itself is
/// broken, what stands behind the first break is not judged beyond its syntax: the reader may
/// have taken it for something else.
pub fn parse(file: &str, text: &str, machine: &Machine) -> Result<Plan, Error> {
    let problems = Problems::new(text);
    let (table, breaks) = DeTable::parse_recoverable(text);
    let root = Section::root(table.get_ref(), &schema::ROOT, &problems);
    let mirror = File::read(&root, &machine.cores);
    if breaks.is_empty() {
        check::all(&mirror, machine, &problems);
    } else {
        let places = breaks.iter().filter_map(|it| Some(it.span()?.start));
        problems.keep_before(places.min().unwrap_or(0));
        syntax::note(text, &breaks, &problems);
    }
    if problems.is_empty() {
        Ok(resolve::plan(&mirror, machine))
    } else {
        Err(problems.into_error(file))
    }
}
