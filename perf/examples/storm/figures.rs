//! What the windows say: a table for people, JSON for programs.

use crate::measure::{Plan, Round};
use hdrhistogram::Histogram;
use rpcrdma_perf::load::Measured;
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
    /// By how much it is more with the storm than without.
    pub(crate) rise: Rise,
    /// By how much it is more in the other window without the storm: what the measurement is good for.
    pub(crate) floor: Rise,
}

/// By how much a figure is more in one window of a round than in another.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rise {
    /// Median of all rounds, each taken by itself, percent.
    pub(crate) percent: f64,
    /// The median of endlessly many such rounds is between these, 95 of 100 times, percent.
    pub(crate) between_percent: [f64; 2],
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
    /// Rounds of three windows.
    pub(crate) rounds: usize,
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
    pub(crate) fn of(plan: &Plan, rounds: &[Round]) -> Self {
        let windows = rounds.iter().flat_map(Round::windows);
        Self {
            rounds: rounds.len(),
            seconds: plan.window.as_secs_f64(),
            groups: plan.storm.groups,
            reports_per_second: plan.storm.per_second,
            calls: windows.map(|window| window.calls).sum(),
            p50: Row::of(rounds, |at| at.p50),
            p99: Row::of(rounds, |at| at.p99),
            p999: Row::of(rounds, |at| at.p999),
            storm: StormFigures::of(rounds),
        }
    }

    /// The table for people.
    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "NULL, depth 1, both ends on one lcore; {} round(s) of windows of {:.1} s, {} calls\n\n  \
             latency         us    in storm        more   (95 of 100)           once more without\n",
            self.rounds, self.seconds, self.calls
        );
        for (name, row) in [
            ("p50", &self.p50),
            ("p99", &self.p99),
            ("p99.9", &self.p999),
        ] {
            let (without, with) = (micros(row.without_ns), micros(row.with_ns));
            let _ = writeln!(
                text,
                "  {name:<6} {without:>11} {with:>11}   {}   {}",
                row.rise.text(),
                row.floor.text()
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
    fn of(rounds: &[Round], pick: impl Fn(Percentiles) -> u64) -> Self {
        let at = |window: &Measured| pick(Percentiles::of(&window.latency));
        let all = |window: fn(&Round) -> &Measured| -> Vec<u64> {
            rounds.iter().map(|round| at(window(round))).collect()
        };
        let (without, with) = (all(|it| &it.without), all(|it| &it.with));
        Self {
            rise: Rise::of(&without, &with),
            floor: Rise::of(&without, &all(|it| &it.again)),
            without_ns: median(without),
            with_ns: median(with),
        }
    }
}

impl Rise {
    /// Of each round the one and the other.
    pub(crate) fn of(from: &[u64], to: &[u64]) -> Self {
        let rises = from.iter().zip(to).map(|(from, to)| rise(*from, *to));
        let mut rises: Vec<f64> = rises.collect();
        rises.sort_by(f64::total_cmp);
        let at = |rank: usize| rises.get(rank).copied().unwrap_or(0.0);
        Self {
            percent: at(rises.len() / 2),
            between_percent: ranks_of_95(rises.len()).map(at),
        }
    }

    fn text(&self) -> String {
        let [least, most] = self.between_percent;
        format!("{:>7.1} %  ({least:>5.1} to {most:>5.1})", self.percent)
    }
}

/// Between which of so many values in their order, counted from 0, the median is that they are drawn from, 95 of 100 times: each is on
/// either side of it as a coin falls.
fn ranks_of_95(values: usize) -> [usize; 2] {
    // Of nine and more. Their number is spread by half the square root of all; 95 of 100 times it is within two of that.
    let least = (values / 2).saturating_sub(values.isqrt() + 1);
    [least, values.saturating_sub(1 + least)]
}

impl StormFigures {
    fn of(rounds: &[Round]) -> Self {
        let storms = || rounds.iter().map(|round| &round.taken);
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
fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
}

/// Nanoseconds as microseconds, to three digits behind the point.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
