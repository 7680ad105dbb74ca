# Two appliances joined by RDMA on SCTP in UDP, over loopback; sourced after appliances.sh.
# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts

PORT=$((20000 + $$ % 9000))          # of UDP for the fabric; the next ones are of TCP
HOST=${HOST:-127.0.0.1}              # of the fabric, as it is in addresses
URL="nfs://127.0.0.1/export?version=3&nfsport=$((PORT + 1))&mountport=$((PORT + 1))"
LAST=$(($(nproc) - 1))               # each process has a processor of its own where there are two
EXPORTED=$ACCEPT_TMP/export
mkdir -p "$EXPORTED"

has_library() { [[ $(ldconfig -p) == *libusrsctp.so.2* ]] || skip "no libusrsctp.so.2 on this machine"; }

front() {
    cat <<END
[[front]]
name = "front"
fabric = "iwarp-sctp"
listen = "$HOST:$PORT"
[front.transport]
version_max = ${VERSION_MAX:-2}
[[front.backend]]
programs = [100003, 100005]
address = "export"
[export]
directory = "$EXPORTED"
listen = "127.0.0.1:$((PORT + 2))"
END
}

back() {
    cat <<END
[[back]]
name = "back"
listen = "127.0.0.1:$((PORT + 1))"
fabric = "iwarp-sctp"
upstream = "${UPSTREAM:-$HOST:$PORT}"
END
}

# --- a bad network between them --------------------------------------------------------------------------

# relay_start: from now on UPSTREAM of a back is a relay before the front, which does nothing yet.
relay_start() {
    local folder=${CARGO_TARGET_DIR:-$ROOT/target}/release/examples
    (cd "$ROOT" && cargo build --locked --release -p rpcrdma-sctp --example relay) >"$ACCEPT_LOGS/build" 2>&1 || die "the relay does not build"
    UPSTREAM=$HOST:$((PORT + 3))
    coproc RELAY { exec "$folder/relay" "$UPSTREAM" "$HOST:$PORT" "${SEED:-1}" 2>"$ACCEPT_LOGS/relay"; }
}

# relay_does LOST DELAYED DOUBLED: of a thousand datagrams, from now on; says what became of those before.
relay_does() {
    echo "$*" >&"${RELAY[1]}"
    read -r -t "$ANSWER_SECONDS" RELAYED LOST DELAYED DOUBLED <&"${RELAY[0]}"
}

# --- what both ends have to agree on ----------------------------------------------------------------------

# counting: what `agreed` looks at is counted from now on.
counting() { for end in front back; do document "$end" "$ACCEPT_LOGS/$end.before.json"; done; }

# since END COUNTER: by how much it grew.
since() { counted "$ACCEPT_LOGS/$1.before.json" "$ACCEPT_LOGS/$1.json" "$2"; }

# still END COUNTER...: none of them grew.
still() {
    local name
    for name in "${@:2}"; do [ "$(since "$1" "$name")" = 0 ] || { echo "$1 counts $name" >&2; return 1; }; done
}

# settled: what is under way has arrived: both ends have counted the same Calls and invalidations.
settled() {
    document front && document back
    [ "$(since back calls_out) $(since back replies_in) $(since back remote_invalidations)" = \
        "$(since front calls_in) $(since front replies_out) $(since front sends_with_invalidate)" ]
}

# agreed LABEL: each Call since `counting` was answered once, by both ends' counters, and windows went as the front said.
agreed() {
    await "$ANSWER_SECONDS" settled || true
    verdict "$1-calls" "the back sent $(since back calls_out) Calls and got $(since back replies_in) Replies, the front got $(since front \
        calls_in) and sent $(since front replies_out)" all_answered || true
    verdict "$1-once" "no Call failed, was sent again, came twice or got a second Reply" once || true
    verdict "$1-placed" "$(since front reads) RDMA Reads, $(since front writes) Writes" \
        [ "$(since front reads)" -gt 0 -a "$(since front writes)" -gt 0 ] || true
    verdict "$1-invalidated" "$(since front sends_with_invalidate) Sends With Invalidate, $(since back remote_invalidations) windows gone" \
        invalidated || true
}

all_answered() {
    local calls
    calls=$(since back calls_out)
    [ "$calls" -gt 0 ] && [ "$calls $calls $calls" = "$(since back replies_in) $(since front calls_in) $(since front replies_out)" ]
}

once() {
    still back calls_failed calls_replayed calls_cancelled strays bad_replies protocol_closes work_closes \
        && still front duplicate_calls drained_calls calls_refused strays protocol_closes work_closes
}

invalidated() {
    local sent
    sent=$(since front sends_with_invalidate)
    [ "$sent" -gt 0 ] && [ "$sent" = "$(since back remote_invalidations)" ]
}
