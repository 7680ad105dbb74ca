//! The self-test against the embedded server directly, with nothing in between.

use super::*;
use crate::export::{EXPORT_PATH, Export};
use std::net::{Ipv4Addr, TcpListener};

fn serve(directory: &Path) -> Export {
    Export::start(directory, (Ipv4Addr::LOCALHOST, 0).into(), false).unwrap()
}

fn plan(export: &Export, directory: &Path) -> Plan {
    let address = SocketAddr::from(export.address());
    Plan::new(address, address, EXPORT_PATH, Some(directory.to_owned()))
}

#[test]
fn passes_against_the_embedded_server() {
    let directory = tempfile::tempdir().unwrap();
    let export = serve(directory.path());
    let mut plan = plan(&export, directory.path());
    // The longest file is for optimised builds: here a tenth of it will do.
    *plan.lengths.last_mut().unwrap() = 6 << 20;
    let report = run(&plan, &Progress::silent());
    assert!(report.passed, "{report}");
    assert_eq!(report.files.len(), LENGTHS.len());
    assert!(
        report
            .files
            .iter()
            .all(|file| file.sha256_on_disk.is_some())
    );
    let reads = report
        .operations
        .iter()
        .find(|report| report.operation == "READ")
        .unwrap();
    assert!(reads.count >= 6 + 2, "{reads:?}");
    // Nothing is left behind.
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn notices_another_file_on_disk() {
    let (served, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let export = serve(served.path());
    let scratch = other
        .path()
        .join(format!("self-test-{}", std::process::id()));
    std::fs::create_dir(&scratch).unwrap();
    std::fs::write(scratch.join("4096-octets"), [0; 4096]).unwrap();
    let mut plan = plan(&export, other.path());
    plan.lengths = vec![4096];
    let report = run(&plan, &Progress::silent());
    assert!(!report.passed);
    assert_eq!(report.failures, ["4096-octets: the contents differ"]);
    assert!(report.to_string().contains("DIFFERENT"));
}

#[test]
fn a_server_that_hangs_up_is_a_failure_and_not_a_wait() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let peer = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let report = run(
        &Plan::new(address, address, EXPORT_PATH, None),
        &Progress::silent(),
    );
    peer.join().unwrap();
    assert!(!report.passed);
    assert!(
        report.failures[0].contains("cannot mount"),
        "{:?}",
        report.failures
    );
}

#[test]
fn json_has_sums_and_percentiles() {
    let directory = tempfile::tempdir().unwrap();
    let export = serve(directory.path());
    let mut plan = plan(&export, directory.path());
    plan.lengths = vec![1];
    let report = serde_json::to_value(run(&plan, &Progress::silent())).unwrap();
    assert_eq!(report["passed"], true);
    assert_eq!(
        report["files"][0]["sha256_written"],
        report["files"][0]["sha256_on_disk"]
    );
    assert!(report["operations"][0]["p99_ns"].is_u64());
}

#[test]
fn a_read_only_export_refuses_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let export = Export::start(directory.path(), (Ipv4Addr::LOCALHOST, 0).into(), true).unwrap();
    let report = run(&plan(&export, directory.path()), &Progress::silent());
    assert_eq!(report.failures, ["MKDIR: NFS3ERR_ROFS"]);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn the_embedded_server_listens_on_loopback_alone() {
    let directory = tempfile::tempdir().unwrap();
    for address in ["0.0.0.0:0", "[::1]:0", "192.0.2.1:0"] {
        let error = Export::start(directory.path(), address.parse().unwrap(), false).unwrap_err();
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::AddrNotAvailable,
            "{address}"
        );
    }
}
