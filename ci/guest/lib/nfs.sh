# The kernel's NFS server and client in the guest; sourced after devices.sh.
# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts

EXPORT=/srv/export                   # served by knfsd; in memory
MOUNT=/mnt/nfs                       # where clients mount
VIEW=/mnt/view                       # the same, without what MOUNT has cached
KNFSD_RDMA=20049                     # its port for RDMA
MOUNTD=20048                         # and the one of its MOUNT protocol

# memory_at FOLDER: a file system in memory there. The guest's root, an overlay, is none to serve from: it has no file
# handles for knfsd, and what the embedded server does to files on it this kernel refuses with EACCES.
memory_at() {
    mountpoint -q "$1" && return
    mkdir -p "$1"
    mount -t tmpfs -o mode=777,size=60% memory "$1"
}

# knfsd_start: serves EXPORT by TCP, on port 2049, and by RDMA.
knfsd_start() {
    local port
    loads nfsd rpcrdma nfs nfsv3 || skip "no NFS over RDMA in the guest's kernel"
    memory_at "$EXPORT"
    mkdir -p "$MOUNT" /var/lib/nfs/rpc_pipefs /var/lib/nfs/v4recovery /var/lib/nfs/sm /run/rpcbind
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
    # Of itself it takes less in a Call where memory is small; the load generator does not ask what it takes.
    echo 1048576 >/proc/fs/nfsd/max_block_size
    rpc.nfsd --no-udp 8
    echo "rdma $KNFSD_RDMA" >/proc/fs/nfsd/portlist
    for port in "$MOUNTD" 2049; do
        await "$ANSWER_SECONDS" answers "$port" || die "knfsd does not answer on port $port"
    done
}

# nfs_mount ADDRESS PATH OPTION...: NFS version three, without locks, at MOUNT, and again at VIEW with caches of its
# own and none for attributes: what is read there comes from the server.
nfs_mount() {
    local address=$1 path=$2
    shift 2
    mount_at "$MOUNT" "$address:$path" "$@" && mount_at "$VIEW" "$address:$path" actimeo=0 "$@"
}

# mount_at FOLDER WHAT OPTION...
mount_at() {
    local folder=$1 what=$2
    shift 2
    mkdir -p "$folder"
    timeout 60 mount -t nfs -o "$(IFS=,; echo "vers=3,nolock,nosharecache,$*")" "$what" "$folder"
}

nfs_umount() { timeout 60 umount "$VIEW" && timeout 60 umount "$MOUNT"; }

# What the client's kernel counted about its RDMA transport, as JSON.
mountstats() { "$GUEST_LIB/mountstats" "$MOUNT" </proc/self/mountstats; }
