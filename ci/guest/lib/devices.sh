# Two RDMA devices in one guest, joined by a wire that can be cut and listened to; sourced after enter.sh.
#
#     d0 on a0, 192.0.2.1 ════ veth pair ════ d1 on a1, 192.0.2.2
#
# Both ends are in one network namespace: rxe's sockets live in the first one, wherever its device is. There the
# kernel would deliver from one local address to the other without ever touching the wire; so the table of local
# addresses is asked last, and before it a rule for each address sends what is for it out at the other end.
# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts

NEAR=192.0.2.1       # where servers listen, on device d0
FAR=192.0.2.2        # where clients come from, on device d1
WIRE=a1              # an interface on which all of it passes

# wire: the pair of interfaces, their addresses and the routes across.
wire() {
    local end
    loads veth || die "no veth in this kernel"
    ip link add a0 type veth peer name a1
    for end in a0 a1; do
        # RoCE takes the largest of its MTUs that fits: 4096 here, as in data centres.
        ip link set "$end" mtu 4200 up
        sysctl -qw "net.ipv4.conf.$end.accept_local=1" "net.ipv4.conf.$end.rp_filter=0" "net.ipv4.conf.$end.arp_ignore=1"
    done
    sysctl -qw net.ipv4.conf.all.accept_local=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.all.arp_ignore=1
    ip address add "$NEAR/24" dev a0
    ip address add "$FAR/24" dev a1
    ip rule add pref 300 lookup local
    ip rule del pref 0
    across "$NEAR" a1 "$FAR" 101
    across "$FAR" a0 "$NEAR" 102
}

# across TO OUT FROM TABLE: what this machine sends to one of its own addresses leaves by OUT.
across() {
    ip rule add pref 100 iif lo to "$1" lookup "$4"
    ip route add "$1" dev "$2" src "$3" table "$4"
}

# devices rxe|siw: the wire with a device at each end. Skips the script where the guest has no such driver.
devices() {
    local type=$1 module
    case $type in rxe) module=rdma_rxe ;; *) module=$type ;; esac
    loads rdma_ucm "$module" || skip "no $module in the guest's kernel"
    wire
    plug "$type" d0 a0
    plug "$type" d1 a1
    await "$ANSWER_SECONDS" reachable || die "nothing crosses the wire"
}

plug() { rdma link add "$2" type "$1" netdev "$3"; }
unplug() { rdma link delete "$1"; }
reachable() { busybox ping -c 1 -W 1 "$NEAR" >/dev/null 2>&1; }
