//! What the windows say: a table for people, JSON for programs.

use crate::measure::{Pair, Plan};
use hdrhistogram::Histogram;
use rpcrdma_perf::report::Percentiles;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One percentile of the latency of Calls.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// Median of the windows without the storm, nanoseconds.
    pub(crate) without_ns: u64,
    /// Median of those with it, nanoseconds.
    pub(crate) with_ns: u64,
    /// By how much it is more with the storm than without: the median of all pairs, each taken by itself.
    pub(crate) rise_percent: f64,
    /// The same of each pair.
    pub(crate) rises_percent: Vec<f64>,
}

/// What became of all storms together.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StormFigures {
    /// How long they were.
    pub(crate) seconds: f64,
    /// Reports that were taken, of those that came.
    pub(crate) reports: u64,
    /// Reports that found the port's queue full.
    pub(crate) lost: u64,
    /// From when a report was due until it was taken.
    pub(crate) delay_ns: Percentiles,
    /// Of its processor, what the control thread had.
    pub(crate) busy_percent: f64,
    /// What limits and states kept from being done, by name.
    pub(crate) counted: BTreeMap<String, u64>,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    /// Pairs of windows.
    pub(crate) pairs: usize,
    /// Length of each window.
    pub(crate) seconds: f64,
    /// Groups joined in a storm.
    pub(crate) groups: u32,
    /// Reports that were to come in a second of it.
    pub(crate) reports_per_second: u32,
    /// Calls answered in all windows.
    pub(crate) calls: u64,
    /// Half of all Calls were faster.
    pub(crate) p50: Row,
    /// 99 of 100.
    pub(crate) p99: Row,
    /// 999 of 1,000.
    pub(crate) p999: Row,
    /// The storms.
    pub(crate) storm: StormFigures,
}

impl Figures {
    /// Puts together what was measured.
    pub(crate) fn of(plan: &Plan, pairs: &[Pair]) -> Self {
        let calls = pairs
            .iter()
            .map(|pair| pair.without.calls + pair.with.calls);
        Self {
            pairs: pairs.len(),
            seconds: plan.window.as_secs_f64(),
            groups: plan.storm.groups,
            reports_per_second: plan.storm.per_second,
            calls: calls.sum(),
            p50: Row::of(pairs, |at| at.p50),
            p99: Row::of(pairs, |at| at.p99),
            p999: Row::of(pairs, |at| at.p999),
            storm: StormFigures::of(pairs),
        }
    }

    /// The table for people.
    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "NULL, depth 1, both ends on one lcore; {} pair(s) of windows of {:.1} s, {} calls\n\n  \
             latency         us    in storm        more\n",
            self.pairs, self.seconds, self.calls
        );
        for (name, row) in [
            ("p50", &self.p50),
            ("p99", &self.p99),
            ("p99.9", &self.p999),
        ] {
            let (without, with) = (micros(row.without_ns), micros(row.with_ns));
            let (rise, least, most) = (row.rise_percent, row.least_percent(), row.most_percent());
            let _ = writeln!(
                text,
                "  {name:<6} {without:>11} {with:>11} {rise:>9.1} %   ({least:.1} to {most:.1})"
            );
        }
        text + &self.storm_lines()
    }

    fn storm_lines(&self) -> String {
        let storm = &self.storm;
        let delay = &storm.delay_ns;
        let mut text = format!(
            "\n  storm: {} groups joined, {} reports in {:.1} s were taken, {} lost; the control thread had {:.1} % of its \
             processor\n  taken after  p50 {} us, p99 {} us, p99.9 {} us, max {} us\n",
            self.groups,
            storm.reports,
            storm.seconds,
            storm.lost,
            storm.busy_percent,
            micros(delay.p50),
            micros(delay.p99),
            micros(delay.p999),
            micros(delay.max),
        );
        for (what, count) in &storm.counted {
            let _ = writeln!(text, "  counted      {what}: {count}");
        }
        text
    }
}

impl Row {
    fn least_percent(&self) -> f64 {
        self.rises_percent.iter().copied().fold(f64::NAN, f64::min)
    }

    fn most_percent(&self) -> f64 {
        self.rises_percent.iter().copied().fold(f64::NAN, f64::max)
    }

    fn of(pairs: &[Pair], pick: impl Fn(Percentiles) -> u64) -> Self {
        let at = |histogram: &Histogram<u64>| pick(Percentiles::of(histogram));
        let both = pairs
            .iter()
            .map(|pair| (at(&pair.without.latency), at(&pair.with.latency)));
        let (without, with): (Vec<_>, Vec<_>) = both.unzip();
        let rises = without
            .iter()
            .zip(&with)
            .map(|(without, with)| rise(*without, *with));
        let rises_percent: Vec<_> = rises.collect();
        Self {
            without_ns: median(without, u64::cmp).unwrap_or(0),
            with_ns: median(with, u64::cmp).unwrap_or(0),
            rise_percent: median(rises_percent.clone(), f64::total_cmp).unwrap_or(0.0),
            rises_percent,
        }
    }
}

impl StormFigures {
    fn of(pairs: &[Pair]) -> Self {
        let storms = || pairs.iter().map(|pair| &pair.taken);
        let seconds: f64 = storms().map(|storm| storm.time.as_secs_f64()).sum();
        let busy: f64 = storms().map(|storm| storm.busy.as_secs_f64()).sum();
        let mut counted = BTreeMap::new();
        for (what, count) in storms().flat_map(|storm| &storm.counted) {
            *counted.entry(what.clone()).or_default() += count;
        }
        let mut delays = storms().map(|storm| storm.delay.clone());
        let first = delays.next();
        // All have the same bounds.
        let delay = first.map(|first| delays.fold(first, |sum, delay| sum + delay));
        Self {
            seconds,
            reports: storms().map(|storm| storm.reports).sum(),
            lost: storms().map(|storm| storm.lost).sum(),
            delay_ns: Percentiles::of(
                &delay.unwrap_or_else(|| Histogram::new(3).expect("three figures")),
            ),
            busy_percent: 100.0 * busy / seconds.max(f64::MIN_POSITIVE),
            counted,
        }
    }
}

/// By how many percent `with` is more.
#[expect(
    clippy::cast_precision_loss,
    reason = "figures for people, to three digits"
)]
fn rise(without: u64, with: u64) -> f64 {
    100.0 * (with as f64 / without.max(1) as f64 - 1.0)
}

/// The one in the middle, of an even number the upper one of the two.
fn median<T: Copy>(mut all: Vec<T>, order: impl Fn(&T, &T) -> std::cmp::Ordering) -> Option<T> {
    all.sort_by(order);
    all.get(all.len() / 2).copied()
}

/// Nanoseconds as microseconds, to three digits behind the point.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
