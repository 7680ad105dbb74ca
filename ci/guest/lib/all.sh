# Everything a run in the guest uses; sourced after ci/lib.sh.
# shellcheck shell=bash

. "$ROOT/ci/appliance.sh"
. "$ROOT/ci/guest/lib/enter.sh"
. "$ROOT/ci/guest/lib/devices.sh"
. "$ROOT/ci/guest/lib/nfs.sh"
. "$ROOT/ci/guest/lib/capture.sh"
. "$ROOT/ci/guest/lib/work.sh"
. "$ROOT/ci/guest/lib/appliance.sh"
. "$ROOT/ci/guest/lib/flows.sh"
. "$ROOT/ci/guest/lib/loads.sh"
