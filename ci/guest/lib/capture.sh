# Packets on the wire between the two devices, and what tshark makes of them; sourced after devices.sh.
# shellcheck shell=bash

CAPTURER=

# capture_start FILTER: from now on, all packets that match, whole.
capture_start() {
    tcpdump -i "$WIRE" -s 0 -B 65536 -U -w /dev/shm/wire.pcap "$1" 2>"$ACCEPT_LOGS/tcpdump" &
    CAPTURER=$!
    await "$ANSWER_SECONDS" grep -q 'listening on' "$ACCEPT_LOGS/tcpdump" || die "tcpdump does not start"
}

# capture_stop: true when not one packet was lost.
capture_stop() {
    kill -INT "$CAPTURER"
    wait "$CAPTURER" || true
    cp /dev/shm/wire.pcap "$ACCEPT_LOGS/"
    grep -q '^0 packets dropped by kernel' "$ACCEPT_LOGS/tcpdump"
}

# packets FILTER [FIELD]...: a line for each packet that matches, with those fields.
packets() {
    local filter=$1 field fields=()
    shift
    for field in "${@:-frame.number}"; do
        fields+=(-e "$field")
    done
    tshark -n -r "$ACCEPT_LOGS/wire.pcap" -Y "$filter" -T fields "${fields[@]}" 2>>"$ACCEPT_LOGS/tshark"
}

# how_many FILTER: packets that match.
how_many() { packets "$1" | wc -l; }
