# Several appliances at a time, and what they count; sourced after appliance.sh. SOCKETS is the folder of their sockets.
# shellcheck shell=bash disable=SC2034 # APPLIANCE is read by ci/appliance.sh

declare -A PROCESS=()                # of each appliance, by name
declare -A SPACE=()                  # the network namespace of one that is in another than the script

socket_of() { echo "${SOCKETS:-$ACCEPT_TMP}/$1.sock"; }

# appliance NAME <CONFIGURATION: starts it, with what all of them have added, and waits until it answers. LCORES is how
# many lcores it has, or a list of their processors.
appliance() {
    local name=$1 file=$ACCEPT_LOGS/$1.toml
    {
        printf '[runtime]\nlcores = %s\nidle = "adaptive"\nidle_spin_us = %s\nmemory_mib = %s\nhugepages = "off"\n' \
            "${LCORES:-1}" "${IDLE_SPIN_US:-50}" "${MEMORY_MIB:-96}"
        printf '[status]\nsocket = "%s"\n' "$(socket_of "$name")"
        cat
    } >"$file"
    if ! "$RPCRDMAD" check "$file" >"$ACCEPT_LOGS/$name.check" 2>&1; then
        sed 's/^/  | /' "$ACCEPT_LOGS/$name.check" >&2
        fail "$name-starts" "check refuses $file"
        return 1
    fi
    again "$name"
}

# again NAME: starts it, for the first time or after its end.
again() {
    local name=$1 socket space=()
    socket=$(socket_of "$name")
    rm -f "$socket"
    [ -z "${SPACE[$name]:-}" ] || space=(ip netns exec "${SPACE[$name]}")
    "${space[@]}" "$RPCRDMAD" run --config "$ACCEPT_LOGS/$name.toml" </dev/null >>"$ACCEPT_LOGS/$name.stdout" 2>>"$ACCEPT_LOGS/$name.stderr" &
    PROCESS[$name]=$!
    await 60 started "$name" || true
    if [ ! -S "$socket" ] || gone "${PROCESS[$name]}"; then
        tail -n 5 "$ACCEPT_LOGS/$name.stderr" >&2
        fail "$name-starts" "$(tail -n 1 "$ACCEPT_LOGS/$name.stderr")"
        return 1
    fi
}

started() { gone "${PROCESS[$1]}" || [ -S "$(socket_of "$1")" ]; }

# drained NAME: SIGTERM ends it with status 0.
drained() {
    APPLIANCE=${PROCESS[$1]}
    verdict "$1-drains" "SIGTERM ended it with status 0" appliance_stop || true
}

# document NAME [FILE]: what it says of itself now.
document() { SOCKET=$(socket_of "$1") status_document >"${2:-$ACCEPT_LOGS/$1.json}"; }

# now NAME COUNTER: a counter of it at this moment.
now() {
    document "$1"
    counter "$ACCEPT_LOGS/$1.json" "$2"
}

# of_connection NAME FIELD: the different values that its connections have there, one a line.
of_connection() {
    document "$1"
    jq -r ".lcores[].connections[].$2" "$ACCEPT_LOGS/$1.json" | sort -u
}

# nothing_held NAME: no connection, and no octet of memory, is in use.
nothing_held() {
    document "$1"
    jq -e '[.lcores[] | (.connections | length), .memory.in_use_bytes] | add == 0' "$ACCEPT_LOGS/$1.json" >/dev/null
}

# nothing_connected NAME: it has no connection.
nothing_connected() {
    document "$1" 2>/dev/null && jq -e '[.lcores[].connections | length] | add == 0' "$ACCEPT_LOGS/$1.json" >/dev/null
}
