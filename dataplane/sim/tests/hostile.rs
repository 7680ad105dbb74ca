//! Many seeded runs of one engine against a peer that keeps no rule. `RPCRDMA_SIM_SEED=n`
//! replays one; `RPCRDMA_SIM_RUNS=n` makes more of them.

use rpcrdma_engine::Counters;
use rpcrdma_sim::hostile;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_peer_can_break_an_engine() {
    if let Some(seed) = number("RPCRDMA_SIM_SEED") {
        println!("{:#?}", hostile::run(seed));
        return;
    }
    let mut sums: Vec<_> = Counters::default().named().collect();
    let mut rejects = Counters::default()
        .rejects
        .iter()
        .map(|(reject, _)| (reject, 0))
        .collect::<Vec<_>>();
    for seed in 0..number("RPCRDMA_SIM_RUNS").unwrap_or(600) {
        let Ok(summary) = std::panic::catch_unwind(|| hostile::run(seed)) else {
            panic!(
                "seed {seed} failed; replay it with\n  \
                 RPCRDMA_SIM_SEED={seed} cargo test -p rpcrdma-sim --test hostile"
            );
        };
        for (sum, (_, _, more)) in sums.iter_mut().zip(summary.counters.named()) {
            sum.2 += more;
        }
        for (sum, (_, more)) in rejects.iter_mut().zip(summary.counters.rejects.iter()) {
            sum.1 += more;
        }
    }
    // Runs that never come to something prove nothing about it.
    for (name, _, sum) in sums {
        println!("{name}: {sum}");
        let replays = ["calls_replayed", "drained_calls", "retries_answered"];
        assert!(sum > 0 || replays.contains(&name), "no run has any {name}");
    }
    let kinds = rejects.iter().filter(|(_, sum)| *sum > 0).count();
    assert!(kinds > 24, "only {kinds} kinds of refusals");
}
