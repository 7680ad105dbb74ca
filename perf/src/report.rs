//! What a run says: a table for people, JSON for programs, an HdrHistogram log for plots.

use crate::load::Measured;
use crate::workload::Workload;
use anyhow::Result;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2Serializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, SystemTime};

/// The floor measured in the same run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Floor {
    /// Median of a raw Send and Receive, there and back, on the same fabric, nanoseconds; null
    /// where there are no two processors to measure it between.
    pub latency_ns_p50: Option<u64>,
    /// What one processor copies from the working set's source to its destination, octets a second.
    pub memcpy_bytes_per_second: u64,
}

/// Percentiles of the latency, nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Percentiles {
    /// Half of all Calls were faster.
    pub p50: u64,
    /// 90 of 100.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 999 of 1,000.
    pub p999: u64,
    /// The slowest.
    pub max: u64,
}

impl Percentiles {
    /// Those of a histogram.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let at = |percentile| histogram.value_at_percentile(percentile);
        Self {
            p50: at(50.0),
            p90: at(90.0),
            p99: at(99.0),
            p999: at(99.9),
            max: histogram.max(),
        }
    }
}

/// Everything that was measured, and under what conditions.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The fabric's name.
    pub fabric: &'static str,
    /// The workload's name.
    pub workload: &'static str,
    /// Payload of one Call, octets.
    pub size: u32,
    /// Calls in flight on each connection.
    pub depth: u16,
    /// Connections.
    pub connections: usize,
    /// Lcores.
    pub lcores: usize,
    /// The version spoken.
    pub version: u32,
    /// How long was measured.
    pub seconds: f64,
    /// Calls answered.
    pub calls: u64,
    /// Calls that failed or were answered wrongly.
    pub errors: u64,
    /// Calls answered in a second.
    pub calls_per_second: f64,
    /// Payload moved in a second, octets.
    pub bytes_per_second: f64,
    /// From handing a Call to the engine to its Reply.
    pub latency_ns: Percentiles,
    /// What the same machine does at best, measured right before.
    pub floor: Floor,
    /// Median latency over the floor's, where that is known.
    pub latency_ratio: Option<f64>,
    /// Payload moved over what one processor copies; null without payload.
    pub bandwidth_ratio: Option<f64>,
}

/// What a run was.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// The fabric's name.
    pub fabric: &'static str,
    /// The workload.
    pub workload: Workload,
    /// Its size.
    pub size: u32,
    /// Calls in flight on each connection.
    pub depth: u16,
    /// Connections.
    pub connections: usize,
    /// Lcores.
    pub lcores: usize,
    /// The version.
    pub version: u32,
    /// How long was measured.
    pub time: Duration,
}

impl Report {
    /// Puts together what was measured.
    #[must_use]
    pub fn new(conditions: Conditions, measured: &Measured, floor: Floor) -> Self {
        let seconds = conditions.time.as_secs_f64();
        #[expect(
            clippy::cast_precision_loss,
            reason = "figures for people, to three digits"
        )]
        let rate = |count: u64| count as f64 / seconds;
        let bytes = measured.calls * conditions.workload.payload_bytes();
        let latency_ns = Percentiles::of(&measured.latency);
        Self {
            fabric: conditions.fabric,
            workload: conditions.workload.name(),
            size: conditions.size,
            depth: conditions.depth,
            connections: conditions.connections,
            lcores: conditions.lcores,
            version: conditions.version,
            seconds,
            calls: measured.calls,
            errors: measured.errors,
            calls_per_second: rate(measured.calls),
            bytes_per_second: rate(bytes),
            latency_ns,
            floor,
            latency_ratio: floor
                .latency_ns_p50
                .map(|floor| ratio(latency_ns.p50, floor)),
            bandwidth_ratio: (bytes > 0)
                .then(|| rate(bytes) / rate_of(floor.memcpy_bytes_per_second.max(1))),
        }
    }

    /// The table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "{} {} octets, version {}, {} connection(s) of depth {}, {} lcore(s), {} fabric, {:.1} s\n\n",
            self.workload,
            self.size,
            self.version,
            self.connections,
            self.depth,
            self.lcores,
            self.fabric,
            self.seconds
        );
        let latency = &self.latency_ns;
        let rows = [
            ("p50", latency.p50),
            ("p90", latency.p90),
            ("p99", latency.p99),
            ("p99.9", latency.p999),
            ("max", latency.max),
        ];
        text.push_str("  latency          us\n");
        for (name, ns) in rows {
            let _ = writeln!(text, "  {name:<8} {:>10}", micros(ns));
        }
        let _ = write!(
            text,
            "\n  calls/s    {:>14}\n  payload/s  {:>14}\n  errors     {:>14}\n",
            si(self.calls_per_second, ""),
            si(self.bytes_per_second, "B"),
            self.errors
        );
        text.push_str(&self.floor_line());
        text
    }

    fn floor_line(&self) -> String {
        let mut text = String::from("\n  floor, same run: ");
        if let (Some(ns), Some(ratio)) = (self.floor.latency_ns_p50, self.latency_ratio) {
            let _ = write!(
                text,
                "Send/Receive there and back {} us (median is {ratio:.2} times that), ",
                micros(ns)
            );
        }
        let rate = si(rate_of(self.floor.memcpy_bytes_per_second), "B");
        let _ = write!(text, "memcpy {rate}/s");
        if let Some(ratio) = self.bandwidth_ratio {
            let _ = write!(text, " (payload is {ratio:.2} of that)");
        }
        text + "\n"
    }

    /// Writes the JSON document.
    pub fn write_json(&self, mut to: impl Write) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        Ok(to.write_all(text.as_bytes())?)
    }
}

/// Writes a histogram as an HdrHistogram interval log (V2), which the usual plotters read.
pub fn write_log(mut to: impl Write, histogram: &Histogram<u64>, time: Duration) -> Result<()> {
    let mut octets = Vec::new();
    let mut serializer = V2Serializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("rpcrdma-perf: call latency, nanoseconds")
        .with_start_time(SystemTime::now() - time)
        .begin_log_with(&mut octets, &mut serializer)?;
    log.write_histogram(histogram, Duration::ZERO, time, None)
        .map_err(|error| anyhow::anyhow!("{error:?}"))?;
    Ok(to.write_all(&octets)?)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "figures for people, to three digits"
)]
fn rate_of(bytes: u64) -> f64 {
    bytes as f64
}

fn ratio(value: u64, floor: u64) -> f64 {
    rate_of(value) / rate_of(floor.max(1))
}

/// Nanoseconds as microseconds, to three digits behind the point.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// A figure with its SI prefix.
fn si(value: f64, unit: &str) -> String {
    let steps = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match steps.iter().find(|(size, _)| value >= *size) {
        Some((size, prefix)) => format!("{:.2} {prefix}{unit}", value / size),
        None => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    const TIME: Duration = Duration::from_secs(2);

    fn conditions(workload: Workload, size: u32) -> Conditions {
        Conditions {
            fabric: "memory",
            workload,
            size,
            depth: 4,
            connections: 1,
            lcores: 2,
            version: 2,
            time: TIME,
        }
    }

    /// A thousand Calls, of 1 to 1,000 microseconds.
    fn measured() -> Measured {
        let mut measured = Measured::new(3);
        for us in 1..=1000 {
            measured.latency.saturating_record(us * 1000);
            measured.calls += 1;
        }
        measured
    }

    fn floor(latency_ns_p50: Option<u64>) -> Floor {
        Floor {
            latency_ns_p50,
            memcpy_bytes_per_second: 1_000_000,
        }
    }

    #[test]
    fn figures_are_held_against_the_floor() {
        let report = Report::new(
            conditions(Workload::Read(500), 500),
            &measured(),
            floor(Some(100_000)),
        );
        assert!((report.calls_per_second - 500.0).abs() < 1e-9);
        assert!((report.bytes_per_second - 250_000.0).abs() < 1e-9);
        assert!((report.bandwidth_ratio.expect("payload") - 0.25).abs() < 1e-9);
        let ratio = report.latency_ratio.expect("a floor");
        assert!((ratio - 5.0).abs() < 0.01, "{ratio}");
        let latency = report.latency_ns;
        // Three figures, and one rank up or down.
        let within = |ns: u64, us: u64| ns.abs_diff(us * 1000) <= 2 * us;
        assert!(within(latency.p50, 500) && within(latency.p90, 900));
        assert!(within(latency.p99, 990) && within(latency.p999, 999));
        assert!(within(latency.max, 1000));
        let table = report.table();
        assert!(table.contains("500"), "{table}");
        assert!(table.contains("(payload is 0.25 of that)"), "{table}");
    }

    #[test]
    fn what_there_is_not_is_null() {
        let report = Report::new(conditions(Workload::Null, 0), &measured(), floor(None));
        let json = serde_json::to_value(&report).expect("a document");
        assert!(json["latency_ratio"].is_null() && json["bandwidth_ratio"].is_null());
        assert!(json["floor"]["latency_ns_p50"].is_null());
        assert_eq!(json["floor"]["memcpy_bytes_per_second"], 1_000_000);
        assert!(!report.table().contains("there and back"));
    }

    #[test]
    fn nothing_measured_is_no_division_by_zero() {
        let nothing = Floor {
            latency_ns_p50: Some(0),
            memcpy_bytes_per_second: 0,
        };
        let report = Report::new(conditions(Workload::Read(1), 1), &Measured::new(3), nothing);
        assert_eq!(report.latency_ratio, Some(0.0));
        assert_eq!(report.bandwidth_ratio, None);
    }

    #[test]
    fn the_log_is_one_that_others_read() {
        let mut log = Vec::new();
        write_log(&mut log, &measured().latency, TIME).expect("memory to write to");
        let mut intervals = IntervalLogIterator::new(&log).filter_map(|entry| match entry {
            Ok(LogEntry::Interval(interval)) => Some(interval.duration()),
            _ => None,
        });
        assert_eq!(intervals.next(), Some(TIME));
        assert_eq!(intervals.next(), None);
    }

    #[test]
    fn figures_are_said_with_their_prefix() {
        let said = [12.0, 12_345.0, 1.5e6, 2e9].map(|value| si(value, "B"));
        assert_eq!(said, ["12 B", "12.35 kB", "1.50 MB", "2.00 GB"]);
        assert_eq!(micros(1_234_567), "1234.567");
    }
}
