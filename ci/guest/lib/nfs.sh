# The kernel's NFS server and client in the guest; sourced after devices.sh.
# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts

EXPORT=/srv/export                   # served by knfsd; in memory
MOUNT=/mnt/nfs                       # where clients mount
KNFSD_RDMA=20049                     # its port for RDMA
MOUNTD=20048                         # and the one of its MOUNT protocol

# knfsd_start: serves EXPORT by TCP, on port 2049, and by RDMA.
knfsd_start() {
    local port
    loads nfsd rpcrdma nfs nfsv3 || skip "no NFS over RDMA in the guest's kernel"
    mkdir -p "$EXPORT" "$MOUNT" /var/lib/nfs/rpc_pipefs /var/lib/nfs/v4recovery /var/lib/nfs/sm /run/rpcbind
    mount -t tmpfs -o size=60% export "$EXPORT"
    chmod 777 "$EXPORT"
    mount -t rpc_pipefs pipes /var/lib/nfs/rpc_pipefs
    mount -t nfsd nfsd /proc/fs/nfsd
    rpcbind -w
    await "$ANSWER_SECONDS" answers 111 || die "no rpcbind"
    # Who comes back after a break must not wait out the grace period of a server that never went away.
    echo 10 >/proc/fs/nfsd/nfsv4leasetime
    echo 10 >/proc/fs/nfsd/nfsv4gracetime
    echo "$EXPORT *(rw,no_root_squash,insecure,no_subtree_check,fsid=0,sec=sys)" >/etc/exports
    exportfs -ra
    rpc.mountd --no-udp --port "$MOUNTD"
    rpc.nfsd --no-udp 8
    echo "rdma $KNFSD_RDMA" >/proc/fs/nfsd/portlist
    for port in "$MOUNTD" 2049; do
        await "$ANSWER_SECONDS" answers "$port" || die "knfsd does not answer on port $port"
    done
}

# nfs_mount ADDRESS PATH OPTION...: NFS version three, without locks, at MOUNT.
nfs_mount() {
    local address=$1 path=$2
    shift 2
    mkdir -p "$MOUNT"
    timeout 60 mount -t nfs -o "$(IFS=,; echo "vers=3,nolock,timeo=100,$*")" "$address:$path" "$MOUNT"
}

nfs_umount() { timeout 60 umount "$MOUNT"; }

# cold: nothing of the mount stays in the client's caches.
cold() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
}

# What the client's kernel counted about its RDMA transport, as JSON.
mountstats() { "$GUEST_LIB/mountstats" "$MOUNT" </proc/self/mountstats; }
