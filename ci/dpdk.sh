# An appliance with DPDK, and ports for it; sourced after lib.sh.
# shellcheck shell=bash

# dpdk_build: RPCRDMAD becomes one with DPDK: RPCRDMAD_DPDK, or built here, of the dev profile, whose assertions are on.
dpdk_build() {
    local built=${RPCRDMAD_DPDK:-${CARGO_TARGET_DIR:-$ROOT/target}/debug/rpcrdmad}
    need cargo cc pkg-config
    pkg-config --exists 'libdpdk >= 22.11' || skip "no DPDK 22.11 to build with (libdpdk-dev, dpdk-devel)"
    [ -n "${RPCRDMAD_DPDK:-}" ] || (cd "$ROOT" && cargo build --locked -p rpcrdmad --features dpdk) >"$ACCEPT_LOGS/build.log" 2>&1 ||
        { tail -n 20 "$ACCEPT_LOGS/build.log" >&2; die "it does not build"; }
    install -m 755 "$built" "$ACCEPT_TMP/rpcrdmad"
    export RPCRDMAD=$ACCEPT_TMP/rpcrdmad XDG_RUNTIME_DIR=$ACCEPT_TMP/run
    mkdir -m 700 "$XDG_RUNTIME_DIR"
}

# dpdk_port NAME DEVICE ADDRESS: configuration of an EAL of that name, and of the one port it has.
dpdk_port() {
    cat <<END
[dpdk]
eal_args = ["--no-pci", "--no-huge", "--no-shconf", "--file-prefix", "accept-$$-$1"]
[[dpdk.port]]
device = "$2"
address = "$3"
END
}

# dpdk_tidy: what EAL leaves behind where root runs it. An ordinary user's without $XDG_RUNTIME_DIR is in /tmp, and nobody
# else may be kept out of it.
dpdk_tidy() {
    local left
    for left in /var/run/dpdk/"accept-$$"*; do
        rm -f "$left/dpdk_telemetry.v2"
        rmdir "$left" 2>/dev/null || true
    done
    rmdir /tmp/dpdk/rpcrdmad /tmp/dpdk 2>/dev/null || true
}
