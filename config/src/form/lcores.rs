//! Which processors there are lcores on.

use crate::reading::{Elements, NO_WORD, Reading, Refusal, number};
use toml::de::{DeInteger, DeValue};

/// `runtime.lcores`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lcores {
    Auto,
    Count(usize),
    Processors(Vec<usize>),
}

/// The lcores, against the processors that there are.
pub(crate) fn lcores(
    value: &DeValue<'_>,
    elements: &Elements<'_>,
    cores: &[usize],
) -> Reading<Lcores> {
    match value {
        DeValue::String(text) if text == "auto" => Reading::Value(Lcores::Auto),
        DeValue::String(_) => {
            let remedy = "give \"auto\", a count or a list of processor numbers";
            Reading::Refused(Refusal::new(NO_WORD, remedy))
        }
        DeValue::Integer(count) => lcore_count(count, cores.len()).map(Lcores::Count).into(),
        DeValue::Array(list) if list.is_empty() => {
            Reading::Refused(Refusal::new("is empty", "list at least one processor"))
        }
        DeValue::Array(list) => elements
            .read(list, "a whole number", |entry| processor(entry, cores))
            .map(Lcores::Processors),
        _ => Reading::WrongType,
    }
}

fn lcore_count(written: &DeInteger<'_>, have: usize) -> Result<usize, Refusal> {
    let count = number(written).and_then(|number| usize::try_from(number).ok());
    count
        .filter(|count| (1..=have).contains(count))
        .ok_or_else(|| {
            let what = format!("out of range: this process may use {have} processors");
            Refusal::new(what, format!("give 1 to {have}, or \"auto\""))
        })
}

fn processor(entry: &DeValue<'_>, cores: &[usize]) -> Option<Result<usize, Refusal>> {
    let number = number(entry.as_integer()?);
    let core = number.and_then(|number| usize::try_from(number).ok());
    Some(core.filter(|core| cores.contains(core)).ok_or_else(|| {
        let what = "no processor that this process may use";
        Refusal::new(what, format!("choose among {}", ranges(cores)))
    }))
}

/// Numbers in ascending order, neighbours joined: `0-3, 8`.
pub(crate) fn ranges(numbers: &[usize]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let texts: Vec<_> = runs
        .map(|run| match run {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_joined_in_ranges() {
        assert_eq!(ranges(&[3, 0, 1, 2, 8]), "0-3, 8");
        assert_eq!(ranges(&[]), "");
    }
}
