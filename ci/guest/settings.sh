# What `build` and `run` agree on; sourced by both.
# shellcheck shell=bash disable=SC2034 # what is set here is read by them

set -euo pipefail

SERIES=6.12                          # the first kernel series that carries NFS/RDMA over rxe without stalls
GUEST=$ROOT/ci/guest                 # ROOT is set by who sources this

# Everything that is fetched and built, and nothing else: safe to delete at any time.
CACHE=${RPCRDMA_GUEST_CACHE:-$ROOT/target/guest}
KERNEL_ROOT=$CACHE/root              # the unpacked kernel package: boot/, lib/modules/
VMLINUX=$CACHE/vmlinux               # the kernel, uncompressed
INITRAMFS=$CACHE/initramfs
READY=$CACHE/ready                   # `release=` and `made_by=`, written last

SKIPPED=77                           # exit status for "this machine cannot", as automake has it

# Ends with that status; the last line says why.
skipped() {
    printf 'SKIPPED: %s\n' "$*"
    exit "$SKIPPED"
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# What the built parts depend on: another text of these files makes them out of date.
made_by() { cat "$GUEST"/{build,settings.sh,kernel.sh,siw.sh,vmlinux,initramfs-init} | sha256sum | cut -c1-16; }

is_ready() { [ -s "$READY" ] && [ "$(sed -n 's/^made_by=//p' "$READY")" = "$(made_by)" ] && [ -s "$VMLINUX" ] && [ -s "$INITRAMFS" ]; }
release_of_guest() { sed -n 's/^release=//p' "$READY"; }
