# Debian's kernel package, fetched and unpacked into the cache without installing it; sourced by `build`.
#
# apt works here on lists, archives and sources of its own, so that neither root nor a change to the machine's
# configuration is needed. The mirror is the one that the machine uses already, or RPCRDMA_GUEST_MIRROR (for
# example http://deb.debian.org/debian on another distribution); the suite is the machine's own release where it
# has the series, else its backports.
# shellcheck shell=bash

KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
APT_OWN=()

# The first mirror in the configuration of apt that has the machine's own Debian release: "URI CODENAME".
mirror() {
    local id='' codename='' own
    # shellcheck source=/dev/null
    own=$(. /etc/os-release && echo "${ID:-} ${VERSION_CODENAME:-}")
    read -r id codename <<<"$own"
    if [ "$id" = debian ] && [ -z "${RPCRDMA_GUEST_MIRROR:-}" ]; then
        # shellcheck disable=SC2016 # apt's own variables
        apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 2>/dev/null \
            | awk -v codename="$codename" '$2 == codename { print; exit }'
    elif [ -n "${RPCRDMA_GUEST_MIRROR:-}" ]; then
        [ "$id" = debian ] || codename=bookworm
        echo "$RPCRDMA_GUEST_MIRROR $codename"
    fi
}

prepare_apt() {
    local uri codename
    read -r uri codename <<<"$(mirror)" || true
    [ -n "${codename:-}" ] || skipped "no Debian mirror among apt's sources (RPCRDMA_GUEST_MIRROR names one)"
    [ -f "$KEYRING" ] || skipped "no $KEYRING to check packages with (debian-archive-keyring)"
    mkdir -p "$CACHE"/apt/{lists,archives}/partial "$CACHE/packages"
    printf 'deb [signed-by=%s] %s %s main\n' "$KEYRING" "$uri" "$codename" "$KEYRING" "$uri" "$codename-backports" \
        >"$CACHE/apt/sources.list"
    APT_OWN=(-q -o "Dir::Etc::SourceList=$CACHE/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$CACHE/apt/lists" -o "Dir::Cache=$CACHE/apt" -o APT::Sandbox::User="$(id -un)"
        -o Acquire::Languages=none -o Acquire::Retries=3)
    apt-get "${APT_OWN[@]}" update || skipped "cannot reach the Debian mirror $uri"
}

# The newest release of the series that the lists know, as `uname -r` will say it.
newest_release() {
    apt-cache "${APT_OWN[@]}" pkgnames "linux-image-$SERIES" \
        | sed -nE "s/^linux-image-(${SERIES}[0-9.]*\+(deb|bpo)[0-9a-z.+]*-amd64|${SERIES}\.[0-9]+-amd64)\$/\1/p" | sort -V | tail -n 1
}

# package NAME: its file in the cache, fetched unless it is there.
package() {
    local found
    found=$(compgen -G "$CACHE/packages/${1}_*.deb" | head -n 1 || true)
    if [ -z "$found" ]; then
        (cd "$CACHE/packages" && apt-get "${APT_OWN[@]}" download "$1" >&2) || return 1
        found=$(compgen -G "$CACHE/packages/${1}_*.deb" | head -n 1)
    fi
    echo "$found"
}

# unpack NAME: its files below the kernel's root.
unpack() {
    local file
    file=$(package "$1") || return 1
    dpkg-deb -x "$file" "$KERNEL_ROOT"
}

kernel() {
    local release=$1
    [ -e "$KERNEL_ROOT/boot/vmlinuz-$release" ] || unpack "linux-image-$release" \
        || skipped "cannot fetch linux-image-$release"
    [ -e "$KERNEL_ROOT/lib/modules/$release/modules.dep.bin" ] || depmod -b "$KERNEL_ROOT" "$release"
    [ "$VMLINUX" -nt "$KERNEL_ROOT/boot/vmlinuz-$release" ] \
        || "$GUEST/vmlinux" "$KERNEL_ROOT/boot/vmlinuz-$release" "$VMLINUX"
}
