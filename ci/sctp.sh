# Two appliances joined by RDMA on SCTP in UDP, over loopback; sourced after appliances.sh.
# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts

PORT=$((20000 + $$ % 9000))          # of UDP for the fabric; the next ones are of TCP
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
listen = "127.0.0.1:$PORT"
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
upstream = "127.0.0.1:$PORT"
END
}
