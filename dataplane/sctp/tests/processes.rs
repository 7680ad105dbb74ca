//! The same between two processes, the parent's messages echoed by a child.

mod support;

use rpcrdma_sctp::{Llp, Settings, Usrsctp};
use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use support::{End, Told, is_absent, loopback};

/// Set for the child.
const ROLE: &str = "RPCRDMA_SCTP_TEST_CHILD";

const MESSAGES: usize = 2_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// Ends the child, whatever becomes of the test; its output stays open until then.
struct Ended {
    child: Child,
    _output: Lines<BufReader<ChildStdout>>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_processes_talk() {
    if std::env::var_os(ROLE).is_some() {
        echo();
        return;
    }
    if is_absent() {
        return;
    }
    let (mut child, to) = spawn();
    let mut end = End::new(Usrsctp::connector(loopback(), Settings::default()).expect("an end"));
    let id = end.llp.associate(to, Instant::now()).expect("asked for");
    turn_until(&mut end, |end| end.up().is_some());
    let mut sent = 0;
    turn_until(&mut end, |end| {
        while sent < MESSAGES && end.put(id, 1, &vec![7; 1 + sent % 5_000]) {
            sent += 1;
        }
        end.messages().count() == MESSAGES
    });
    let mut lengths: Vec<usize> = end.messages().map(Vec::len).collect();
    let mut expected: Vec<usize> = (0..MESSAGES).map(|at| 1 + at % 5_000).collect();
    lengths.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lengths, expected);
    end.llp.shut_down(id);
    turn_until(&mut end, |end| end.down().is_some());
    assert!(child.child.wait().expect("it ends").success());
}

fn turn_until(end: &mut End<Usrsctp>, mut so: impl FnMut(&mut End<Usrsctp>) -> bool) {
    let start = Instant::now();
    while !so(end) {
        assert!(start.elapsed() < PATIENCE, "it never came to be");
        end.turn(Instant::now());
    }
}

fn spawn() -> (Ended, SocketAddr) {
    let mut child = Command::new(std::env::current_exe().expect("a program"))
        .args(["--exact", "two_processes_talk", "--nocapture"])
        .env(ROLE, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let output = child.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(output).lines();
    let address = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("at ").and_then(|it| it.parse().ok()))
        .expect("the child says where it is");
    (
        Ended {
            child,
            _output: lines,
        },
        address,
    )
}

/// The child: sends back what comes, until the association is shut down.
fn echo() {
    let listener = Usrsctp::listen(loopback(), Settings::default()).expect("an end");
    println!("\nat {}", listener.local_address());
    let mut end = End::new(listener);
    let mut back: Vec<Told> = Vec::new();
    turn_until(&mut end, |end| {
        back.append(&mut end.told);
        back.retain(|told| match told {
            Told::Message {
                association,
                stream,
                octets,
                ..
            } => !end.put(*association, *stream, octets),
            Told::Down(..) => true,
            _ => false,
        });
        matches!(back[..], [Told::Down(..)])
    });
}
