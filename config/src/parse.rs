//! From text to plan.

use crate::Machine;
use crate::check;
use crate::error::{Error, Problem, Problems};
use crate::file::File;
use crate::plan::Plan;
use crate::resolve;
use crate::schema;
use crate::section::Section;
use crate::syntax;
use std::path::Path;
use toml::de::DeTable;

/// The longest file that is read, in octets.
const FILE_MAX: u64 = 1 << 20;

/// Reads and checks a file.
///
/// # Errors
/// As [`parse`]; and a single problem without a place when the file cannot be read.
pub fn load(path: &Path, machine: &Machine) -> Result<Plan, Error> {
    let file = path.display().to_string();
    let text = read(path).map_err(|what| {
        let remedy = "give the path of a TOML file that this user may read".to_owned();
        let (key, value) = (String::new(), String::new());
        let problem = Problem {
            place: None,
            key,
            value,
            what,
            remedy,
        };
        Error {
            file: file.clone(),
            problems: vec![problem],
        }
    })?;
    parse(&file, &text, machine)
}

fn read(path: &Path) -> Result<String, String> {
    use std::io::Read;
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    let length = file
        .take(FILE_MAX + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if length as u64 > FILE_MAX {
        return Err(format!("is longer than {FILE_MAX} octets"));
    }
    Ok(text)
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
