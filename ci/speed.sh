# Ratios of our speed to what the same device does for a program without a protocol, in one boot, on one machine;
# sourced by ci/hardware and by acceptance, after lib.sh.
#
# SPEED_SLACK is by how much a ratio may miss its target, as a factor: 1 on hardware; more where the processor is
# emulated, whose figures tell a collapse and nothing finer.
# shellcheck shell=bash

SPEED_SECONDS=${SPEED_SECONDS:-3}
SPEED_SLACK=${SPEED_SLACK:-1}
NULL_BYTES=76                        # of a NULL call on the wire: header and call
READ_BYTES=1048576

# perftest PROGRAM ADDRESS OPTION...: its client's line of figures, from a server beside it.
perftest() {
    local program=$1 address=$2 server status=0
    shift 2
    "$program" "$@" >"$ACCEPT_LOGS/$program.server" 2>&1 &
    server=$!
    # The server takes one client: to try whether it listens would be to use it up.
    await 20 listens 18515 || true
    timeout 60 "$program" "$@" "$address" >"$ACCEPT_LOGS/$program" 2>&1 || status=$?
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    [ "$status" = 0 ] || return 1
    awk '/^ *#bytes/ { figures = 1; next } figures && /^ *[0-9]/ { print; exit }' "$ACCEPT_LOGS/$program"
}

listens() { ss -Hltn "sport = :$1" | grep -q .; }

# round_trip_us DEVICE ADDRESS: of ib_send_lat, which reports half of it.
round_trip_us() {
    perftest ib_send_lat "$2" -F -d "$1" -s "$NULL_BYTES" -n 2000 | awk '{ printf "%.2f", $5 * 2 }'
}

# bandwidth PROGRAM DEVICE ADDRESS: octets a second.
bandwidth() {
    perftest "$1" "$3" -F -d "$2" -s "$READ_BYTES" -n "${BANDWIDTH_ITERATIONS:-300}" -t 8 | awk '{ printf "%.0f", $4 * 1048576 }'
}

# load FIGURE NAME ADDRESS OPTION...: rpcrdma-perf through the device and back; prints what the filter FIGURE makes of
# its document, which stays as NAME.json beside the histogram.
load() {
    local figure=$1 name=$2 address=$3
    shift 3
    if timeout 120 "$RPCRDMA_PERF" run --fabric verbs --address "$address" --seconds "$SPEED_SECONDS" \
        --json "$ACCEPT_LOGS/$name.json" --hdr "$ACCEPT_LOGS/$name.hlog" "$@" >"$ACCEPT_LOGS/$name" 2>&1; then
        jq -r "$figure" "$ACCEPT_LOGS/$name.json"
    else
        tail -n 3 "$ACCEPT_LOGS/$name" >&2
    fi
}

# at_most NAME FIGURE FLOOR TARGET UNIT and at_least: verdicts on the ratio of the two.
at_most() { ratio "$1" "$2" "$3" "$5" "at most $4" "$2 <= $3 * $4 * $SPEED_SLACK"; }
at_least() { ratio "$1" "$2" "$3" "$5" "at least $4" "$2 * $SPEED_SLACK >= $3 * $4"; }

ratio() {
    local name=$1 figure=$2 floor=$3 unit=$4 target=$5 condition=$6
    if [ -z "$figure" ] || [ -z "$floor" ]; then
        fail "$name" "no figure: ours ${figure:-missing}, floor ${floor:-missing}"
        return 0
    fi
    local told
    told=$(awk -v f="$figure" -v g="$floor" 'BEGIN { printf "%.2f", f / g }')
    verdict "$name" "$told times the floor ($figure to $floor $unit); target $target, slack $SPEED_SLACK" \
        awk "BEGIN { exit !($condition) }" || true
}

# ratios LABEL DEVICE ADDRESS: NULL calls and both directions of data, against perftest on the same device.
ratios() {
    local label=$1 device=$2 address=$3 ours
    ours=$(load '.latency_ns.p50 / 1000' "$label-null" "$address" --workload null --depth 1)
    at_most "$label-null" "$ours" "$(round_trip_us "$device" "$address" || true)" 1.3 us
    data_ratio "$label" read ib_write_bw "$device" "$address"
    data_ratio "$label" write ib_read_bw "$device" "$address"
}

# data_ratio LABEL WORKLOAD PROGRAM DEVICE ADDRESS: a READ's data goes by RDMA Write and a WRITE's by RDMA Read.
data_ratio() {
    local name=$1-$2 ours
    ours=$(load '.bytes_per_second | floor' "$name" "$5" --workload "$2" --size "$READ_BYTES" --depth 8)
    at_least "$name" "$ours" "$(bandwidth "$3" "$4" "$5" || true)" 0.85 B/s
}
