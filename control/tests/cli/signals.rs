//! What SIGTERM and SIGHUP do.

use crate::running::Running;
use crate::support::octets::success;
use crate::support::tcp::{Server, Stream, nfs_null, nfs_read, nfs_read_reply};
use crate::support::{octets, until};
use crate::{gateways, path, text};
use rpcrdmad::status::State;
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Signal, kill_process};

/// SIGTERM: no new connections, the Call in flight is answered, then the end, in good order.
#[test]
fn sigterm_drains() {
    let server = Server::new();
    let running = Running::start(&gateways(server.address()));
    let address = running.back();
    let mut client = Stream::to(address);
    client.send(&nfs_read(5, 100_000));
    let mut backend = server.accept();
    assert_eq!(backend.record(), Some(nfs_read(5, 100_000)));
    running.terminate();
    until("a closed door", || {
        std::net::TcpStream::connect(address).is_err().then_some(())
    });
    let reply = nfs_read_reply(5, &octets::payload(100_000, 1));
    backend.send(&reply);
    assert!(client.record() == Some(reply), "answered");
    assert_eq!(client.record(), None, "then closed");
    let said = running.end();
    assert_eq!(said.status.code(), Some(0), "{said:?}");
}

/// A second signal does not wait for the Call.
#[test]
fn a_second_signal_ends_at_once() {
    let server = Server::new();
    let running = Running::start(&gateways(server.address()));
    let mut client = Stream::to(running.back());
    client.send(&nfs_null(5));
    let mut backend = server.accept();
    assert_eq!(backend.record(), Some(nfs_null(5)));
    running.terminate();
    until("draining", || {
        let status = running.status()?;
        (status.state == State::Draining).then_some(())
    });
    running.terminate();
    assert_eq!(client.record(), None, "no answer");
    assert_eq!(running.end().status.code(), Some(0));
}

/// SIGHUP: a wrong file is told all that is wrong, and changes nothing; of a right one that is taken
/// which can be, and the rest is named.
#[test]
fn sighup_has_the_file_read_again() {
    let server = Server::new();
    let right = gateways(server.address());
    let running = Running::start(&right);
    let mut client = Stream::to(running.back());
    client.send(&nfs_null(1));
    let mut backend = server.accept();
    assert_eq!(backend.record(), Some(nfs_null(1)));

    let refused = running.reread(&format!("{right}[transport]\ncredit = 4\n"));
    let problem = refused.reloads.last_refusal.expect("one problem");
    let place = format!("{}:16:1: transport.credit = 4: ", path(&running.file()));
    assert!(problem.starts_with(&place), "{problem}");

    let more = "[transport]\ncredits = 8\n[runtime]\nlog = 'error'\n";
    let changed = right.replace("[runtime]\n", more).replace("= 32", "= 64");
    let taken = running.reread(&changed).reloads;
    assert_eq!(
        (taken.taken, taken.refused, taken.last_refusal),
        (1, 1, None)
    );
    assert_eq!(taken.restart, ["runtime.memory_mib"]);

    backend.send(&success(1));
    assert_eq!(client.record(), Some(success(1)));
    client.close();
    running.terminate();
    let said = running.end();
    assert_eq!(said.status.code(), Some(0));
    let log = text(&said.stderr);
    for line in [
        "configuration refused",
        &place,
        "front nfs: transport.credits 64 -> 8; back back: ",
        "takes a restart: runtime.memory_mib",
    ] {
        assert!(log.contains(line), "{line} in\n{log}");
    }
    assert!(
        !log.contains("draining"),
        "logged as little as it says:\n{log}"
    );
}

/// A pipe where its file was does not hold it up, and neither do calls to end it.
#[test]
fn sighup_with_a_pipe_for_a_file_is_refused() {
    let server = Server::new();
    let running = Running::start(&gateways(server.address()));
    let file = running.file();
    std::fs::remove_file(&file).expect("its file");
    mkfifoat(CWD, &file, Mode::RUSR | Mode::WUSR).expect("a pipe");
    kill_process(running.pid(), Signal::HUP).expect("it runs");
    let problem = until("a refusal", || running.status()?.reloads.last_refusal);
    assert!(problem.contains(": is not a regular file; "), "{problem}");
    running.terminate();
    assert_eq!(running.end().status.code(), Some(0));
}

/// What the command line fixes does not change, nor is it said to.
#[test]
fn sighup_changes_no_more_than_it_says() {
    let server = Server::new();
    let right = gateways(server.address());
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let file = scratch.path().join("appliance.toml");
    std::fs::write(&file, &right).expect("a file");
    let options = ["--log", "info", "--config", path(&file)];
    let running = Running::with(scratch, &options);
    let noisy = right.replace("[runtime]\n", "[runtime]\nlog = 'debug'\n");
    assert_eq!(running.reread(&noisy).reloads.taken, 1);
    let larger = noisy.replace("= 32", "= 64");
    assert_eq!(running.reread(&larger).reloads.taken, 2);
    running.terminate();
    let said = running.end();
    let log = text(&said.stderr);
    assert!(!log.contains("runtime.log"), "{log}");
    let nothing = log.matches("nothing changes").count();
    assert_eq!(nothing, 1, "the first time alone:\n{log}");
}
