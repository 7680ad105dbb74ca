# Starting, watching and ending the appliance in acceptance scripts; sourced after lib.sh.
# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts

APPLIANCE=       # its process id
URL=             # where NFS clients find what it serves, in libnfs form
STATUS_SOCKET=   # where `rpcrdmad status` asks it

# appliance_start NAME ARGUMENT...: starts `rpcrdmad run ARGUMENT...` and waits for the address that it prints.
appliance_start() {
    local name=$1 said=$ACCEPT_LOGS/$1.stdout
    shift
    STATUS_SOCKET=$ACCEPT_TMP/$name.sock
    "$RPCRDMAD" run --socket "$STATUS_SOCKET" "$@" </dev/null >"$said" 2>"$ACCEPT_LOGS/$name.stderr" &
    APPLIANCE=$!
    if ! await "$ANSWER_SECONDS" appliance_is_up "$said"; then
        tail -n 5 "$ACCEPT_LOGS/$name.stderr" >&2
        die "the appliance '$name' printed no address within $ANSWER_SECONDS s"
    fi
    URL=$(address_in "$said")
}

# The first address of a start-up message, without the punctuation around it.
address_in() { grep -oE 'nfs://[^[:space:]"'\''<>]+' "$1" | head -n 1; }

appliance_is_up() { gone "$APPLIANCE" || { [ -S "$STATUS_SOCKET" ] && [ -n "$(address_in "$1")" ]; }; }

# appliance_stop: SIGTERM drains it; it has to end by itself, with status 0.
appliance_stop() {
    local status=0
    kill -TERM "$APPLIANCE"
    await "$ANSWER_SECONDS" gone "$APPLIANCE" || { echo "still there $ANSWER_SECONDS s after SIGTERM" >&2; return 1; }
    wait "$APPLIANCE" || status=$?
    [ "$status" = 0 ] || { echo "ended with status $status" >&2; return 1; }
}

# counter NAME: a counter of the running appliance, summed over its lcores.
counter() {
    "$RPCRDMAD" status --json --socket "$STATUS_SOCKET" >"$ACCEPT_LOGS/status.json"
    jq -e "[.lcores[].counters.$1] | add" "$ACCEPT_LOGS/status.json"
}
