# Installing packages where that is ours to do: as root, with apt. Sourced by `.ci/run` and `ci/guest/build`.
# shellcheck shell=bash

# Packages bring services that start when installed: no concern of ours, so a policy forbids it meanwhile.
apt_install() {
    local policy=/usr/sbin/policy-rc.d ours=
    [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" && ours=$policy; }
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" || true
    [ -z "$ours" ] || rm -f "$ours"
}

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# install_packages NAME...: those that are missing, or else says which and why not. Never fails: whatever needs what
# is missing finds out for itself, and says so.
install_packages() {
    local package missing=()
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    [ "${#missing[@]}" -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
        echo "not installing ${missing[*]}: needs root and apt; what depends on them is skipped"
        return 0
    fi
    echo "installing ${missing[*]}"
    apt-get update || true
    apt_install "${missing[@]}"
    # One package that a release lacks must not keep the others away.
    for package in "${missing[@]}"; do
        is_installed "$package" || apt_install "$package"
        is_installed "$package" || echo "could not install $package"
    done
}
