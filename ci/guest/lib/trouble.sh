# Copies with trouble in the middle; sourced after flows.sh.
# shellcheck shell=bash

TROUBLE_BYTES=${TROUBLE_BYTES:-$((24 << 20))}

# through LABEL write|read TROUBLE [ARGUMENT]...: a copy by direct I/O, call for call, with TROUBLE once a sixth of it
# has arrived. The copy has to come to its end by itself, and what arrived has to be the same octets.
through() {
    local label=$1 way=$2 from to flag landed
    landed=$EXPORT/$label # never looked for before, so the client does not remember that it is not there
    shift 2
    sample "$TROUBLE_BYTES" /dev/shm/sample
    case $way in
        write) from=/dev/shm/sample to=$MOUNT/$label flag=oflag ;;
        read) from=$MOUNT/$label to=/dev/shm/copy flag=iflag && cp /dev/shm/sample "$landed" && landed=$to ;;
    esac
    timeout 120 dd if="$from" of="$to" bs=128k "$flag=direct" 2>"$ACCEPT_LOGS/dd-$label" &
    local copy=$! status=0 at
    await 60 under_way "$copy" "$landed" || true
    at=$(size_of "$landed")
    "$@"
    wait "$copy" || status=$?
    if [ "$at" -ge "$TROUBLE_BYTES" ]; then
        fail "$label" "the copy was over before the trouble"
    elif [ "$status" != 0 ]; then
        fail "$label" "the copy ended with status $status, $at octets before the trouble: $(tail -n 1 "$ACCEPT_LOGS/dd-$label")"
    else
        verdict "$label" "after trouble at $at octets the copy went on and is the same" \
            cmp -s /dev/shm/sample "$landed" || true
    fi
    rm -f "$MOUNT/$label" /dev/shm/copy
}

under_way() { gone "$1" || [ "$(size_of "$2")" -ge $((TROUBLE_BYTES / 6)) ]; }

# --- troubles ----------------------------------------------------------------------------------------------

# Without a chance to say goodbye; another one takes its place.
kill_front() {
    kill -KILL "${PROCESS[front]}"
    await 20 gone "${PROCESS[front]}" || true
    again front || true
}

# The wire is cut until the front has noticed, or for as long as it takes to be sure that it will not.
cut_wire() {
    sever
    await "${NOTICE_SECONDS:-15}" nothing_connected front || true
    rejoin
}

# The front's device is taken away, and given back once the front has let go of it.
take_device() {
    unplug d0
    await 30 nothing_connected front || true
    plug "$TYPE" d0 a0
}

descriptors() {
    local all=("/proc/${PROCESS[$1]}/fd/"*)
    echo "${#all[@]}"
}
