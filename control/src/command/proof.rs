//! What the dataplane's counters say about a self-test: that payloads went by direct placement,
//! and that memory was taken back by the peer's own messages.

use crate::selftest::{CounterReport, Report};
use crate::status::Document;

/// Files up to this length may go inline, so they prove nothing.
const LONG_BYTES: u64 = 65_536;

/// What must have grown, and why.
const COUNTERS: [(&str, &str); 7] = [
    (
        "reads",
        "RDMA Reads: arguments of WRITE, fetched by the front",
    ),
    ("read_bytes", "octets of them"),
    (
        "writes",
        "RDMA Writes: results of READ, placed by the front",
    ),
    ("write_bytes", "octets of them"),
    (
        "remote_invalidations",
        "windows invalidated by the peer's Send With Invalidate",
    ),
    (
        "local_invalidations",
        "windows that we had to take back ourselves",
    ),
    (
        "upper_payload_copies",
        "octets copied between socket and registered memory",
    ),
];

/// Adds to the report what was counted between two documents, and judges it.
pub(super) fn add(report: &mut Report, before: &Document, after: &Document) {
    let grown = |name: &str| total(after, name).saturating_sub(total(before, name));
    for (name, meaning) in COUNTERS {
        if after
            .lcores
            .iter()
            .any(|lcore| lcore.counters.contains_key(name))
        {
            report.counters.push(CounterReport {
                name,
                meaning,
                count: grown(name),
            });
        }
    }
    let long = report
        .files
        .iter()
        .map(|file| file.bytes)
        .filter(|&bytes| bytes >= LONG_BYTES);
    let payload: u64 = long.sum();
    for name in ["read_bytes", "write_bytes"] {
        if grown(name) < payload {
            let short = format!("{name} grew by {}, of {payload} octets copied", grown(name));
            report.fail(short);
        }
    }
    if payload > 0 && grown("remote_invalidations") == 0 {
        report.fail("no window was invalidated by the peer".to_owned());
    }
}

fn total(document: &Document, name: &str) -> u64 {
    document
        .lcores
        .iter()
        .filter_map(|lcore| lcore.counters.get(name))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::FileReport;
    use crate::status::Lcore;

    fn document(counts: &[(&str, u64)]) -> Document {
        let counters = counts
            .iter()
            .map(|&(name, count)| (name.to_owned(), count))
            .collect();
        // On one lcore or another: the sum counts.
        let lcores = vec![
            Lcore {
                counters,
                ..Lcore::default()
            },
            Lcore::default(),
        ];
        Document {
            lcores,
            ..Document::default()
        }
    }

    fn report(lengths: &[u64]) -> Report {
        let file = |&bytes: &u64| FileReport {
            name: bytes.to_string(),
            bytes,
            sha256_written: String::new(),
            sha256_on_disk: None,
            sha256_read: String::new(),
            write_ns: 1,
            read_ns: 1,
        };
        Report {
            passed: true,
            files: lengths.iter().map(file).collect(),
            ..Report::default()
        }
    }

    const BEFORE: [(&str, u64); 3] = [
        ("read_bytes", 7),
        ("write_bytes", 7),
        ("remote_invalidations", 7),
    ];

    #[test]
    fn payloads_that_went_by_rdma_pass() {
        let after = [
            ("read_bytes", 65_543),
            ("write_bytes", 70_000),
            ("remote_invalidations", 9),
        ];
        let mut report = report(&[1, 65_536]);
        add(&mut report, &document(&BEFORE), &document(&after));
        assert!(report.passed, "{:?}", report.failures);
        let counts: Vec<u64> = report
            .counters
            .iter()
            .map(|counter| counter.count)
            .collect();
        assert_eq!(counts, [65_536, 69_993, 2]);
    }

    #[test]
    fn payloads_that_did_not_fail() {
        let after = [
            ("read_bytes", 65_542),
            ("write_bytes", 70_000),
            ("remote_invalidations", 7),
        ];
        let mut report = report(&[65_536]);
        add(&mut report, &document(&BEFORE), &document(&after));
        assert!(!report.passed);
        assert_eq!(
            report.failures,
            [
                "read_bytes grew by 65535, of 65536 octets copied",
                "no window was invalidated by the peer"
            ]
        );
    }
}
