# The machine around the RDMA devices: what there is, and what to improve; sourced by ci/hardware.
# shellcheck shell=bash

SYSTEM=/sys/class/infiniband

devices_of_machine() { [ ! -d "$SYSTEM" ] || ls "$SYSTEM"; }

# The interface of a device's first port, and its address: RoCE and iWARP are reached by it.
netdev_of() {
    local name
    name=$(cat "$SYSTEM/$1/ports/1/gid_attrs/ndevs/0" 2>/dev/null || true)
    [ -n "$name" ] || name=$(find "$SYSTEM/$1/device/net" -mindepth 1 -maxdepth 1 -printf '%f\n' 2>/dev/null | head -n 1 || true)
    echo "$name"
}
address_of() {
    [[ $(cat "$SYSTEM/$1/ports/1/state") = *ACTIVE* ]] || return 0
    ip -brief -4 address show dev "$(netdev_of "$1")" 2>/dev/null | awk '{ sub("/.*", "", $3); print $3; exit }'
}

# What the figures of this run are figures of.
describe_machine() {
    {
        echo "host: $(uname -nrm)"
        echo "processor: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) of them"
        echo "nodes: $(cat /sys/devices/system/node/online 2>/dev/null || echo 0)"
        "$RPCRDMAD" --version
        ibv_devinfo -v 2>/dev/null || true
    } >"$ACCEPT_LOGS/machine"
    head -n 3 "$ACCEPT_LOGS/machine"
}

# advise DEVICE: lines that say what would make it faster, or work at all.
advise() {
    local device=$1 port=$SYSTEM/$1/ports/1 node mtu isolated
    echo "device $device: $(cut -d: -f2- "$port/state") at $(cat "$port/rate"), interface $(netdev_of "$device")"
    [[ $(cat "$port/state") = *ACTIVE* ]] || improve "the port is not active: check cable and switch, or \`ip link set $(netdev_of "$device") up\`"
    mtu=$(cat "/sys/class/net/$(netdev_of "$device")/mtu" 2>/dev/null || echo 0)
    [ "$mtu" -ge 4200 ] || improve "MTU $mtu lets RoCE have less than 4096: \`ip link set $(netdev_of "$device") mtu 9000\`, at the switch too"
    [ "$(awk '/^HugePages_Total/ { print $2 }' /proc/meminfo)" -gt 0 ] || improve "no huge pages: \`sysctl vm.nr_hugepages=512\`"
    isolated=$(cat /sys/devices/system/cpu/isolated)
    [ -n "$isolated" ] || improve "no isolated processors: boot with isolcpus= and nohz_full= for those of runtime.lcores"
    node=$(cat "$SYSTEM/$device/device/numa_node" 2>/dev/null || echo -1)
    [ "$node" -lt 0 ] || echo "  on NUMA node $node, processors $(cat "/sys/devices/system/node/node$node/cpulist")"
    [ "$(ulimit -l)" = unlimited ] || improve "locked memory is limited to $(ulimit -l) KiB: \`ulimit -l unlimited\`, or LimitMEMLOCK= in the unit"
    governor
}

governor() {
    local now=/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
    [ ! -r "$now" ] || [ "$(cat "$now")" = performance ] || improve "frequency governor $(cat "$now"): \`cpupower frequency-set -g performance\`"
}

improve() { echo "  to improve: $1"; }
