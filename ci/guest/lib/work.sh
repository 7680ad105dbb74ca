# Work on a mounted file system and its verdicts; sourced after nfs.sh.
# shellcheck shell=bash

# said LABEL FILE: a verdict for each "ok" or "not ok" line.
said() {
    local label=$1 line
    while read -r line; do
        case $line in
            "ok "*) line=${line#ok } && pass "$label-${line%%:*}" "${line#*: }" ;;
            "not ok "*) line=${line#not ok } && fail "$label-${line%%:*}" "${line#*: }" ;;
        esac
    done <"$2"
}

# judged LABEL LOG COMMAND...: its lines are verdicts; so is an end without any.
judged() {
    local label=$1 log=$ACCEPT_LOGS/$2 status=0
    shift 2
    timeout "${WORK_SECONDS:-150}" "$@" >"$log" || status=$?
    said "$label" "$log"
    if [ "$status" != 0 ] && ! grep -q '^not ok ' "$log"; then fail "$label" "ended with status $status after $(tail -n 1 "$log")"; fi
}

# operations LABEL [NAME...]: ci/guest/lib/operations, in a folder of its own.
operations() {
    local label=$1 folder=$MOUNT/$1
    shift
    mkdir -p "$folder"
    judged "$label" "operations-$label" "$GUEST_LIB/operations" "$folder" "$@"
}

# exercise LABEL SEED OPERATIONS [OCTETS]: ci/guest/lib/exercise.
exercise() {
    judged "$1-random" "exercise-$1-$2" "$GUEST_LIB/exercise" "$MOUNT/exercise-$1-$2" \
        --seed "$2" --operations "$3" --bytes "${4:-262144}"
}
