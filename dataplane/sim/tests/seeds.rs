//! Many seeded runs. `RPCRDMA_SIM_SEED=n` replays one; `RPCRDMA_SIM_RUNS=n` makes more of them.

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
    for seed in 0..number("RPCRDMA_SIM_RUNS").unwrap_or(300) {
        let run = std::panic::catch_unwind(|| world::run(seed));
        if run.is_err() {
            panic!(
                "seed {seed} failed; replay it with\n  \
                 RPCRDMA_SIM_SEED={seed} cargo test -p rpcrdma-sim --test seeds two_engines"
            );
        }
    }
}
