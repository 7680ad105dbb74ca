# How an acceptance script gets into the guest; sourced after ci/lib.sh.
# shellcheck shell=bash

export GUEST_LIB=$ROOT/ci/guest/lib

# enter_guest [ARGUMENT OF ci/guest/run]...: goes on in the guest from the start of the script, with this script's
# logs shared between both sides; does nothing where that has happened. Skips the script where no guest can be had.
enter_guest() {
    [ -z "${IN_GUEST:-}" ] || return 0
    visit_guest "$@"
    exit 0
}

# visit_guest [ARGUMENT]...: the same, and comes back when the script has ended in the guest.
visit_guest() {
    local status=0
    "$ROOT/ci/guest/build" >"$ACCEPT_LOGS/guest.log" 2>&1 || status=$?
    [ "$status" != 77 ] || skip "$(sed -n 's/^SKIPPED: //p' "$ACCEPT_LOGS/guest.log" | tail -n 1)"
    [ "$status" = 0 ] || die "the guest does not build: $ACCEPT_LOGS/guest.log"
    IN_GUEST=1 "$ROOT/ci/guest/run" --write "$ACCEPT_LOGS" "$@" -- "$0" || exit $?
}

# loads MODULE...: true when the guest's kernel has them all.
loads() { modprobe -a "$@"; }

# What the kernel said that it should not have: the verdict of a whole run.
kernel_is_calm() {
    dmesg >"$ACCEPT_LOGS/dmesg"
    # A stall is what emulation looks like on a busy host, and no fault of what ran.
    grep -E 'BUG:|WARNING:|Oops|general protection|refcount_t|KASAN|INFO: task .* blocked' "$ACCEPT_LOGS/dmesg" \
        | grep -v 'soft lockup' >"$ACCEPT_LOGS/dmesg.bad" || true
    [ ! -s "$ACCEPT_LOGS/dmesg.bad" ]
}
