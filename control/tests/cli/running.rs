//! A `rpcrdmad run`, from its start to its end.

use crate::support::{PATIENCE, until};
use crate::{output, path, rpcrdmad};
use rpcrdmad::status::{Document, Role, State};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A running `rpcrdmad run`; killed when dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) socket: PathBuf,
    pub(crate) scratch: TempDir,
}

impl Running {
    /// Runs this configuration, with a status socket, and waits until it serves.
    pub(crate) fn start(configuration: &str) -> Self {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let file = scratch.path().join("appliance.toml");
        std::fs::write(&file, configuration).expect("a file");
        Self::with(scratch, &["--config", path(&file)])
    }

    pub(crate) fn with(scratch: TempDir, arguments: &[&str]) -> Self {
        let socket = scratch.path().join("status.sock");
        let child = rpcrdmad(&["run", "--socket", path(&socket)])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut running = Self {
            child,
            socket,
            scratch,
        };
        until("a status socket", || {
            let ended = running.child.try_wait().expect("a child");
            assert_eq!(ended, None, "it runs");
            running.status().filter(|it| it.state == State::Serving)
        });
        running
    }

    /// What it says of itself, once it does.
    pub(crate) fn status(&self) -> Option<Document> {
        let said = output(&["status", "--json", "--socket", path(&self.socket)]);
        serde_json::from_slice(&said.stdout).ok()
    }

    /// Where its back listens.
    pub(crate) fn back(&self) -> SocketAddr {
        let status = self.status().expect("it runs");
        let back = status.listeners.iter().find(|it| it.role == Role::Back);
        back.expect("a back").address.parse().expect("an address")
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Has it read this configuration, and waits until it has.
    pub(crate) fn reread(&self, configuration: &str) -> Document {
        let tried = |it: &Document| it.reloads.taken + it.reloads.refused;
        let before = tried(&self.status().expect("it runs"));
        std::fs::write(self.file(), configuration).expect("a file");
        kill_process(self.pid(), Signal::HUP).expect("it runs");
        until("a configuration read again", || {
            self.status().filter(|it| tried(it) > before)
        })
    }

    /// Its configuration.
    pub(crate) fn file(&self) -> PathBuf {
        self.scratch.path().join("appliance.toml")
    }

    pub(crate) fn terminate(&self) {
        kill_process(self.pid(), Signal::TERM).expect("it runs");
    }

    /// Whether it has ended, after at most `patience`.
    pub(crate) fn ends_within(&self, patience: Duration) -> bool {
        let end = pidfd_open(self.pid(), PidfdFlags::empty()).expect("a child");
        let timeout = Timespec {
            tv_sec: patience.as_secs().cast_signed(),
            tv_nsec: patience.subsec_nanos().into(),
        };
        let ended = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&timeout));
        ended.expect("no signals here") > 0
    }

    /// What it said, and how it ended, when it has.
    pub(crate) fn end(mut self) -> Output {
        assert!(self.ends_within(PATIENCE), "it goes on");
        let mut output = Output {
            status: self.child.wait().expect("a child"),
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let read = stdout.expect("piped").read_to_end(&mut output.stdout);
        read.expect("what it said");
        let read = stderr.expect("piped").read_to_end(&mut output.stderr);
        read.expect("what it logged");
        assert!(!self.socket.exists(), "its socket goes with it");
        output
    }

    /// Processor time that all its threads have taken.
    pub(crate) fn processor_time(&self) -> Duration {
        let tasks = format!("/proc/{}/task", self.child.id());
        let tasks = std::fs::read_dir(tasks).expect("it runs");
        let nanoseconds = tasks.map(|task| {
            let file = task.expect("a thread").path().join("schedstat");
            let line = std::fs::read_to_string(file).expect("a kernel that accounts");
            let first = line.split(' ').next().expect("three numbers");
            first.parse::<u64>().expect("nanoseconds")
        });
        Duration::from_nanos(nanoseconds.sum())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already where all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
