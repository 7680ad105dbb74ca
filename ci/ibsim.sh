# A subnet without hardware: OpenSM over ibsim, to be disturbed at will; sourced after lib.sh.
#
# ibsim plays switch and adapters of ci/ibsim/net, and whoever is to sit at one of them is started by `at_node`: a library
# before libc's then stands in for the kernel's umad. OpenSM is the real one. Runs do not see each other.
# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts

SUBNET=$ACCEPT_TMP/subnet            # where simulated programs run: each writes a sysfs of its own into its working folder
JUDGE=Node3                          # whose seat saquery takes; nobody else is to sit there
export IBSIM_SOCKNAME=rpcrdma-$$     # names abstract sockets: this subnet is this script's
STAND_IN=
CONSOLE=                             # descriptor of the simulator's console
IBSIM=                               # its process
declare -A MANAGER=()                # processes of subnet managers, by node
mkdir -p "$SUBNET"

# has_simulator: skips the script unless all of it is installed.
has_simulator() {
    PATH=$PATH:/usr/sbin:/sbin
    need ibsim opensm saquery jq
    STAND_IN=$(compgen -G '/usr/lib/*/umad2sim/libumad2sim.so' | head -n 1) || skip "no libumad2sim on this machine"
    [[ $(ldconfig -p) == *libibumad.so.3* ]] || skip "no libibumad.so.3 on this machine"
}

# at_node NODE COMMAND...: COMMAND as a program of that node. A program that is killed keeps its place in the simulator, which has ten.
at_node() {
    (
        seat "$1"
        exec "${@:2}"
    )
}

# seat NODE: in a subshell: what it becomes by `exec` is a program of that node, under the subshell's process id.
seat() {
    cd "$SUBNET" && export SIM_HOST=$1 LD_PRELOAD=$STAND_IN
}

# subnet_start: cables and switch, nobody there yet.
subnet_start() {
    mkfifo "$SUBNET/console"
    # For reading too: the simulator ends at the end of its console.
    exec {CONSOLE}<>"$SUBNET/console"
    touch "$ACCEPT_LOGS/ibsim"
    (
        cd "$SUBNET" || exit
        exec ibsim -s "$ROOT/ci/ibsim/net" <&"$CONSOLE"
    ) >"$ACCEPT_LOGS/ibsim" 2>&1 &
    IBSIM=$!
    await "$ANSWER_SECONDS" grep -q 'simulator ready' "$ACCEPT_LOGS/ibsim" || die "the simulator does not start"
}

# console COMMAND: `Unlink "Node1"`, `ReLink "Node1"`, `Error "Node1" 30` (of a hundred packets) and the like.
console() { echo "$1" >&"$CONSOLE"; }

# manager_start NODE [PRIORITY]: a subnet manager there, up: as master, or as standby of another one.
manager_start() {
    local node=$1 log=$ACCEPT_LOGS/opensm.$1 folder=$SUBNET/opensm.$1 before
    # What a manager knew when it ended is not to help the next one.
    rm -rf "$folder" && mkdir -p "$folder"
    touch "$log"
    before=$(settled_times "$node")
    (
        seat "$node"
        export OSM_TMP_DIR=$folder OSM_CACHE_DIR=$folder
        exec opensm -F "$ROOT/ci/ibsim/opensm.conf" -P "${PARTITIONS:-$ROOT/ci/ibsim/partitions.conf}" -p "${2:-5}" -f "$log"
    ) >"$log.stdout" 2>&1 &
    MANAGER[$node]=$!
    await "$ANSWER_SECONDS" settled_again "$node" "$before" || die "the subnet manager at $node does not come up"
}

settled_times() { grep -cE 'SUBNET UP|Entering STANDBY state' "$ACCEPT_LOGS/opensm.$1" || true; }
settled_again() { [ "$(settled_times "$1")" -gt "$2" ]; }
is_master() { [ "$(grep -oE 'SUBNET UP|Entering STANDBY state' "$ACCEPT_LOGS/opensm.$1" | tail -n 1)" = 'SUBNET UP' ]; }

# manager_kill NODE: it ends without a word. manager_end NODE: it takes its leave, of the simulator too.
manager_kill() { manager_signal KILL "$1"; }
manager_end() { manager_signal TERM "$1"; }

manager_signal() {
    kill "-$1" "${MANAGER[$2]}"
    await "$ANSWER_SECONDS" gone "${MANAGER[$2]}" || die "the subnet manager at $2 does not end"
    wait "${MANAGER[$2]}" 2>/dev/null || true
}

# manager_pause NODE, manager_resume NODE: it answers nothing meanwhile.
manager_pause() { kill -STOP "${MANAGER[$1]}"; }
manager_resume() { kill -CONT "${MANAGER[$1]}"; }

# --- programs that are told what to do, line by line -----------------------------------------------------------------

declare -A TELL=() HEAR=() PROGRAM=()  # descriptors and processes, by name

# program NAME NODE COMMAND...: starts it; it reads its commands from `tell`, and what it says goes to `hear`.
program() {
    local name=$1 node=$2 descriptor way
    shift 2
    for way in in out; do
        rm -f "$SUBNET/$name.$way"
        mkfifo "$SUBNET/$name.$way"
    done
    (
        seat "$node"
        exec "$@"
    ) <"$SUBNET/$name.in" >"$SUBNET/$name.out" 2>>"$ACCEPT_LOGS/$name.stderr" &
    PROGRAM[$name]=$!
    exec {descriptor}>"$SUBNET/$name.in"
    TELL[$name]=$descriptor
    exec {descriptor}<"$SUBNET/$name.out"
    HEAR[$name]=$descriptor
}

tell() { echo "${*:2}" >&"${TELL[$1]}"; }

# hear NAME: the next line it says.
hear() {
    local line
    IFS= read -r -t "$ANSWER_SECONDS" line <&"${HEAR[$1]}" || { echo "nothing from $1"; return 1; }
    echo "$line"
}

# ask NAME COMMAND...: one line for another.
ask() {
    tell "$@"
    hear "$1"
}

# program_end NAME: it has no more to do, and ends by itself. By its word for it: programs started later have its input open too.
program_end() {
    tell "$1" end
    await "$ANSWER_SECONDS" gone "${PROGRAM[$1]}" || { echo "$1 does not end" >&2; return 1; }
    wait "${PROGRAM[$1]}" || { echo "$1 ended with status $?" >&2; return 1; }
}

# --- the judge: what the subnet manager itself has on record ---------------------------------------------------------

# judge ARGUMENT...: saquery, trusted, with a limit of time.
judge() { at_node "$JUDGE" timeout "$ANSWER_SECONDS" saquery --smkey 1 "$@" 2>>"$ACCEPT_LOGS/saquery"; }

# members MGID: the members of a group, a line "PORT-GID JOINSTATE" each; sorted. A simulated network cuts what does not fit in
# one MAD: of more than three members only three are told of.
members() {
    judge --mgid "$1" MCMR | awk '
        sub(/^[ \t]*PortGid\.+/, "") { port = $1 }
        sub(/^[ \t]*JoinState\.+/, "") { print port, $1 }' | sort
}

# is_member MGID PORT-GID JOINSTATE, is_nobody MGID PORT-GID, exists MGID, exists_not MGID: on record now
is_member() { [[ $'\n'$(members "$1")$'\n' == *$'\n'"$2 $3"$'\n'* ]]; }
is_nobody() { [[ $'\n'$(members "$1") != *$'\n'"$2 "* ]]; }
exists() { at_node "$JUDGE" timeout "$ANSWER_SECONDS" saquery --mgid "$1" MCMR 2>>"$ACCEPT_LOGS/saquery" | grep -q MGID; }
exists_not() { ! exists "$1"; }

# subscriptions PORT-GID: the traps it is subscribed to, on one line; sorted.
subscriptions() {
    judge IIR "$1" | awk 'sub(/^[ \t]*trap_num\.+/, "") { print $1 }' | sort -n | paste -sd ' '
}
