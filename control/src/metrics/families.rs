//! Metric families and their text form.

use std::fmt::Write;

/// Metrics of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// As Prometheus wants names: `rpcrdma_`, what it is, the unit (`_bytes`, `_seconds`), and
    /// `_total` behind counters.
    pub name: String,
    /// What it means, one sentence.
    pub help: String,
    /// How it behaves.
    pub kind: Kind,
    /// Its values.
    pub samples: Vec<Sample>,
}

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from zero at the start of the process.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// One value of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// What tells it from the others: names (`[a-z_]+`) and texts.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Counts and octets.
    Whole(u64),
    /// Seconds and ratios.
    Real(f64),
}

impl Family {
    /// A family without samples yet.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Kind, help: impl Into<String>) -> Self {
        let family = Self {
            name: name.into(),
            help: help.into(),
            kind,
            samples: Vec::new(),
        };
        debug_assert!(well_named(&family), "{}", family.name);
        family
    }

    /// Adds a sample.
    #[must_use]
    pub fn with(mut self, labels: &[(&'static str, &str)], value: Value) -> Self {
        let labels = labels
            .iter()
            .map(|&(name, text)| (name, text.to_owned()))
            .collect();
        self.samples.push(Sample { labels, value });
        self
    }
}

fn well_named(family: &Family) -> bool {
    let counts = family.kind == Kind::Counter;
    family
        .name
        .bytes()
        .all(|octet| matches!(octet, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        && family
            .name
            .bytes()
            .next()
            .is_some_and(|octet| octet.is_ascii_lowercase())
        && family.name.ends_with("_total") == counts
}

/// The text of all families, in their order. Families without samples are left out.
#[must_use]
pub fn render(families: &[Family]) -> String {
    let mut text = String::new();
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let Family { name, help, .. } = family;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# HELP {name} {}", escape(help, false));
        let _ = writeln!(text, "# TYPE {name} {kind}");
        for sample in &family.samples {
            text.push_str(name);
            labels(&mut text, &sample.labels);
            let _ = match sample.value {
                Value::Whole(value) => writeln!(text, " {value}"),
                Value::Real(value) => writeln!(text, " {}", real(value)),
            };
        }
    }
    text
}

fn labels(text: &mut String, labels: &[(&'static str, String)]) {
    for (index, (name, value)) in labels.iter().enumerate() {
        let open = if index == 0 { '{' } else { ',' };
        let _ = write!(text, "{open}{name}=\"{}\"", escape(value, true));
    }
    if !labels.is_empty() {
        text.push('}');
    }
}

fn real(value: f64) -> String {
    match value {
        value if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        value => value.to_string(),
    }
}

fn escape(text: &str, quoted: bool) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quoted {
        escaped.replace('"', "\\\"")
    } else {
        escaped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_read_as_the_format_says() {
        let calls = Family::new(
            "rpcrdma_calls_total",
            Kind::Counter,
            "Calls\nof \"peers\" \\",
        )
        .with(
            &[("lcore", "0"), ("peer", "a\"b\\c\nd")],
            Value::Whole(u64::MAX),
        )
        .with(&[], Value::Whole(0));
        let load = Family::new("rpcrdma_load_ratio", Kind::Gauge, "Load")
            .with(&[], Value::Real(0.5))
            .with(&[], Value::Real(f64::NAN))
            .with(&[], Value::Real(f64::INFINITY));
        let empty = Family::new("rpcrdma_nothing_bytes", Kind::Gauge, "Nothing");
        assert_eq!(
            render(&[calls, empty, load]),
            "# HELP rpcrdma_calls_total Calls\\nof \"peers\" \\\\\n\
             # TYPE rpcrdma_calls_total counter\n\
             rpcrdma_calls_total{lcore=\"0\",peer=\"a\\\"b\\\\c\\nd\"} 18446744073709551615\n\
             rpcrdma_calls_total 0\n\
             # HELP rpcrdma_load_ratio Load\n\
             # TYPE rpcrdma_load_ratio gauge\n\
             rpcrdma_load_ratio 0.5\n\
             rpcrdma_load_ratio NaN\n\
             rpcrdma_load_ratio +Inf\n"
        );
    }

    #[test]
    #[should_panic(expected = "rpcrdma_calls")]
    #[cfg(debug_assertions)]
    fn a_counter_that_is_not_called_total_is_a_mistake() {
        let _ = Family::new("rpcrdma_calls", Kind::Counter, "Calls");
    }
}
