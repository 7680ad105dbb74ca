//! What becomes of reading one value, or each element of a list.

use crate::error::{Origin, Problems};
use std::ops::Range;
use toml::de::{DeArray, DeInteger, DeValue};

/// What is wrong with an unknown word.
pub(crate) const NO_WORD: &str = "not a word it can be";

/// Why a well-typed value is refused all the same.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) what: String,
    pub(crate) remedy: String,
}

impl Refusal {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Refusal {
        Refusal {
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

/// What became of reading a value that may be of several types.
pub(crate) enum Reading<T> {
    /// It is good.
    Value(T),
    /// It is of a type it can be, and wrong.
    Refused(Refusal),
    /// It is wrong somewhere inside, which has been noted there.
    Noted,
    /// It is of no type it can be.
    WrongType,
}

impl<T> Reading<T> {
    /// The same, with a good value turned into another.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Value(value) => Reading::Value(change(value)),
            Reading::Refused(refusal) => Reading::Refused(refusal),
            Reading::Noted => Reading::Noted,
            Reading::WrongType => Reading::WrongType,
        }
    }
}

impl<T> From<Result<T, Refusal>> for Reading<T> {
    fn from(result: Result<T, Refusal>) -> Self {
        match result {
            Ok(value) => Reading::Value(value),
            Err(refusal) => Reading::Refused(refusal),
        }
    }
}

/// Complains about elements of a list, each at its own place.
pub(crate) struct Elements<'a> {
    pub(crate) key: &'a str,
    pub(crate) problems: &'a Problems<'a>,
}

impl Elements<'_> {
    /// Reads every element, each at most once in the list; notes all that are wrong. `None` of
    /// `read`: the element is of a wrong type.
    pub(crate) fn read<T: PartialEq>(
        &self,
        list: &DeArray<'_>,
        expected: &str,
        read: impl Fn(&DeValue<'_>) -> Option<Result<T, Refusal>>,
    ) -> Reading<Vec<T>> {
        self.each(list, expected, |element, before| {
            let result = read(element)?;
            Some(result.and_then(|value| match before.contains(&value) {
                true => Err(Refusal::new(
                    "is in the list twice",
                    "remove one of the two",
                )),
                false => Ok(value),
            }))
        })
    }

    /// The same for elements that may be in the list twice. `read` gets those before it as well.
    pub(crate) fn each<T>(
        &self,
        list: &DeArray<'_>,
        expected: &str,
        read: impl Fn(&DeValue<'_>, &[T]) -> Option<Result<T, Refusal>>,
    ) -> Reading<Vec<T>> {
        let mut values = Vec::new();
        let mut good = true;
        for element in list {
            let refusal = match read(element.get_ref(), &values) {
                Some(Ok(value)) => {
                    values.push(value);
                    continue;
                }
                Some(Err(refusal)) => refusal,
                None => {
                    let what = format!("has to be {expected}, is {}", kind_of(element.get_ref()));
                    Refusal::new(what, format!("give {expected}"))
                }
            };
            good = false;
            self.complain(element.span(), refusal);
        }
        if good {
            Reading::Value(values)
        } else {
            Reading::Noted
        }
    }

    fn complain(&self, span: Range<usize>, refusal: Refusal) {
        let value = self.problems.shown(span.clone());
        let origin = Origin {
            offset: span.start,
            key: self.key.to_owned(),
            value,
        };
        self.problems.add(&origin, refusal.what, refusal.remedy);
    }
}

/// The number that was written, whatever its base.
pub(crate) fn number(written: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(written.as_str(), written.radix()).ok()
}

/// The type of a value, for a sentence.
pub(crate) fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
