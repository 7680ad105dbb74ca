# Shared by the acceptance scripts; sourced, never run.
#
# ci/accept starts each script in a process group and an empty scratch directory of its own, with:
#   ACCEPT_TMP    the scratch directory, removed afterwards       ACCEPT_LOGS   where this script's logs stay
#   RPCRDMAD      the appliance to test                           RPCRDMA_PERF  the load generator to test
#   EXAMPLES      the folder of built examples                  ROOT          the top of the tree
# A script says what it saw through `pass`, `fail` and `skip`, one line each, and exits 0 when it got to its
# end: a script that dies, or says nothing, counts as failed whatever it said before.
# shellcheck shell=bash

set -euo pipefail

SCRIPT=$(basename "$0")
ANSWER_SECONDS=${ANSWER_SECONDS:-20}

# example NAME: where it is. Built with the binaries, and linked to glibc, which a stand-in that is preloaded needs.
example() {
    [ -x "$EXAMPLES/$1" ] || die "no $EXAMPLES/$1: cargo build --release --workspace --examples"
    echo "$EXAMPLES/$1"
}

# --- verdicts ---------------------------------------------------------------------------------------------

pass() { printf 'PASS %s/%s%s\n' "$SCRIPT" "$1" "${2:+: $2}"; }
fail() { printf 'FAIL %s/%s%s\n' "$SCRIPT" "$1" "${2:+: $2}"; }

# Gives up the whole script for a reason that lies with the machine.
skip() {
    printf 'SKIPPED %s: %s\n' "$SCRIPT" "$1"
    exit 0
}

# verdict NAME DETAIL COMMAND...: pass when COMMAND succeeds, else fail; DETAIL is what COMMAND proves.
verdict() {
    local name=$1 detail=$2
    shift 2
    if "$@"; then pass "$name" "$detail"; else fail "$name" "not so: $detail"; return 1; fi
}

# Skips the script unless every program named is there.
need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || skip "no $tool on this machine"
    done
}

die() {
    echo "$SCRIPT: $*" >&2
    exit 1
}

# --- waiting ----------------------------------------------------------------------------------------------

# await SECONDS COMMAND...: true as soon as COMMAND is, false when it has not been for SECONDS.
await() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.02
    done
}

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
alive() { kill -0 "$1" 2>/dev/null; }
gone() { ! alive "$1"; }

# --- files and their copies --------------------------------------------------------------------------------

# Around every boundary there is: nothing, one octet, a page, the inline limit, several READs, many of them.
SIZES="0 1 4095 4096 65536 1048577 67108864"

sum() { sha256sum <"$1" | cut -c1-64; }
size_of() { stat -c %s "$1" 2>/dev/null || echo 0; }

# sample SIZE FILE: a file of that many octets, no two alike.
sample() { head -c "$1" /dev/urandom >"$2"; }

# at URL FILE: the URL of FILE in the directory that URL names.
at() {
    local path=${1%%\?*}
    printf '%s/%s?%s' "${path%/}" "$2" "${1#*\?}"
}

# put SOURCE URL and get URL TARGET: a copy in and a copy out by libnfs, with a limit of time. Its words go to
# a log: nfs-cp is chatty about success.
put() { timeout "${COPY_SECONDS:-60}" nfs-cp "$1" "$2" >>"$ACCEPT_LOGS/libnfs.log" 2>&1; }
get() { timeout "${COPY_SECONDS:-60}" nfs-cat "$1" >"$2" 2>>"$ACCEPT_LOGS/libnfs.log"; }
list() { timeout "${COPY_SECONDS:-60}" nfs-ls "$1" 2>>"$ACCEPT_LOGS/libnfs.log"; }

# is_listed URL FILE SIZE: a listing of the directory shows FILE with SIZE.
is_listed() { list "$1" | awk -v name="$2" -v size="$3" '$NF == name && $(NF - 1) == size { found = 1 } END { exit !found }'; }

# round_trip URL EXPORT SIZE NAME: writes a sample through URL, looks at what the server has on disk, at the
# listing, and at what comes back. Says which of them differs.
round_trip() {
    local url=$1 export=$2 size=$3 name=$4
    local source=$ACCEPT_TMP/$name.in target=$ACCEPT_TMP/$name.out want
    sample "$size" "$source"
    want=$(sum "$source")
    put "$source" "$(at "$url" "$name")" || { echo "write of $name failed"; return 1; }
    [ "$(sum "$export/$name")" = "$want" ] || { echo "$name differs on the server's disk"; return 1; }
    is_listed "$url" "$name" "$size" || { echo "$name is not listed with $size octets"; return 1; }
    get "$(at "$url" "$name")" "$target" || { echo "read of $name failed"; return 1; }
    [ "$(sum "$target")" = "$want" ] || { echo "$name came back different"; return 1; }
    rm -f "$source" "$target"
    echo "sha256 ${want:0:16}... in, on disk and out"
}

# copies NAME URL EXPORT SIZE: a round trip and its verdict.
copies() {
    local said
    if said=$(round_trip "$2" "$3" "$4" "$1"); then pass "$1" "$said"; else fail "$1" "$said"; fi
}

# all_sizes URL EXPORT: a verdict for each size.
all_sizes() {
    local size
    for size in $SIZES; do
        copies "size-$size" "$1" "$2" "$size"
    done
}

# at_once URL EXPORT COUNT: as many clients at the same time, each with files of its own; one verdict.
at_once() {
    local url=$1 export=$2 count=$3 client pids=() wrong=0
    for ((client = 0; client < count; client++)); do
        (
            for size in 1 4097 1048577 $((8 << 20)); do
                round_trip "$url" "$export" "$size" "client-$client-$size"
            done
        ) >"$ACCEPT_LOGS/client-$client.log" 2>&1 &
        pids+=($!)
    done
    for client in "${!pids[@]}"; do
        wait "${pids[client]}" || { wrong=$((wrong + 1)); tail -n 1 "$ACCEPT_LOGS/client-$client.log" >&2; }
    done
    verdict "$count-clients" "$((count - wrong)) of $count clients saw their own octets" [ "$wrong" = 0 ] || true
}

# is_prefix PART WHOLE: a copy that was cut short may lack its end; no octet of it may differ.
is_prefix() { cmp -s -n "$(size_of "$1")" "$1" "$2"; }

# --- bare RPC ---------------------------------------------------------------------------------------------

# null_calls COUNT: as many NFSv3 NULL calls with xids 1 to COUNT, as TCP records back to back.
null_calls() {
    # printf wants the octets as a format; 10,000 calls are 1.8 MB of it.
    # shellcheck disable=SC2059
    printf "$(awk -v n="$1" 'BEGIN {
        rest = "\\0\\0\\0\\0\\0\\0\\0\\02\\0\\01\\0206\\0243\\0\\0\\0\\03"
        for (i = 0; i < 20; i++) rest = rest "\\0"
        for (x = 1; x <= n; x++)
            printf "\\0200\\0\\0\\050\\0%03o\\0%03o\\0%03o\\0%03o%s", \
                x / 16777216 % 256, x / 65536 % 256, x / 256 % 256, x % 256, rest
    }' | sed 's/\\0\([0-3][0-7][0-7]\)/\\\1/g')"
}

# null_burst PORT COUNT: sends COUNT calls without waiting for answers, as deep as the other side lets it, and
# wants each xid answered once with success, in any order.
null_burst() {
    local port=$1 count=$2 status=0
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    null_calls "$count" >&3 &
    timeout "$ANSWER_SECONDS" head -c $((count * 28)) <&3 | od -An -v -tx4 --endian=big -w28 | awk -v n="$count" '
        $1 != "80000018" || $3 != "00000001" || $4 $5 $6 $7 !~ /^0+$/ { wrong++ }
        $2 in seen { wrong++ }
        { seen[$2] }
        END { exit !(NR == n && !wrong) }' || status=$?
    exec 3<&- 3>&-
    return "$status"
}

# test_verdicts LOG: what a test program of cargo's wrote, a verdict for each of its tests.
test_verdicts() {
    local name outcome
    while read -r _ name _ outcome; do
        case $outcome in
            ok) pass "$name" ;;
            ignored*) fail "$name" "ignored" ;;
            *) fail "$name" "see $1" ;;
        esac
    done < <(grep -E '^test [^ ]+ \.\.\. ' "$1")
}
