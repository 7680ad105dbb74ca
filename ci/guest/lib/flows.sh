# The runs that rxe and siw have in common, each with kernel peers; sourced last.
#
# A flow gets a label that its verdicts begin with. It begins and ends with nothing mounted and no appliance.
# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts

FRONT=20050                          # ports: the front's, for RDMA
BACK=20070                           # the back's, for TCP
SERVED=20060                         # the embedded server's
FOLDER=/srv/folder                   # what that one serves
# What the embedded server can do: it has no hard links.
EMBEDDED=(tree attributes names symlinks sizes unaligned sparse direct mapped directory)
RANDOM_OPERATIONS=${RANDOM_OPERATIONS:-80}

# A front before knfsd by TCP, or before the embedded server. Each appliance has the device at its end of the wire.
front_before() {
    printf '[verbs]\ndevices = ["d0"]\n'
    front_at "$NEAR" front
    printf '[front.transport]\nversion_max = %s\ninline_bytes = 4096\ninline_bytes_max = 16384\n' "${VERSION_MAX:-2}"
    backends "$1"
}

front_at() {
    printf '[[front]]\nname = "%s"\nfabric = "verbs"\nlisten = "%s:%s"\nallow = ["192.0.2.0/24"]\n' "$2" "$1" "$FRONT"
}

backends() {
    case $1 in
        knfsd)
            printf '[[front.backend]]\nprograms = [100003, 100227]\naddress = "127.0.0.1:2049"\nsource_port = "privileged"\n'
            printf '[[front.backend]]\nprograms = [100005]\naddress = "127.0.0.1:%s"\n' "$MOUNTD"
            ;;
        embedded)
            memory_at "$FOLDER"
            printf '[[front.backend]]\nprograms = [100003, 100005]\naddress = "export"\n'
            printf '[export]\ndirectory = "%s"\nlisten = "127.0.0.1:%s"\n' "$FOLDER" "$SERVED"
            ;;
    esac
}

back_to() {
    printf '[verbs]\ndevices = ["d1"]\nexpose = "%s"\n' "${EXPOSE:-auto}"
    printf '[[back]]\nname = "back"\nlisten = "127.0.0.1:%s"\nfabric = "verbs"\nupstream = "%s"\n' "$BACK" "$1"
    printf '[back.transport]\ninline_bytes = 4096\ninline_bytes_max = 16384\n'
}

# Where the server behind a front answers MOUNT by TCP, and the path that it serves.
mount_options() {
    case $1 in
        knfsd) echo "mountproto=tcp,mountaddr=127.0.0.1,mountport=$MOUNTD" ;;
        embedded) echo "mountproto=tcp,mountaddr=127.0.0.1,mountport=$SERVED" ;;
    esac
}
path_of() { case $1 in knfsd) echo "$EXPORT" ;; embedded) echo /export ;; esac; }

# mounted LABEL ADDRESS PATH OPTION...: mounts, with a verdict.
mounted() {
    verdict "$1-mount" "mount -o vers=3,nolock,$(IFS=,; echo "${*:4}")" nfs_mount "${@:2}"
}

# --- the kernel's client and our front ---------------------------------------------------------------------

# kernel_client LABEL SERVER [CHECK]...: everything that a client does, through a front to knfsd or to the embedded
# server; then what both sides counted about it.
kernel_client() {
    local label=$1 server=$2 rdma
    shift 2
    rdma="proto=rdma,port=$FRONT,$(mount_options "$server")"
    appliance front < <(front_before "$server") || return 0
    if mounted "$label" "$NEAR" "$(path_of "$server")" "$rdma"; then
        operations "$label" "$@"
        exercise "$label" 1 "$RANDOM_OPERATIONS"
        counts_agree "$label"
        verdict "$label-umount" "unmounted" nfs_umount || true
    fi
    drained front
}

# transfer_sizes LABEL SERVER SIZE...: the boundary sizes and direct I/O, with that much in a call: little enough for one
# handle each on rxe (128 KiB), so the kernel has next to none to invalidate itself.
transfer_sizes() {
    local label=$1 server=$2 size
    shift 2
    for size in "$@"; do
        appliance front < <(front_before "$server") || return 0
        if mounted "$label-$size" "$NEAR" "$(path_of "$server")" "proto=rdma,port=$FRONT,$(mount_options "$server"),rsize=$size,wsize=$size"; then
            operations "$label-$size" sizes unaligned direct
            counts_agree "$label-$size"
            verdict "$label-$size-remotely" "$needed of $registered handles invalidated by the kernel" \
                [ $((needed * 20)) -le "$registered" ] || true
            nfs_umount
        fi
        drained front
    done
}

# counts_agree LABEL: the client's account of its transport against the front's. A Call that could not be sent at once
# is laid out anew: the kernel counts its handles again, and neither side invalidates those of the first time.
counts_agree() {
    local label=$1 unsent
    sync
    await 10 tallies || true
    unsent=$((registered - needed - remote))
    verdict "$label-reads" "$kernel_reads Read chunks by mountstats, $our_reads RDMA Reads; $again Calls laid out anew" \
        [ "$our_reads" -gt 0 -a $((kernel_reads - our_reads)) -ge 0 -a $((kernel_reads - our_reads)) -le "$unsent" ] || true
    verdict "$label-writes" "$our_writes RDMA Writes into the $kernel_writes Write and Reply chunks of mountstats" \
        [ "$our_writes" -gt 0 -a "$our_writes" -le "$kernel_writes" ] || true
    # With a connection that is lost go Replies whose data has arrived: it comes again by the next one. At 4 KiB in a Call the
    # kernel's client ends connections on rxe by itself, to the kernel's own server oftener than to ours.
    verdict "$label-write-octets" "$kernel_octets octets came by RDMA Write, $our_octets went, by $connections connection(s)" \
        [ "$our_octets" -ge "$kernel_octets" -a \( "$our_octets" = "$kernel_octets" -o "$connections" -gt 1 \) ] || true
    # Of a Call with several handles none is invalidated remotely; the kernel's server does the same.
    verdict "$label-invalidation" "of $registered handles $remote went with a Send, $needed the kernel invalidated itself, $unsent were never sent" \
        [ "$remote" -gt 0 -a "$unsent" -ge 0 -a \( "$unsent" = 0 -o "$again" -gt 0 \) ] || true
}

# Both sides' figures, taken one after the other; true when they tell the same.
tallies() {
    local stats=$ACCEPT_LOGS/mountstats-$label.json front=$ACCEPT_LOGS/front.json
    mountstats >"$stats"
    document front
    read -r kernel_reads kernel_writes kernel_octets needed registered again connections < <(jq -r '.xprt
        | [.read_chunks, .write_chunks + .reply_chunks, .rdma_reply_bytes, .local_inv_needed,
           .read_chunks + .write_chunks + .reply_chunks, .failed_marshals, .connect_count] | map(tostring) | join(" ")' "$stats")
    our_reads=$(counter "$front" reads)
    our_writes=$(counter "$front" writes)
    our_octets=$(counter "$front" write_bytes)
    remote=$(counter "$front" sends_with_invalidate)
    [ "$our_reads" -le "$kernel_reads" ] && [ "$our_octets" = "$kernel_octets" ]
}

# --- the kernel's server and our back ----------------------------------------------------------------------

# kernel_server LABEL [CHECK]...: TCP clients, the kernel's and libnfs, by the back to knfsd's RDMA listener.
kernel_server() {
    local label=$1
    shift
    appliance back < <(back_to "$NEAR:$KNFSD_RDMA") || return 0
    if mounted "$label" 127.0.0.1 "$EXPORT" "proto=tcp,port=$BACK,mountproto=tcp,mountport=$MOUNTD"; then
        operations "$label" "$@"
        exercise "$label" 2 "$RANDOM_OPERATIONS"
        verdict "$label-version" "the kernel speaks version one" [ "$(of_connection back version)" = 1 ] || true
        # Its listener posts receives of 4096 octets and says so in its private data.
        verdict "$label-inline" "4096 octets to the kernel" [ "$(of_connection back send_bytes)" = 4096 ] || true
        verdict "$label-credits" "$(of_connection back credits_granted) credits granted" \
            [ "$(of_connection back credits_granted | sort -n | head -n 1)" -ge 1 ] || true
        verdict "$label-umount" "unmounted" nfs_umount || true
    fi
    libnfs "$label" "nfs://127.0.0.1$EXPORT?version=3&nfsport=$BACK&mountport=$MOUNTD" "$EXPORT"
    drained back
}

# exposing LABEL [CHECK]...: a kernel's mount by TCP, the back to knfsd by RDMA, and memory exposed by EXPOSE. No Reply
# invalidates what is no window, so each exposure ends here, with its Call.
exposing() {
    local label=$1 exposed withdrawn kinds
    shift
    appliance back < <(back_to "$NEAR:$KNFSD_RDMA") || return 0
    if mounted "$label" 127.0.0.1 "$EXPORT" "proto=tcp,port=$BACK,mountproto=tcp,mountport=$MOUNTD"; then
        operations "$label" "$@"
        exposed=$(now back exposures) withdrawn=$(now back local_invalidations)
        verdict "$label-withdrawn" "$exposed exposures, $withdrawn withdrawn" \
            [ "$exposed" -gt 0 -a "$withdrawn" = "$exposed" ] || true
        kinds=$(jq -r '[.lcores[].exposure] | unique | join(" ")' "$ACCEPT_LOGS/back.json")
        verdict "$label-kind" "its status says $kinds" [ "$kinds" = "$EXPOSE" ] || true
        nfs_umount
    fi
    drained back
}

# two_devices LABEL [CHECK]...: one appliance on both devices, an lcore each, and the kernel's client by either.
two_devices() {
    local label=$1 at
    shift
    LCORES=2 appliance front < <(
        front_at "$NEAR" near && backends knfsd
        front_at "$FAR" far && backends knfsd
    ) || return 0
    for at in "$NEAR" "$FAR"; do
        if mounted "$label-$at" "$at" "$EXPORT" "proto=rdma,port=$FRONT,$(mount_options knfsd)"; then
            operations "$label-$at" "$@"
            nfs_umount
        fi
    done
    document front
    verdict "$label-devices" "each lcore answered Calls by its own device" \
        jq -e '[.lcores[] | select(.counters.replies_out > 0) | .device] | sort == ["d0", "d1"]' "$ACCEPT_LOGS/front.json" || true
    drained front
}

# libnfs LABEL URL EXPORT: copies of a few sizes by a client in user space.
libnfs() {
    local label=$1 url=$2 size
    if ! command -v nfs-cp >/dev/null; then echo "no libnfs for $label" >&2 && return; fi
    for size in 1 4097 1048577; do
        copies "$label-libnfs-$size" "$url" "$3" "$size"
    done
}

# --- two of ours -------------------------------------------------------------------------------------------

# two_appliances LABEL VERSION [CHECK]...: a TCP client, our back, our front, a server; VERSION is what both must end up
# speaking. VERSION_MAX limits the front; RESIZE has inline sizes that both are given in turn while they run.
two_appliances() {
    local label=$1 version=$2 bytes remote
    shift 2
    appliance front < <(front_before embedded) || return 0
    appliance back < <(back_to "$NEAR:$FRONT") || return 0
    if mounted "$label" 127.0.0.1 /export "proto=tcp,port=$BACK,mountproto=tcp,mountport=$BACK"; then
        operations "$label" "$@"
        exercise "$label" 3 "$RANDOM_OPERATIONS"
        verdict "$label-version" "version $version" [ "$(of_connection back version)" = "$version" ] || true
        verdict "$label-inline" "4096 octets inline" sizes_are 4096 || true
        document front
        remote=$(counter "$ACCEPT_LOGS/front.json" sends_with_invalidate)
        # siw invalidates as it is told, and tells nobody: so nobody wants it to.
        [ "$TYPE" = siw ] || verdict "$label-invalidation" "the front sent $remote Replies with the handle to invalidate" \
            [ "$remote" -gt 0 ] || true
        [ "$TYPE" = siw ] || verdict "$label-invalidated" "the back saw its windows go" \
            [ "$(now back remote_invalidations)" -gt 0 ] || true
        for bytes in ${RESIZE:-}; do resized "$label-$bytes" "$bytes"; done
        verdict "$label-umount" "unmounted" nfs_umount || true
    fi
    libnfs "$label" "nfs://127.0.0.1/export?version=3&nfsport=$BACK&mountport=$BACK" "$FOLDER"
    drained back
    drained front
}

# resized LABEL OCTETS: both read their files again, with that inline size in them, while the client's mount stands.
# Symbolic links are up to 4095 octets: with more than that inline they need no chunk.
resized() {
    local label=$1 bytes=$2 name before moved
    for name in front back; do
        sed -i "s/^inline_bytes = .*/inline_bytes = $bytes/" "$ACCEPT_LOGS/$name.toml"
        kill -HUP "${PROCESS[$name]}"
    done
    verdict "$label-agreed" "$bytes octets inline, both ways" await 30 sizes_are "$bytes" || true
    before=$(moved_by_rdma)
    operations "$label" symlinks
    moved=$(($(moved_by_rdma) - before))
    verdict "$label-chunks" "symbolic links took $moved RDMA Reads and Writes" [ $((moved == 0)) = $((bytes > 8192)) ] || true
    operations "$label" sizes
}

sizes_are() { [ "$(of_connection back send_bytes) $(of_connection front send_bytes)" = "$1 $1" ]; }
moved_by_rdma() { echo $(($(now front reads) + $(now front writes))); }
