# Everything a run in the guest uses; sourced after ci/lib.sh.
# shellcheck shell=bash

SOCKETS=/run
. "$ROOT/ci/appliance.sh"
. "$ROOT/ci/guest/lib/enter.sh"
. "$ROOT/ci/guest/lib/devices.sh"
. "$ROOT/ci/guest/lib/nfs.sh"
. "$ROOT/ci/guest/lib/capture.sh"
. "$ROOT/ci/guest/lib/work.sh"
. "$ROOT/ci/appliances.sh"
. "$ROOT/ci/guest/lib/flows.sh"
. "$ROOT/ci/guest/lib/loads.sh"
