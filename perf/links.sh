#!/usr/bin/env bash
# What a storm on the control thread costs an lcore: NULL Calls, both ends on one lcore of the memory fabric, on the last processor, with
# and without a thousand groups and ten thousand reports of the subnet manager a second on the first one. Five pairs, one after
# the other; the medians of their p50 and p99.9.
#
#   cargo build --release -p rpcrdma-perf && cargo build --release -p rpcrdma-ipoib --example cost && perf/links.sh
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}/release
pairs=${PAIRS:-5} seconds=${SECONDS_EACH:-5}
last=$(($(nproc) - 1))
[ "$last" -gt 0 ] || { echo "this takes two processors" >&2; exit 1; }

# null: p50 and p99.9 of NULL Calls, nanoseconds.
null() {
    taskset -c "$last" "$target/rpcrdma-perf" run --fabric memory --workload null --depth 1 --connections 1 --lcores 1 \
        --seconds "$seconds" --json "$scratch/report.json" >/dev/null 2>&1
    jq -r '[.latency_ns.p50, .latency_ns.p999] | map(tostring) | join(" ")' "$scratch/report.json"
}
median() { sort -n | sed -n "$(((pairs + 1) / 2))p"; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for _ in $(seq "$pairs"); do
    null >>"$scratch/without"
    taskset -c 0 "$target/examples/cost" $((seconds + 4)) >"$scratch/storm" &
    until grep -q storm "$scratch/storm"; do sleep 0.1; done
    null >>"$scratch/with"
    wait
    grep late "$scratch/storm"
done
for column in 1 2; do
    for kind in without with; do
        printf '%s %s: %s ns\n' "$([ "$column" = 1 ] && echo p50 || echo p99.9)" "$kind" "$(cut -d' ' -f"$column" "$scratch/$kind" | median)"
    done
done
