//! The example `storm`: a short run of it, and what it makes of figures that are known.

#[path = "../examples/storm/control.rs"]
mod control;
#[path = "../examples/storm/figures.rs"]
mod figures;
#[path = "../examples/storm/measure.rs"]
mod measure;

use control::{Storm, Taken};
use figures::{Figures, Rise};
use hdrhistogram::Histogram;
use measure::{Plan, Round};
use rpcrdma_perf::load::Measured;
use std::collections::BTreeMap;
use std::time::Duration;

const PLAN: Plan = Plan {
    rounds: 6,
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
    let rounds = measure::rounds(&PLAN, |_| ());
    if processors < 2 {
        assert!(rounds.is_err(), "an lcore and control on one processor");
        return;
    }
    let rounds = rounds.unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(rounds.len(), 6);
    for round in &rounds {
        for window in round.windows() {
            assert!(window.calls > 0);
            assert_eq!(window.latency.len(), window.calls);
        }
        let taken = &round.taken;
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
    let figures = Figures::of(&PLAN, &rounds);
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
fn a_rise_is_the_median_of_the_rounds_each_by_itself() {
    let round = |without, again, with| Round {
        without: window(without),
        again: window(again),
        with: window(with),
        taken: taken(20_000),
    };
    // A machine that is twice as slow for one round is that in all of its windows.
    let rounds = [
        round(400, 404, 420),
        round(800, 784, 880),
        round(400, 404, 416),
    ];
    let figures = Figures::of(&PLAN, &rounds);
    for row in [&figures.p50, &figures.p999] {
        assert!((row.rise.percent - 5.0).abs() < 0.3, "{row:?}");
        assert!((row.floor.percent - 1.0).abs() < 0.3, "{row:?}");
    }
    assert_eq!((figures.p50.without_ns, figures.p50.with_ns), (400, 420));
    assert!(figures.p999.without_ns.abs_diff(4_000) < 10);
    assert_eq!(figures.calls, 9_000);
    assert_eq!((figures.storm.reports, figures.storm.lost), (60_000, 3));
    assert_eq!(figures.storm.counted["ignored ReportStorm"], 30_000);
    assert!((figures.storm.busy_percent - 5.0).abs() < 1e-9);
    let table = figures.table();
    assert!(table.contains("5.0 %  (  4.0 to  10.0)"), "{table}");
    assert!(table.contains("1.0 %  ( -2.0 to   1.0)"), "{table}");
    assert!(
        table.contains("60000 reports in 6.0 s were taken, 3 lost"),
        "{table}"
    );
    assert!(table.contains("ignored ReportStorm: 30000"), "{table}");
}

#[test]
fn the_bounds_of_a_median_are_those_of_a_coin() {
    // Of 16 throws 3 or fewer, or 13 or more, are heads 2 of 100 times; of 100 throws 39 or fewer, or 61 or more, 4 of 100 times.
    for (rounds, least, most) in [(9_u64, 1.0, 9.0), (16, 4.0, 13.0), (100, 40.0, 61.0)] {
        let with: Vec<u64> = (1..=rounds).map(|more| 100 + more).collect();
        let rise = Rise::of(&vec![100; with.len()], &with);
        let [from, to] = rise.between_percent;
        assert!(
            (from - least).abs() < 1e-9 && (to - most).abs() < 1e-9,
            "{rise:?}"
        );
    }
}
