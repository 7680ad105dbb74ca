//! The `rpcrdmad` binary from outside: its commands, their output and exit codes, its signals.

mod running;
mod signals;
#[path = "../support/mod.rs"]
mod support;

use rpcrdmad::status::Document;
use running::Running;
use serde_json::Value;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::octets::{One, Two, head, null, success};
use support::tcp::{Server, Stream, nfs_null};
use support::{PATIENCE, octets, until};

fn rpcrdmad(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rpcrdmad"));
    command.args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    let output = rpcrdmad(arguments).stdin(Stdio::null()).output();
    output.expect("the program starts")
}

/// The output of a command that reads these lines.
fn output_for(arguments: &[&str], lines: &str) -> Output {
    let mut child = rpcrdmad(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(lines.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn text(octets: &[u8]) -> &str {
    std::str::from_utf8(octets).expect("text")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// A back and a front before this server.
fn gateways(backend: SocketAddr) -> String {
    format!(
        "[runtime]\nmemory_mib = 32\nconnections_max = 16\nhugepages = 'off'\n\
         [[back]]\nname = 'back'\nlisten = '127.0.0.1:0'\nupstream = 'nfs'\n\
         [[front]]\nname = 'nfs'\nlisten = 'nfs'\n\
         [[front.backend]]\nprograms = 'others'\naddress = '{backend}'\n"
    )
}

#[test]
fn the_self_test_passes_and_shows_why() {
    let said = output(&["run", "--self-test"]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let report = text(&said.stdout);
    for word in [
        "sha256",
        "remote_invalidations",
        "p50 us",
        "p99 us",
        "WRITE",
        "READ",
    ] {
        assert!(report.contains(word), "{word} in\n{report}");
    }
    let last = report.lines().last().expect("a verdict");
    assert_eq!(last, "passed: 7 files, 68231169 octets in and out");
}

#[test]
fn the_self_test_for_programs() {
    let said = output(&["run", "--self-test", "--json"]);
    assert_eq!(said.status.code(), Some(0));
    let report: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    assert_eq!(report["passed"], true);
    let files = report["files"].as_array().expect("a list");
    let sizes: Vec<u64> = files.iter().filter_map(|it| it["bytes"].as_u64()).collect();
    assert_eq!(sizes, [0, 1, 4095, 4096, 65_536, 1_048_577, 64 << 20]);
    for file in files {
        assert_eq!(file["sha256_written"], file["sha256_on_disk"]);
        assert_eq!(file["sha256_written"], file["sha256_read"]);
    }
    let counters = report["counters"].as_array().expect("a list");
    let counter = |name: &str| {
        let found = counters.iter().find(|it| it["name"] == name);
        found.and_then(|it| it["count"].as_u64()).expect(name)
    };
    // What is too short to be reduced goes inline: all else was placed directly.
    assert!(counter("read_bytes") > 65 << 20, "WRITE by RDMA Read");
    assert!(counter("remote_invalidations") > 100);
    assert_eq!(counter("local_invalidations"), 0);
}

#[test]
fn a_right_file_is_right() {
    for name in [
        "embedded.toml",
        "every-key.toml",
        "minimal.toml",
        "service.toml",
    ] {
        let file = format!("{}/../config/examples/{name}", env!("CARGO_MANIFEST_DIR"));
        let said = output(&["check", &file]);
        assert_eq!(said.status.code(), Some(0), "{said:?}");
        let said = output(&["check", "--print", &file]);
        assert_eq!(said.status.code(), Some(0));
        assert!(text(&said.stdout).contains("RLIMIT_MEMLOCK"), "{name}");
    }
}

#[test]
fn a_wrong_file_is_told_all_that_is_wrong() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let file = scratch.path().join("wrong.toml");
    let wrong = "[[service]]\nname = 's'\nlisten = 's'\ncredits = 4\n[runtime]\nidle = 'never'\n";
    std::fs::write(&file, wrong).expect("a file");
    for arguments in [&["check"][..], &["run", "--config"]] {
        let said = output(&[arguments, &[path(&file)]].concat());
        assert_eq!(said.status.code(), Some(1), "{said:?}");
        let lines = format!("{}{}", text(&said.stdout), text(&said.stderr));
        for place in [":4:1: ", ":6:"] {
            let place = format!("{}{place}", path(&file));
            assert!(lines.contains(&place), "{place} in\n{lines}");
        }
    }
    let absent = output(&["check", "/nonexistent.toml"]);
    assert_eq!(absent.status.code(), Some(1));
}

fn in_hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[test]
fn decode_says_what_a_responder_would() {
    let good = head(Two, 7).with(&null(7));
    let long = octets::segment(1, 4, 0);
    let bad = head(One, 8).read(44, long).with(&null(8));
    let lines = format!(
        "# a comment\n\n{}\n{}\n{}\n",
        in_hex(&good),
        in_hex(&bad),
        in_hex(&bad[..27])
    );
    let said = output_for(&["decode", "--json"], &lines);
    let objects: Vec<Value> = text(&said.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object a line"))
        .collect();
    assert_eq!(objects.len(), 3, "{said:?}");
    let seen = |at: usize| {
        let object = &objects[at];
        let words = ["accept", "reject", "answer"].map(|key| object[key].to_string());
        words.join(" ")
    };
    assert_eq!(seen(0), r#"true null "none""#);
    assert_eq!(seen(1), r#"false "position-beyond-body" "ERR_CHUNK""#);
    assert_eq!(seen(2), r#"false "short" "drop""#);
    assert_eq!(
        (&objects[0]["xid"], &objects[0]["version"]),
        (&7.into(), &2.into())
    );
    let people = output_for(&["decode"], &lines);
    assert!(text(&people.stdout).contains("position-beyond-body"));
}

#[test]
fn decode_wants_hexadecimal() {
    let said = output_for(&["decode", "--json"], "0000000z\n");
    assert_ne!(said.status.code(), Some(0), "{said:?}");
}

#[test]
fn status_of_a_running_one() {
    let server = Server::new();
    let running = Running::start(&gateways(server.address()));
    let mut client = Stream::to(running.back());
    client.send(&nfs_null(1));
    let mut backend = server.accept();
    assert_eq!(backend.record(), Some(nfs_null(1)));
    let status = running.status().expect("it runs");
    assert_eq!(status.process, running.child.id());
    let connections = status.lcores.iter().flat_map(|lcore| &lcore.connections);
    let mut seen: Vec<_> = connections
        .map(|it| (it.name.as_str(), it.version, it.credits_used))
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [("back", Some(2), 1), ("nfs", Some(2), 1)]);
    let table = output(&["status", "--socket", path(&running.socket)]);
    assert_eq!(table.status.code(), Some(0));
    let table = text(&table.stdout);
    for word in ["back", "nfs", "serving"] {
        assert!(table.contains(word), "{word} in\n{table}");
    }
    backend.send(&success(1));
    assert_eq!(client.record(), Some(success(1)));
    client.close();
    running.terminate();
    assert_eq!(running.end().status.code(), Some(0));
}

/// Nobody reads the log of a running one here: it must hold more lines than a pipe does, or lose
/// them, but not wait.
#[test]
fn a_log_that_nobody_reads_holds_up_nothing() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let running = Running::with(scratch, &["--log", "debug"]);
    let back = running.back();
    for _ in 0..600 {
        Stream::to(back).close();
    }
    let closes = |document: &Document| -> u64 {
        let lcores = document.lcores.iter();
        lcores.map(|lcore| lcore.counters["loop_closes"]).sum()
    };
    // Two connections for each client: the back's and the front's.
    until("all of them gone", || {
        running.status().filter(|it| closes(it) == 1200)
    });
    running.terminate();
    assert!(running.ends_within(PATIENCE), "and it can still be ended");
}

#[test]
fn a_full_standard_output_is_an_error_and_no_panic() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let output = rpcrdmad(&["run", "--print"])
        .stdout(full.expect("a device that is always full"))
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert!(
        errors.contains("cannot write to standard output"),
        "{errors}"
    );
}

/// A standard error that is full, or whose reader is gone, takes nothing away but the words.
#[test]
fn a_lost_standard_error_is_no_panic() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let file = scratch.path().join("wrong.toml");
    std::fs::write(&file, "wrong = 1\n").expect("a file");
    let file = path(&file);
    let commands = [
        &["check", file][..],
        &["run", "--config", file],
        &["status", "--socket", "/nowhere"],
    ];
    let full = || std::fs::File::options().write(true).open("/dev/full");
    for command in commands {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        for error in [
            Stdio::from(full().expect("a device that is always full")),
            writer.into(),
        ] {
            let output = rpcrdmad(command)
                .stdin(Stdio::null())
                .stderr(error)
                .output();
            let code = output.expect("the program starts").status.code();
            assert_eq!(code, Some(1), "{command:?}");
        }
    }
}

#[test]
fn status_of_nobody() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let socket = scratch.path().join("nobody.sock");
    let said = output(&["status", "--socket", path(&socket)]);
    assert_ne!(said.status.code(), Some(0));
    assert!(text(&said.stderr).contains("nobody.sock"), "{said:?}");
}

/// Without a file it serves a scratch directory, says how to reach it, and removes it at the end.
#[test]
fn run_without_a_file_says_how_to_reach_it() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let running = Running::with(scratch, &[]);
    let port = running.back().port();
    running.terminate();
    let said = running.end();
    assert_eq!(said.status.code(), Some(0));
    let advice = text(&said.stdout);
    for word in ["nfs://127.0.0.1/", "mount ", &format!("nfsport={port}")] {
        assert!(advice.contains(word), "{word} in\n{advice}");
    }
    let directory = advice
        .lines()
        .find_map(|line| line.strip_prefix("serving ")?.split(',').next());
    assert!(!Path::new(directory.expect("it says so")).exists());
}

/// Idle, with the default policy, it takes less than a fiftieth of one processor.
#[test]
fn an_idle_appliance_takes_next_to_nothing() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let running = Running::with(scratch, &[]);
    // Connections that stand and say nothing belong to an idle appliance.
    let mut client = Stream::to(running.back());
    client.send(&nfs_null(1));
    assert_eq!(client.record(), Some(success(1)));
    let (began, before) = (Instant::now(), running.processor_time());
    assert!(!running.ends_within(Duration::from_secs(2)), "it goes on");
    let taken = running.processor_time() - before;
    let limit = began.elapsed() / 50;
    assert!(taken < limit, "{taken:?} of {limit:?}");
}

#[test]
fn devices_are_listed_or_their_absence_is_told_in_a_line() {
    let output = output(&["devices"]);
    let (listed, told) = (text(&output.stdout), text(&output.stderr));
    if output.status.success() {
        assert!(listed.contains("queue pairs"), "{listed}");
        return;
    }
    assert_eq!(output.status.code(), Some(1));
    assert!(told.starts_with("no RDMA device: "), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    let version = self::output(&["--version"]);
    assert!(text(&version.stdout).contains(told.trim_end()));
}

#[test]
fn an_appliance_without_a_device_says_so_and_does_not_run() {
    if output(&["devices"]).status.success() {
        eprintln!("SKIPPED: there is an RDMA device here");
        return;
    }
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let file = scratch.path().join("verbs.toml");
    let service = "[[service]]\nname = 's'\nfabric = 'verbs'\nlisten = '[::]:20049'\n";
    std::fs::write(&file, service).expect("room for a file");
    let output = output(&["run", "--config", file.to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(
        told.contains("fabric = \"verbs\": no RDMA device: "),
        "{told}"
    );
}
