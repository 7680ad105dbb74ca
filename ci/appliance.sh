# Starting, watching and ending the appliance in acceptance scripts; sourced after lib.sh.
# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts

APPLIANCE=                           # its process id
URL=                                 # where NFS clients find what it serves, in libnfs form
SOCKET=$ACCEPT_TMP/status.sock       # where `rpcrdmad status` asks it

# appliance_start ARGUMENT...: starts `rpcrdmad run ARGUMENT...` and waits until it says where to find it.
appliance_start() {
    local said=$ACCEPT_LOGS/appliance.stdout
    "$RPCRDMAD" run "$@" </dev/null >"$said" 2>"$ACCEPT_LOGS/appliance.stderr" &
    APPLIANCE=$!
    await "$ANSWER_SECONDS" appliance_is_up "$said" || die "no address within $ANSWER_SECONDS s"
    if gone "$APPLIANCE"; then
        tail -n 5 "$ACCEPT_LOGS/appliance.stderr" >&2
        die "the appliance ended at once"
    fi
    URL=$(address_in "$said")
}

# appliance_configured TEMPLATE KEY=VALUE...: the same from a template of this folder, @KEY@ filled in.
appliance_configured() {
    local file=$ACCEPT_LOGS/appliance.toml edits=(-e "s|@SOCKET@|$SOCKET|") pair
    for pair in "${@:2}"; do
        edits+=(-e "s|@${pair%%=*}@|${pair#*=}|")
    done
    sed "${edits[@]}" "$ROOT/ci/acceptance/$1" >"$file"
    "$RPCRDMAD" check "$file" >"$ACCEPT_LOGS/check.log" 2>&1 || die "check refuses $file"
    appliance_start --config "$file"
}

# The first address of a start-up message, without the punctuation around it.
address_in() { grep -oE 'nfs://[^][:space:]"'\''<>()]+' "$1" | head -n 1; }

appliance_is_up() { gone "$APPLIANCE" || { [ -S "$SOCKET" ] && [ -n "$(address_in "$1")" ]; }; }

# appliance_stop: SIGTERM drains it; it has to end by itself, with status 0.
appliance_stop() {
    local status=0
    kill -TERM "$APPLIANCE"
    await "$ANSWER_SECONDS" gone "$APPLIANCE" || { echo "still there $ANSWER_SECONDS s after SIGTERM" >&2; return 1; }
    wait "$APPLIANCE" || status=$?
    [ "$status" = 0 ] || { echo "ended with status $status" >&2; return 1; }
}

# --- what it counts ---------------------------------------------------------------------------------------

status_document() { "$RPCRDMAD" status --json --socket "$SOCKET"; }

# counter DOCUMENT NAME: a counter, summed over the lcores.
counter() { jq -e "[.lcores[].counters.$2] | add" "$1"; }

# counted BEFORE AFTER NAME: by how much it grew between two documents.
counted() { echo $(($(counter "$2" "$3") - $(counter "$1" "$3"))); }

# grew BEFORE AFTER NAME LEAST: verdict on that growth.
grew() {
    local by
    by=$(counted "$1" "$2" "$3")
    verdict "counts-$3" "$by, at least $4" [ "$by" -ge "$4" ] || true
}

# placement URL EXPORT: 64 Mi octets in and out, and counters that say that they went by RDMA Read and RDMA
# Write and that windows were invalidated by the peer: one for each of the 128 calls or more that carry them,
# since no call carries more than 1 Mi octets.
placement() {
    local octets=$((64 << 20)) before=$ACCEPT_LOGS/before.json after=$ACCEPT_LOGS/after.json
    status_document >"$before"
    copies placement-copy "$1" "$2" "$octets"
    status_document >"$after"
    grew "$before" "$after" read_bytes "$octets"
    grew "$before" "$after" write_bytes "$octets"
    grew "$before" "$after" reads 64
    grew "$before" "$after" writes 64
    grew "$before" "$after" remote_invalidations 128
    grew "$before" "$after" sends_with_invalidate 128
}
