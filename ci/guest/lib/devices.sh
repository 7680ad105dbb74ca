# Two RDMA devices in one guest, joined by a wire that can be cut and listened to; sourced after enter.sh.
#
#     d0 on a0, 192.0.2.1 ════ w0, switch, w1 ════ d1 on a1, 192.0.2.2
#
# a0 and w0 are a pair of veth, a1 and w1 another. The wire is cut inside the switch: both ends lose their link, as
# with a cable pulled, and keep their addresses and routes. (To take an interface itself down is something else: rxe
# cannot send a connection manager's message then, and never sends one again.) The pairs get a queue, as an adapter
# has: without one rxe is told of each packet that did not arrive, and gives up the queue pair that sent it.
#
# Both ends are in one network namespace: rxe's sockets live in the first one, wherever its device is. There the
# kernel would deliver from one local address to the other without ever touching the wire; so the table of local
# addresses is asked last, and before it a rule for each address sends what is for it out at the other end.
# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts

NEAR=192.0.2.1       # where servers listen, on device d0
FAR=192.0.2.2        # where clients come from, on device d1
TYPE=                # of the devices
WIRE=a1              # an interface on which all of it passes

# wire: the interfaces, their addresses and the routes across.
wire() {
    local key
    loads veth bridge || die "no veth or no bridge in this kernel"
    ip link add a0 type veth peer name w0
    ip link add a1 type veth peer name w1
    ip link add switch type bridge
    for key in all a0 a1; do
        echo 1 >"/proc/sys/net/ipv4/conf/$key/accept_local"
        echo 0 >"/proc/sys/net/ipv4/conf/$key/rp_filter"
        echo 1 >"/proc/sys/net/ipv4/conf/$key/arp_ignore"
    done
    # RoCE takes the largest of its MTUs that fits: 4096 here, as in data centres.
    ip -batch - <<END
link set w0 mtu 4200 master switch up
link set w1 mtu 4200 master switch up
link set switch mtu 4200 up
link set a0 mtu 4200 up
link set a1 mtu 4200 up
address add $NEAR/24 dev a0
address add $FAR/24 dev a1
rule add pref 300 lookup local
rule del pref 0
rule add pref 100 iif lo to $NEAR lookup 101
rule add pref 100 iif lo to $FAR lookup 102
route add $NEAR dev a1 src $FAR table 101
route add $FAR dev a0 src $NEAR table 102
END
    tc qdisc add dev a0 root pfifo
    tc qdisc add dev a1 root pfifo
    # RoCE expects a wire without loss: several READs of 1 MiB at once are more packets than the kernel would queue.
    echo 100000 >/proc/sys/net/core/netdev_max_backlog
}

sever() { ip link set w0 down && ip link set w1 down; }
rejoin() { ip link set w0 up && ip link set w1 up; }

# devices rxe|siw: the wire with a device at each end. Skips the script where the guest has no such driver.
devices() {
    local module=$1
    TYPE=$1
    [ "$module" != rxe ] || module=rdma_rxe
    loads rdma_ucm "$module" || skip "no $module in the guest's kernel"
    wire
    plug "$TYPE" d0 a0
    plug "$TYPE" d1 a1
    await "$ANSWER_SECONDS" reachable || die "nothing crosses the wire"
}

# lone_device TYPE: one device, d0 at NEAR, that reaches itself without a wire: as a machine with one adapter does.
lone_device() {
    local module=$1
    [ "$module" != rxe ] || module=rdma_rxe
    loads veth rdma_ucm "$module" || skip "no $module in the guest's kernel"
    ip link add a0 type veth peer name a1
    ip link set a1 up
    ip link set a0 mtu 4200 up
    ip address add "$NEAR/24" dev a0
    plug "$1" d0 a0
}

# no_device: takes away what lone_device made.
no_device() {
    unplug d0
    ip link delete a0
}

plug() { rdma link add "$2" type "$1" netdev "$3"; }
unplug() { rdma link delete "$1"; }
reachable() { busybox ping -c 1 -W 1 "$NEAR" >/dev/null 2>&1; }
