//! Compiles the shim against the system's DPDK, where the feature asks for it.

#[cfg(not(feature = "libdpdk"))]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}

#[cfg(feature = "libdpdk")]
fn main() {
    for source in ["shim.h", "eal.c", "memory.c", "port.c", "telemetry.c"] {
        println!("cargo::rerun-if-changed=shim/{source}");
    }
    // Of its libraries only these are linked: the drivers are plug-ins that EAL loads itself.
    let dpdk = match pkg_config::Config::new()
        .atleast_version("22.11")
        .cargo_metadata(false)
        .probe("libdpdk")
    {
        Ok(dpdk) => dpdk,
        Err(error) => {
            println!("cargo::error=DPDK 22.11 or newer is not here, or not its headers: {error}");
            println!(
                "cargo::error=install libdpdk-dev (Debian) or dpdk-devel (Fedora), or build without `dpdk`"
            );
            return;
        }
    };
    cc::Build::new()
        .files([
            "shim/eal.c",
            "shim/memory.c",
            "shim/port.c",
            "shim/telemetry.c",
        ])
        .includes(&dpdk.include_paths)
        .define("_GNU_SOURCE", None)
        .std("c11")
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("rpcrdmad_dpdk_shim");
    for path in &dpdk.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    for library in [
        "rte_eal",
        "rte_ethdev",
        "rte_mbuf",
        "rte_mempool",
        "rte_ring",
        "rte_telemetry",
    ] {
        println!("cargo::rustc-link-lib={library}");
    }
}
