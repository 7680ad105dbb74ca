//! The counters as DPDK's telemetry has them: names and whole numbers, in one flat list.

use crate::metrics::{Family, Sample, Value};
use rpcrdma_lcore::eal::COUNTERS_MAX;
use rustix::io::Errno;
use std::collections::BTreeMap;

/// The label that tells lcores apart.
const LCORE: &str = "lcore";

/// The counters of one lcore, or summed over all where `parameters` is empty: the numbers of the
/// metrics page, under the same names. Labels other than the lcore stand behind a name, each after
/// a slash.
///
/// # Errors
///
/// EINVAL: there is no such lcore.
pub(super) fn counters(families: &[Family], parameters: &str) -> Result<Vec<(String, u64)>, i32> {
    let lcore = Some(parameters.trim()).filter(|parameters| !parameters.is_empty());
    let mut sums = BTreeMap::<String, u64>::new();
    for family in families {
        for sample in family.samples.iter().filter(|it| is_of(it, lcore)) {
            if let Value::Whole(value) = sample.value {
                let sum = sums.entry(name(family, sample)).or_default();
                *sum = sum.saturating_add(value);
            }
        }
    }
    if lcore.is_some() && sums.is_empty() {
        return Err(Errno::INVAL.raw_os_error());
    }
    debug_assert!(sums.len() <= COUNTERS_MAX, "{} do not fit", sums.len());
    Ok(sums.into_iter().collect())
}

fn is_of(sample: &Sample, lcore: Option<&str>) -> bool {
    let mut labels = sample.labels.iter();
    lcore.is_none_or(|lcore| labels.any(|(name, text)| *name == LCORE && text == lcore))
}

fn name(family: &Family, sample: &Sample) -> String {
    let mut name = family.name.clone();
    for (label, text) in &sample.labels {
        if *label != LCORE {
            name.push('/');
            name.push_str(text);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Kind;

    fn families() -> Vec<Family> {
        let calls = Family::new("calls_total", Kind::Counter, "Calls.")
            .with(&[("lcore", "0")], Value::Whole(3))
            .with(&[("lcore", "1")], Value::Whole(u64::MAX));
        let refused = Family::new("refused_total", Kind::Counter, "Refused.")
            .with(&[("lcore", "0"), ("reason", "version")], Value::Whole(2))
            .with(&[("lcore", "0"), ("reason", "credits")], Value::Whole(5))
            .with(&[("lcore", "1"), ("reason", "credits")], Value::Whole(7));
        vec![calls, refused]
    }

    fn named(list: &[(&str, u64)]) -> Vec<(String, u64)> {
        let owned = |&(name, value): &(&str, u64)| (name.to_owned(), value);
        list.iter().map(owned).collect()
    }

    #[test]
    fn without_an_lcore_they_are_summed() {
        let all = [
            ("calls_total", u64::MAX),
            ("refused_total/credits", 12),
            ("refused_total/version", 2),
        ];
        assert_eq!(counters(&families(), ""), Ok(named(&all)));
    }

    #[test]
    fn with_one_they_are_its_own() {
        let first = [
            ("calls_total", 3),
            ("refused_total/credits", 5),
            ("refused_total/version", 2),
        ];
        assert_eq!(counters(&families(), "0"), Ok(named(&first)));
        assert_eq!(counters(&families(), "2"), Err(22));
        assert_eq!(counters(&families(), "x"), Err(22));
    }
}
