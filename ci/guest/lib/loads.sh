# The load generator against a server that is not ours; sourced after flows.sh.
# shellcheck shell=bash

# loads_knfsd LABEL: NULL, GETATTR, READ and WRITE at all sizes against knfsd's RDMA listener; every call has to be
# answered, and rightly.
loads_knfsd() {
    local label=$1 size
    sample 1048576 "$EXPORT/load"
    one_load "$label-null" null 0
    one_load "$label-getattr" getattr 0
    for size in 1 1024 4096 65536 262144 1048576; do
        one_load "$label-read-$size" read "$size"
        one_load "$label-write-$size" write "$size"
    done
}

# one_load NAME WORKLOAD SIZE: four calls deep, for a second.
one_load() {
    local name=$1 json=$ACCEPT_LOGS/$1.json
    timeout 60 "$RPCRDMA_PERF" run --fabric verbs --device d1 --connect "$NEAR:$KNFSD_RDMA" --lcores 1 --version 1 --depth 4 \
        --program nfs --export "$EXPORT" --mount-port "$MOUNTD" --workload "$2" --size "$3" --seconds 1 --json "$json" \
        >"$ACCEPT_LOGS/$name" 2>&1 || tail -n 3 "$ACCEPT_LOGS/$name" >&2
    verdict "$name" "$(jq -r '"\(.calls) calls, \(.errors) errors"' "$json" 2>/dev/null || echo 'no figures')" \
        answered "$json" || true
}

answered() { jq -e '.calls > 0 and .errors == 0' "$1" >/dev/null 2>&1; }
