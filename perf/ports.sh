#!/usr/bin/env bash
# NULL calls between two processes, on SCTP in UDP: by sockets over loopback, and by ports of DPDK over shared memory
# (net_memif), alternating; medians and ratios. One processor for each process.
#
#   cargo build --release -p rpcrdma-perf --features dpdk
#   perf/ports.sh [ROUNDS] [SECONDS]          default 5 rounds of 2 seconds
#
#   RPCRDMA_PERF   the load generator         default target/release/rpcrdma-perf
#   SERVER, LOAD   their processors           default 0 and 1
#   DEPTHS         calls in flight            default "1 64"
set -euo pipefail

rounds=${1:-5} seconds=${2:-2}
perf=${RPCRDMA_PERF:-${CARGO_TARGET_DIR:-$(dirname "$0")/../target}/release/rpcrdma-perf}
scratch=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$scratch"
    rmdir /var/run/dpdk/rpcrdma-perf-* 2>/dev/null || true
}
trap finish EXIT

# once KIND DEPTH: serves, loads, and adds a line of calls a second and of the median's nanoseconds to its file.
once() {
    local kind=$1 depth=$2 at=127.0.0.1:9897 there=() here=()
    if [ "$kind" = ports ]; then
        at=10.9.0.1:9897
        there=(--port "net_memif0,role=server,socket=$scratch/memif@10.9.0.1/24")
        here=(--port "net_memif0,role=client,socket=$scratch/memif@10.9.0.2/24")
    fi
    taskset -c "${SERVER:-0}" "$perf" serve --fabric iwarp-sctp "${there[@]}" --listen "$at" 2>"$scratch/server" &
    server=$!
    until grep -q '^serving at' "$scratch/server"; do
        kill -0 "$server" 2>/dev/null || { cat "$scratch/server" >&2; exit 1; }
        sleep 0.1
    done
    taskset -c "${LOAD:-1}" "$perf" run --fabric iwarp-sctp "${here[@]}" --connect "$at" --lcores 1 --workload null \
        --depth "$depth" --seconds "$seconds" --json "$scratch/json" >/dev/null 2>"$scratch/load" || { cat "$scratch/load" >&2; exit 1; }
    kill "$server"
    wait "$server" 2>/dev/null || true
    server=
    jq -r '"\(.calls_per_second) \(.latency_ns.p50)"' "$scratch/json" >>"$scratch/$kind-$depth"
}

# middle KIND DEPTH FIELD: the median of a column.
middle() { cut -d' ' -f"$3" "$scratch/$1-$2" | sort -g | sed -n "$(((rounds + 1) / 2))p"; }

for depth in ${DEPTHS:-1 64}; do
    for ((round = 0; round < rounds; round++)); do
        once sockets "$depth"
        once ports "$depth"
    done
    for kind in sockets ports; do
        printf '%-8s depth %3d: %9.0f calls a second, median %8.1f us\n' "$kind" "$depth" "$(middle "$kind" "$depth" 1)" \
            "$(jq -n "$(middle "$kind" "$depth" 2) / 1000")"
    done
    printf '%-8s depth %3d: %9.2f\n' ratio "$depth" "$(jq -n "$(middle ports "$depth" 1) / $(middle sockets "$depth" 1)")"
done
