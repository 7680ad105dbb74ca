//! What the self-test found out, for people and for programs.

use crate::table::table;
use comfy_table::Table;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Longest latency told apart from longer ones.
const LONGEST: Duration = Duration::from_secs(60);

/// Everything the self-test found out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// True when nothing failed.
    pub passed: bool,
    /// What failed, one sentence each.
    pub failures: Vec<String>,
    /// The files copied in and out, smallest first.
    pub files: Vec<FileReport>,
    /// How long operations took, by name of the procedure.
    pub operations: Vec<OperationReport>,
    /// What was counted meanwhile, by whoever stood between client and server.
    pub counters: Vec<CounterReport>,
}

impl Report {
    /// Notes a failure.
    pub fn fail(&mut self, what: String) {
        self.failures.push(what);
        self.passed = false;
    }
}

/// A counter, and by how much it has grown.
#[derive(Clone, Debug, Serialize)]
pub struct CounterReport {
    /// Its name in the status document.
    pub name: &'static str,
    /// What it counts.
    pub meaning: &'static str,
    /// By how much it has grown.
    pub count: u64,
}

/// One file, copied in and out.
#[derive(Clone, Debug, Serialize)]
pub struct FileReport {
    /// Its name in the scratch directory.
    pub name: String,
    /// Its length in octets.
    pub bytes: u64,
    /// SHA-256 of what was written.
    pub sha256_written: String,
    /// SHA-256 of what the server has on its disk; `None` where that cannot be looked at.
    pub sha256_on_disk: Option<String>,
    /// SHA-256 of what was read back.
    pub sha256_read: String,
    /// Waited for WRITEs and the COMMIT, one after the other, nanoseconds.
    pub write_ns: u64,
    /// Waited for READs, one after the other, nanoseconds.
    pub read_ns: u64,
}

impl FileReport {
    /// True when the file is the same in all places.
    #[must_use]
    pub fn matches(&self) -> bool {
        let written = &self.sha256_written;
        self.sha256_read == *written
            && self
                .sha256_on_disk
                .as_ref()
                .is_none_or(|disk| disk == written)
    }
}

/// How long one kind of operation took, nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct OperationReport {
    /// The procedure's name in RFC 1813.
    pub operation: &'static str,
    /// How many were made.
    pub count: u64,
    /// Half of them took no longer.
    pub p50_ns: u64,
    /// Nine in ten took no longer.
    pub p90_ns: u64,
    /// 99 in a hundred took no longer.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// One histogram for each kind of operation.
#[derive(Default)]
pub(super) struct Latencies(BTreeMap<&'static str, Histogram<u64>>);

impl Latencies {
    pub(super) fn record(&mut self, operation: &'static str, took: Duration) {
        let histogram = self.0.entry(operation).or_insert_with(|| {
            Histogram::new_with_max(nanoseconds(LONGEST), 3)
                .expect("three significant digits up to a minute are within the crate's limits")
        });
        histogram.saturating_record(nanoseconds(took));
    }

    pub(super) fn report(&self) -> Vec<OperationReport> {
        let report = |(&operation, histogram): (&&'static str, &Histogram<u64>)| OperationReport {
            operation,
            count: histogram.len(),
            p50_ns: histogram.value_at_quantile(0.50),
            p90_ns: histogram.value_at_quantile(0.90),
            p99_ns: histogram.value_at_quantile(0.99),
            max_ns: histogram.max(),
        };
        self.0.iter().map(report).collect()
    }
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}\n{}",
            files(&self.files),
            operations(&self.operations)
        )?;
        if !self.counters.is_empty() {
            writeln!(f, "{}", counters(&self.counters))?;
        }
        for failure in &self.failures {
            writeln!(f, "FAILED: {failure}")?;
        }
        let bytes: u64 = self.files.iter().map(|file| file.bytes).sum();
        match self.passed {
            true => writeln!(
                f,
                "passed: {} files, {bytes} octets in and out",
                self.files.len()
            ),
            false => writeln!(f, "self-test FAILED"),
        }
    }
}

fn files(files: &[FileReport]) -> Table {
    let mut table = table(&[
        ">octets",
        "sha256 in",
        "on disk",
        "out",
        ">in MB/s",
        ">out MB/s",
    ]);
    for file in files {
        let same = |sum: &str| {
            if sum == file.sha256_written {
                "same"
            } else {
                "DIFFERENT"
            }
        };
        table.add_row([
            file.bytes.to_string(),
            file.sha256_written.chars().take(16).collect(),
            file.sha256_on_disk.as_deref().map_or("-", same).to_owned(),
            same(&file.sha256_read).to_owned(),
            rate(file.bytes, file.write_ns),
            rate(file.bytes, file.read_ns),
        ]);
    }
    table
}

fn operations(operations: &[OperationReport]) -> Table {
    let mut table = table(&[
        "operation",
        ">count",
        ">p50 us",
        ">p90 us",
        ">p99 us",
        ">max us",
    ]);
    for operation in operations {
        table.add_row([
            operation.operation.to_owned(),
            operation.count.to_string(),
            microseconds(operation.p50_ns),
            microseconds(operation.p90_ns),
            microseconds(operation.p99_ns),
            microseconds(operation.max_ns),
        ]);
    }
    table
}

fn counters(counters: &[CounterReport]) -> Table {
    let mut table = table(&["counter", ">grew by", "which counts"]);
    for counter in counters {
        let count = counter.count.to_string();
        table.add_row([counter.name, &count, counter.meaning]);
    }
    table
}

fn microseconds(ns: u64) -> String {
    format!("{}.{}", ns / 1000, ns % 1000 / 100)
}

/// Millions of octets a second; nothing for files too small to say.
fn rate(bytes: u64, ns: u64) -> String {
    if bytes < 65_536 || ns == 0 {
        return String::new();
    }
    (u128::from(bytes) * 1000 / u128::from(ns)).to_string()
}
