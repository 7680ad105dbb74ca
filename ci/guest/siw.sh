# siw, the software iWARP driver, built out of tree for the guest's kernel: Debian leaves it out of its own. Sourced
# by `build`. A guest without it is still a guest: what cannot be built is said in the cache's `siw` file.
# shellcheck shell=bash

# siw RELEASE: leaves the module among the kernel's own.
siw() {
    local release=$1
    local headers=$KERNEL_ROOT/usr/src/linux-headers-$release module=$KERNEL_ROOT/lib/modules/$release/updates/siw.ko
    [ ! -e "$module" ] || return 0
    local source=$CACHE/siw-source
    siw_headers "$release" && siw_source "$source" || return 1
    make -s -C "$headers" M="$source" CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= modules || return 1
    install -D -m 644 "$source/siw.ko" "$module"
    strip --strip-debug "$module"
    depmod -b "$KERNEL_ROOT" "$release"
    # 100 MB of headers and source have done their work.
    rm -rf "$source" "${KERNEL_ROOT:?}/usr"
}

# The headers look for each other below /usr; here they are below the kernel's root.
siw_headers() {
    local release=$1 kbuild file headers=$KERNEL_ROOT/usr/src/linux-headers-$1
    kbuild=$(apt-cache "${APT_OWN[@]}" depends "linux-headers-$release" | sed -n 's/^ *Depends: \(linux-kbuild-.*\)/\1/p')
    unpack "linux-headers-$release" && unpack "linux-headers-${release%-amd64}-common" && unpack "$kbuild" || return 1
    for file in "$headers/Makefile" "$headers/.kernelvariables"; do
        [ ! -f "$file" ] || sed -i -E "s#(^|[ =])/usr/(src|lib)/linux-#\1$KERNEL_ROOT/usr/\2/linux-#g" "$file"
    done
    find "$headers" -maxdepth 1 -type l -lname '/usr/*' | while read -r file; do
        ln -sfn "$KERNEL_ROOT$(readlink "$file")" "$file"
    done
}

# siw_source FOLDER: the driver's folder of the kernel's source package.
siw_source() {
    local archive
    archive=$(package "linux-source-$SERIES") || return 1
    mkdir -p "$1"
    dpkg-deb --fsys-tarfile "$archive" | tar -xOf - "./usr/src/linux-source-$SERIES.tar.xz" \
        | tar -xJf - -C "$1" --strip-components=5 "linux-source-$SERIES/drivers/infiniband/sw/siw"
}
