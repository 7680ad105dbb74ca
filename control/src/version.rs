//! What this build is.

use rpcrdma_config::plan::Fabric;
use std::sync::LazyLock;

/// The version and the commit it was built from: `0.1.0 (d94b3ddc6f21)`.
pub const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("RPCRDMAD_COMMIT"),
    ")"
);

/// A line about devices, where somebody asks: to look loads libraries.
fn devices() -> String {
    match std::env::args_os().any(|argument| argument == "--version") {
        true => format!("\n{}", crate::command::rdma::presence()),
        false => String::new(),
    }
}

/// What `--version` says: version, commit, the fabrics, whether there are devices,
/// and whatever else is built in.
#[must_use]
pub fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let fabrics: Vec<_> = Fabric::ALL.iter().map(|fabric| fabric.name()).collect();
        let dpdk = crate::dpdk::version().map(|dpdk| format!("\n{dpdk}"));
        let dpdk = dpdk.unwrap_or_default();
        format!(
            "{VERSION}\nfabrics: {}{}{dpdk}",
            fabrics.join(", "),
            devices()
        )
    });
    &TEXT
}
