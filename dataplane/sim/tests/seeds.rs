//! Many seeded runs of two engines. `RPCRDMA_SIM_SEED=n` replays one; `RPCRDMA_SIM_RUNS=n`
//! makes more of them.

use rpcrdma_engine::Counters;
use rpcrdma_sim::world;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn two_engines_keep_their_promises() {
    if let Some(seed) = number("RPCRDMA_SIM_SEED") {
        println!("{:#?}", world::run(seed));
        return;
    }
    let mut tally = [0; 3];
    let mut sums: Vec<_> = Counters::default().named().collect();
    for seed in 0..number("RPCRDMA_SIM_RUNS").unwrap_or(400) {
        let Ok(summary) = std::panic::catch_unwind(|| world::run(seed)) else {
            panic!(
                "seed {seed} failed; replay it with\n  \
                 RPCRDMA_SIM_SEED={seed} cargo test -p rpcrdma-sim --test seeds two_engines"
            );
        };
        for (sum, more) in tally.iter_mut().zip(summary.tally) {
            *sum += more;
        }
        for counters in &summary.counters {
            for (sum, (_, _, more)) in sums.iter_mut().zip(counters.named()) {
                sum.2 += more;
            }
        }
    }
    println!("answered, failed, cancelled: {tally:?}");
    // Runs that never come to something prove nothing about it.
    for (name, _, sum) in sums {
        println!("{name}: {sum}");
        let hostile = [
            "strays",
            "duplicate_calls",
            "bad_replies",
            "properties_ignored",
            "protocol_closes",
        ];
        assert!(sum > 0 || hostile.contains(&name), "no run has any {name}");
    }
    assert!(tally.iter().all(|&count| count > 100), "{tally:?}");
}
