//! The example `storm`: a short run of it, and what it makes of figures that are known.

#[path = "../examples/storm/control.rs"]
mod control;
#[path = "../examples/storm/figures.rs"]
mod figures;
#[path = "../examples/storm/measure.rs"]
mod measure;

use control::{Storm, Taken};
use figures::Figures;
use hdrhistogram::Histogram;
use measure::{Pair, Plan};
use rpcrdma_perf::load::Measured;
use std::collections::BTreeMap;
use std::time::Duration;

const PLAN: Plan = Plan {
    pairs: 2,
    window: Duration::from_millis(100),
    storm: Storm {
        groups: 100,
        per_second: 10_000,
    },
};

#[test]
fn calls_are_made_and_a_storm_is_taken_beside_them() {
    // Before this thread keeps to one of them.
    let processors = core_affinity::get_core_ids().unwrap_or_default().len();
    let pairs = measure::pairs(&PLAN, |_| ());
    if processors < 2 {
        assert!(pairs.is_err(), "an lcore and control on one processor");
        return;
    }
    let pairs = pairs.unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(pairs.len(), 2);
    for Pair {
        without,
        with,
        taken,
    } in &pairs
    {
        assert!(without.calls > 0 && with.calls > 0);
        assert_eq!(without.latency.len(), without.calls);
        assert_eq!(with.latency.len(), with.calls);
        assert!(taken.reports > 0);
        assert_eq!(taken.delay.len(), taken.reports);
        // A node takes up two hundred at once, and a hundred a second after that.
        let beyond = taken.counted.get("ignored ReportStorm");
        assert!(
            beyond.is_some_and(|&count| count > 0),
            "{:?}",
            taken.counted
        );
    }
    let figures = Figures::of(&PLAN, &pairs);
    assert_eq!(figures.p999.rises_percent.len(), 2);
    assert!(figures.storm.busy_percent > 0.0);
}

/// A window in which each Call took that long, a hundredth of them ten times that.
fn window(ns: u64) -> Measured {
    let mut measured = Measured::new(3);
    measured.latency.record_n(ns, 990).expect("a latency");
    measured.latency.record_n(10 * ns, 10).expect("a latency");
    measured.calls = 1_000;
    measured
}

fn taken(reports: u64) -> Taken {
    let mut delay = Histogram::new(3).expect("three figures");
    delay.record_n(50_000, reports).expect("a delay");
    Taken {
        time: Duration::from_secs(2),
        busy: Duration::from_millis(100),
        reports,
        lost: 1,
        delay,
        counted: BTreeMap::from([("ignored ReportStorm".to_owned(), reports / 2)]),
    }
}

#[test]
fn a_rise_is_the_median_of_the_pairs_each_by_itself() {
    let pair = |without, with| Pair {
        without: window(without),
        with: window(with),
        taken: taken(20_000),
    };
    // A machine that is twice as slow for one pair is that in both of its windows.
    let pairs = [pair(400, 420), pair(800, 880), pair(400, 416)];
    let figures = Figures::of(&PLAN, &pairs);
    for row in [&figures.p50, &figures.p999] {
        assert!((row.rise_percent - 5.0).abs() < 0.3, "{row:?}");
    }
    assert_eq!((figures.p50.without_ns, figures.p50.with_ns), (400, 420));
    assert!(figures.p999.without_ns.abs_diff(4_000) < 10);
    assert_eq!(figures.calls, 6_000);
    assert_eq!((figures.storm.reports, figures.storm.lost), (60_000, 3));
    assert_eq!(figures.storm.counted["ignored ReportStorm"], 30_000);
    assert!((figures.storm.busy_percent - 5.0).abs() < 1e-9);
    let table = figures.table();
    assert!(table.contains("5.0 %   (4.0 to 10.0)"), "{table}");
    assert!(
        table.contains("60000 reports in 6.0 s were taken, 3 lost"),
        "{table}"
    );
    assert!(table.contains("ignored ReportStorm: 30000"), "{table}");
}
