# What is run on each device: copies in loopback, load across to another host; sourced by ci/hardware.
# shellcheck shell=bash disable=SC2034 # what is set here is read by ci/lib.sh

binaries() {
    local target=${CARGO_TARGET_DIR:-$ROOT/target}/release
    if [ -z "${RPCRDMAD:-}" ] || [ -z "${RPCRDMA_PERF:-}" ]; then
        (cd "$ROOT" && cargo build --locked --release -p rpcrdmad -p rpcrdma-perf) >"$ACCEPT_LOGS/build" 2>&1 \
            || die "the build failed: $ACCEPT_LOGS/build"
    fi
    RPCRDMAD=${RPCRDMAD:-$target/rpcrdmad} RPCRDMA_PERF=${RPCRDMA_PERF:-$target/rpcrdma-perf}
}

HARDWARE_PORT=${HARDWARE_PORT:-20950}

# Both ends in one process, their connection through the device and back.
configuration() {
    local device=$1 listen=$2 upstream=$3
    printf '[status]\nsocket = "%s"\n[verbs]\ndevices = ["%s"]\n' "$SOCKET" "$device"
    if [ -n "$listen" ]; then
        printf '[export]\ndirectory = "%s"\n' "$ACCEPT_TMP/export"
        printf '[[front]]\nname = "front"\nfabric = "verbs"\nlisten = "%s"\nallow = ["0.0.0.0/0"]\n' "$listen"
        printf '[[front.backend]]\nprograms = [100003, 100005]\naddress = "export"\n'
    fi
    [ -z "$upstream" ] || printf '[[back]]\nname = "back"\nlisten = "127.0.0.1:0"\nfabric = "verbs"\nupstream = "%s"\n' "$upstream"
}

# loopback DEVICE ADDRESS: libnfs through back and front, files of all sizes, eight clients, and the counters.
loopback() {
    local device=$1 at=$2:$HARDWARE_PORT
    SCRIPT=$device
    if ! command -v nfs-cp >/dev/null; then
        echo "SKIPPED $device/copies: no nfs-cp on this machine (libnfs-utils)"
        return
    fi
    rm -rf "$ACCEPT_TMP/export"
    mkdir -p "$ACCEPT_TMP/export"
    configuration "$device" "$at" "$at" >"$ACCEPT_LOGS/$device.toml"
    if ! (appliance_start --config "$ACCEPT_LOGS/$device.toml" && copies_through "$device"); then
        fail loopback "the appliance does not start: $(tail -n 1 "$ACCEPT_LOGS/appliance.stderr")"
    fi
    mv "$ACCEPT_LOGS/appliance.stderr" "$ACCEPT_LOGS/$device.appliance"
}

copies_through() {
    status_document >"$ACCEPT_LOGS/$1.before.json"
    all_sizes "$URL" "$ACCEPT_TMP/export"
    at_once "$URL" "$ACCEPT_TMP/export" "${HARDWARE_CLIENTS:-8}"
    status_document >"$ACCEPT_LOGS/$1.after.json"
    grew "$ACCEPT_LOGS/$1.before.json" "$ACCEPT_LOGS/$1.after.json" read_bytes 1048576
    grew "$ACCEPT_LOGS/$1.before.json" "$ACCEPT_LOGS/$1.after.json" write_bytes 1048576
    verdict drains "SIGTERM ended it with status 0" appliance_stop || true
}

# across DEVICE PEER: the load generator here against its service there, over the wire.
across() {
    local device=$1 peer=$2 host=${HARDWARE_PEER_ADDRESS:-${2#*@}} there name size serving input
    SCRIPT=$device
    if ! there=$(ssh "$peer" mktemp -d) || ! scp -q "$RPCRDMA_PERF" "$peer:$there/rpcrdma-perf"; then
        fail across "cannot reach $peer by ssh and scp"
        return 0
    fi
    # It ends with its standard input, whatever becomes of this end.
    # shellcheck disable=SC2029 # what is meant is this side's folder
    coproc SERVE { ssh "$peer" "$there/rpcrdma-perf serve --fabric verbs --listen '[::]:$HARDWARE_PORT' & cat >/dev/null; kill %1; rm -rf '$there'" \
        >"$ACCEPT_LOGS/$device.peer" 2>&1; }
    serving=$SERVE_PID input=${SERVE[1]}
    for name in null read write; do
        case $name in null) size=0 ;; *) size=$READ_BYTES ;; esac
        verdict "across-$name" "$name against $peer" load_across "$name" "$size" "$host" "$device.across-$name" || true
    done
    exec {input}>&-
    wait "$serving" || true
}

load_across() {
    local name=$4
    timeout 120 "$RPCRDMA_PERF" run --fabric verbs --connect "$3:$HARDWARE_PORT" --workload "$1" --size "$2" --depth 8 \
        --seconds "$SPEED_SECONDS" --json "$ACCEPT_LOGS/$name.json" --hdr "$ACCEPT_LOGS/$name.hlog" >"$ACCEPT_LOGS/$name" 2>&1
}
