# Nodes of a simulated subnet that bring up links and join groups; sourced after ibsim.sh. Whatever plays a node is started, told and
# asked here alone: the scripts see names, links, groups and JSON.
# shellcheck shell=bash

# Times of a node, short enough to wait for.
NODE_TIMES=(verify_ms=1000 pause_ms=1000 reply_ms=200 linger_ms=1000 cache_ms=2000)
NODE=                                # the program

# node_start NAME NODE: a node without links.
node_start() {
    NODE=${NODE:-$(example node)}
    program "$1" "$2" "$NODE" "${NODE_TIMES[@]}"
}

# node_link NAME P_KEY v4|v6 [create] [router]: says what its number is, or why there is none.
node_link() { ask "$1" link "${@:2}"; }

# node_join NAME LINK ADDRESS, node_leave NAME LINK ADDRESS; node_send NAME LINK ADDRESS: says what became of a datagram.
node_join() { ask "$1" join "$2" "$3" >>"$ACCEPT_LOGS/$1.said"; }
node_leave() { ask "$1" leave "$2" "$3" >>"$ACCEPT_LOGS/$1.said"; }
node_send() { ask "$1" send "$2" "$3"; }

# node_close NAME: it leaves everything, and ends.
node_close() {
    [ "$(ask "$1" close)" = closed ] || return 1
    program_end "$1"
}

# of_node NAME FILTER: what it says of itself, by jq.
of_node() { ask "$1" state | tee "$ACCEPT_LOGS/$1.json" | jq -r "$2"; }

# --- conditions, for `await` and `verdict` ---------------------------------------------------------------------------------

# link_is NAME LINK STATE [ERROR]
link_is() {
    local is
    is=$(of_node "$1" ".links[$2] | .state + \" \" + (.error // \"\")")
    [[ $is == "$3 ${4:-}"* ]]
}

# joined NAME MGID: it believes to be a member, and has its queue pair attached.
joined() { [ "$(of_node "$1" ".groups[] | select(.mgid == \"$2\") | .attached and .held != 0 and .doubt == 0")" = true ]; }

# is_out NAME MGID: it believes to have no part in a group.
is_out() { [ -z "$(of_node "$1" ".groups[] | select(.mgid == \"$2\" and .held + .doubt != 0) | .mgid")" ]; }

# sent_to NAME MGID: where its last datagram went.
sent_to() { [ "$(of_node "$1" .last_frame)" = "$2" ]; }

# refused NAME KIND: a rule has kept it from something.
refused() { [ "$(of_node "$1" ".refusals.$2 // 0")" -gt 0 ]; }

# is_subscribed PORT-GID: to groups that come and go.
is_subscribed() { [ "$(subscriptions "$1")" = "66 67" ]; }

# agrees NAME PORT-GID: what it believes to be a member of, and what the judge says, are the same.
agrees() {
    local believed mgid held
    believed=$(of_node "$1" '.groups[] | select(.held != 0 or .doubt != 0) | "\(.mgid) \(.held) \(.doubt)"')
    [ -n "$believed" ] || return 1
    while read -r mgid held doubt; do
        [ "$doubt" = 0 ] || return 1
        is_member "$mgid" "$2" "$(printf '0x%x' "$held")" || return 1
    done <<<"$believed"
}

# soon NAME COMMAND...: the verdict that COMMAND is true within a few seconds.
soon() {
    local name=$1
    shift
    verdict "$name" "$*" await 8 "$@" || true
}
