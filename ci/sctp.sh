# Two appliances joined by RDMA on SCTP in UDP, over loopback; sourced after appliances.sh.
# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts

PORT=                                # of the fabric; the next ones are of TCP
HOST=127.0.0.1                       # of the front, as it is in addresses
UPSTREAM=                            # where the back finds it, if not there
ALLOW='"127.0.0.0/8", "::1/128"'      # whose it takes
PACKETS=udp                          # or native
LAST=$(($(nproc) - 1))               # each process has a processor of its own where there are two
EXPORTED=$ACCEPT_TMP/export
mkdir -p "$EXPORTED"

at_port() {
    PORT=$1
    URL="nfs://127.0.0.1/export?version=3&nfsport=$((PORT + 1))&mountport=$((PORT + 1))"
}
at_port $((20000 + $$ % 9000))

has_library() { [[ $(ldconfig -p) == *libusrsctp.so.2* ]] || skip "no libusrsctp.so.2 on this machine"; }

front() {
    cat <<END
[iwarp_sctp]
packets = "$PACKETS"
path_mtu = ${PATH_MTU:-65535}
[[front]]
name = "front"
fabric = "iwarp-sctp"
listen = "$HOST:$PORT"
allow = [$ALLOW]
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
[iwarp_sctp]
packets = "$PACKETS"
path_mtu = ${PATH_MTU:-65535}
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
    local program
    program=$(example relay)
    UPSTREAM=$HOST:$((PORT + 3))
    coproc RELAY { exec "$program" "$UPSTREAM" "$HOST:$PORT" "${SEED:-1}" 2>"$ACCEPT_LOGS/relay"; }
}

relay_stop() {
    local relay=$RELAY_PID orders=${RELAY[1]}
    exec {orders}>&-
    wait "$relay" || fail relay "$(tail -n 1 "$ACCEPT_LOGS/relay")"
}

# relay_does LOST DELAYED DOUBLED: of a thousand datagrams, from now on; says what became of those before.
relay_does() {
    echo "$*" >&"${RELAY[1]}"
    read -r -t "$ANSWER_SECONDS" RELAYED LOST DELAYED DOUBLED <&"${RELAY[0]}"
}

# --- what both ends have to agree on ----------------------------------------------------------------------

declare -A GREW=()                   # by how much counters grew since `counting`, by end.name

counting() { for end in front back; do document "$end" "$ACCEPT_LOGS/$end.before.json"; done; }

tally() {
    local end name by
    for end in front back; do
        document "$end"
        while read -r name by; do GREW[$end.$name]=$by; done < <(jq -r --slurpfile before "$ACCEPT_LOGS/$end.before.json" '
            def sums: reduce .lcores[].counters as $of ({}; reduce ($of | to_entries[]) as $one (.; .[$one.key] += $one.value));
            ($before[0] | sums) as $was | sums | to_entries[] | "\(.key) \(.value - $was[.key])"' "$ACCEPT_LOGS/$end.json")
    done
}

# settled: what is under way has arrived: both ends have counted the same Calls and invalidations.
settled() {
    tally
    all_answered && [ "${GREW[back.remote_invalidations]}" = "${GREW[front.sends_with_invalidate]}" ]
}

all_answered() {
    local calls=${GREW[back.calls_out]}
    [ "$calls" -gt 0 ] && [ "$calls $calls $calls" = "${GREW[back.replies_in]} ${GREW[front.calls_in]} ${GREW[front.replies_out]}" ]
}

# still END COUNTER...: none of them grew.
still() {
    local name
    for name in "${@:2}"; do
        [ "${GREW[$1.$name]}" = 0 ] || { echo "$1 counts ${GREW[$1.$name]} $name" >&2; return 1; }
    done
}

once() {
    still back calls_failed calls_replayed calls_cancelled strays bad_replies protocol_closes work_closes \
        && still front duplicate_calls drained_calls calls_refused strays protocol_closes work_closes
}

# agreed LABEL: each Call since `counting` was answered once, by both ends' counters, and windows went as the front said.
agreed() {
    await "$ANSWER_SECONDS" settled || true
    verdict "$1-calls" "the back sent ${GREW[back.calls_out]} Calls and got ${GREW[back.replies_in]} Replies, the front got ${GREW[front.calls_in]} and sent ${GREW[front.replies_out]}" \
        all_answered || true
    verdict "$1-once" "no Call failed, was sent again, came twice or got a second Reply" once || true
    verdict "$1-placed" "${GREW[front.reads]} RDMA Reads, ${GREW[front.writes]} Writes" \
        [ "${GREW[front.reads]}" -gt 0 -a "${GREW[front.writes]}" -gt 0 ] || true
    verdict "$1-invalidated" "${GREW[front.sends_with_invalidate]} Sends With Invalidate, ${GREW[back.remote_invalidations]} windows gone" \
        [ "${GREW[front.sends_with_invalidate]}" -gt 0 -a "${GREW[front.sends_with_invalidate]}" = "${GREW[back.remote_invalidations]}" ] || true
}
