//! The configuration is read again under load: the inline size goes up and down on connections
//! that stand, and no Call is lost by it.

#[path = "support/mod.rs"]
mod support;

use rpcrdma_config::Plan;
use rpcrdmad::status::{Document, Reloads};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use support::appliance::{Appliance, plan};
use support::octets::{payload, success, word};
use support::tcp::{
    Server, Stream, nfs_null, nfs_read, nfs_read_reply, nfs_write, nfs_write_reply,
};
use support::until;

/// Octets of each READ and WRITE: inline at the larger size, by chunk at the smaller one.
const BYTES: u32 = 8192;
const SMALL: u32 = 4096;
const LARGE: u32 = 16_384;
const CLIENTS: u32 = 4;

/// A back and a front before this server, with this inline size and more lines at the end.
fn configuration(backend: SocketAddr, inline_bytes: u32, more: &str) -> String {
    format!(
        r#"
        [runtime]
        lcores = 1
        memory_mib = 64
        hugepages = "off"
        connections_max = 16
        drain_timeout_s = 1
        [status]
        socket = "off"
        [transport]
        credits = 8
        inline_bytes = {inline_bytes}
        inline_bytes_max = {LARGE}
        # A machine that has better things to do is no reason to give version two up (V2-09).
        negotiate_timeout_ms = 60000
        [[front]]
        name = "nfs"
        listen = "nfs"
        [[front.backend]]
        programs = "others"
        address = "{backend}"
        [[back]]
        name = "back"
        listen = "127.0.0.1:0"
        upstream = "nfs"
        {more}
        "#
    )
}

/// A server that answers NULL, READ and WRITE until it is dropped.
struct Backend {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Backend {
    fn new() -> Self {
        let server = Server::new();
        let address = server.address();
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut serving = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                match server.accepted() {
                    Some(stream) => serving.push(std::thread::spawn(|| answer_all(stream))),
                    None => std::thread::yield_now(),
                }
            }
            serving
                .into_iter()
                .for_each(|it| it.join().expect("served"));
        });
        Self {
            address,
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("the server saw nothing wrong");
            }
        }
    }
}

fn answer_all(mut stream: Stream) {
    while let Some(call) = stream.record() {
        let (xid, procedure) = (word(&call, 0), word(&call, 20));
        let reply = match procedure {
            0 => success(xid),
            6 => nfs_read_reply(xid, &payload(BYTES, xid)),
            7 => {
                assert!(
                    call == nfs_write(xid, &payload(BYTES, xid)),
                    "as it was written"
                );
                nfs_write_reply(xid, BYTES)
            }
            _ => panic!("procedure {procedure}"),
        };
        stream.send(&reply);
    }
}

/// One READ and one WRITE, checked octet by octet.
fn read_and_write(client: &mut Stream, xid: u32) {
    client.send(&nfs_read(xid, BYTES));
    let reply = nfs_read_reply(xid, &payload(BYTES, xid));
    assert!(client.record() == Some(reply), "READ {xid}");
    client.send(&nfs_write(xid + 1, &payload(BYTES, xid + 1)));
    let reply = nfs_write_reply(xid + 1, BYTES);
    assert!(client.record() == Some(reply), "WRITE {xid}");
}

/// Clients that read and write without a pause until they are told.
struct Load {
    over: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    clients: Vec<JoinHandle<Stream>>,
}

impl Load {
    fn on(clients: Vec<Stream>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let rounds = Arc::new(AtomicU64::new(0));
        let start = |(mut client, number): (Stream, u32)| {
            let (over, rounds) = (Arc::clone(&over), Arc::clone(&rounds));
            std::thread::spawn(move || {
                let mut xid = number << 24;
                while !over.load(Ordering::Relaxed) {
                    read_and_write(&mut client, xid);
                    rounds.fetch_add(1, Ordering::Relaxed);
                    xid += 2;
                }
                client
            })
        };
        let clients = clients.into_iter().zip(1..).map(start).collect();
        Self {
            over,
            rounds,
            clients,
        }
    }

    /// Waits for some rounds from now on.
    fn goes_on(&self) {
        let now = self.rounds.load(Ordering::Relaxed);
        until("some more rounds", || {
            let ended = self.clients.iter().any(JoinHandle::is_finished);
            assert!(!ended, "a client's Calls went wrong");
            (self.rounds.load(Ordering::Relaxed) >= now + 20).then_some(())
        });
    }

    fn stop(self) -> Vec<Stream> {
        self.over.store(true, Ordering::Relaxed);
        let clients = self.clients.into_iter();
        clients.map(|it| it.join().expect("all answered")).collect()
    }
}

/// Gateways whose configuration a test can replace.
struct Scene {
    appliance: Appliance,
    file: Arc<Mutex<Result<Plan, String>>>,
    backend: Backend,
}

impl Scene {
    fn new() -> Self {
        Self::with("")
    }

    fn with(more: &str) -> Self {
        let backend = Backend::new();
        let started = plan(&configuration(backend.address, SMALL, more));
        let file = Arc::new(Mutex::new(Ok(started.clone())));
        let read = Arc::clone(&file);
        let reread = Box::new(move || read.lock().unwrap().clone());
        Self {
            appliance: Appliance::rereading(started, reread),
            file,
            backend,
        }
    }

    fn write(&self, inline_bytes: u32, more: &str) {
        let text = configuration(self.backend.address, inline_bytes, more);
        *self.file.lock().unwrap() = Ok(plan(&text));
    }

    /// Has the file read again, and waits until that is done.
    fn reload(&self) -> Document {
        let before = self.appliance.state().0.reloads;
        self.appliance.reload();
        self.appliance.until("a reload", |state| {
            let now = &state.0.reloads;
            let more = now.taken + now.refused > before.taken + before.refused;
            more.then(|| state.0.clone())
        })
    }

    /// Waits until each connection sends and takes so much.
    fn until_size(&self, bytes: u32, connections: usize) {
        let what = format!("{bytes} octets each way on {connections} connections");
        self.appliance.until(&what, |state| {
            let there: Vec<_> = state
                .0
                .lcores
                .iter()
                .flat_map(|it| &it.connections)
                .collect();
            let is = there
                .iter()
                .all(|it| (it.send_bytes, it.receive_bytes) == (bytes, bytes));
            (is && there.len() == connections).then_some(())
        });
    }

    /// RDMA Reads and Writes that one READ and one WRITE take.
    fn chunks_of(&self, client: &mut Stream, xid: u32) -> (u64, u64) {
        let count = || {
            let state = self.appliance.state();
            (state.counter("reads"), state.counter("writes"))
        };
        let before = count();
        read_and_write(client, xid);
        let after = count();
        (after.0 - before.0, after.1 - before.1)
    }

    fn clients(&self) -> Vec<Stream> {
        let address = self.appliance.back();
        let client = |xid| {
            let mut client = Stream::to(address);
            client.send(&nfs_null(xid));
            assert_eq!(client.record(), Some(success(xid)));
            client
        };
        (1..=CLIENTS).map(client).collect()
    }
}

#[test]
fn the_inline_size_goes_up_and_down_under_load() {
    let scene = Scene::new();
    let mut clients = scene.clients();
    let connections = 2 * clients.len();
    scene.until_size(SMALL, connections);
    assert_eq!(scene.chunks_of(&mut clients[0], 10), (1, 1));

    for _ in 0..2 {
        let load = Load::on(clients);
        load.goes_on();
        scene.write(LARGE, "");
        let document = scene.reload();
        assert_eq!(document.reloads.last_refusal, None);
        scene.until_size(LARGE, connections);
        load.goes_on();
        clients = load.stop();
        let chunks = scene.chunks_of(&mut clients[0], 20);
        assert_eq!(chunks, (0, 0), "all goes inline");
        // One who comes now begins with that size.
        let mut late = Stream::to(scene.appliance.back());
        late.send(&nfs_null(1));
        assert_eq!(late.record(), Some(success(1)));
        scene.until_size(LARGE, connections + 2);
        assert_eq!(scene.chunks_of(&mut late, 30), (0, 0));
        late.close();
        scene.until_size(LARGE, connections);

        let load = Load::on(clients);
        load.goes_on();
        scene.write(SMALL, "");
        scene.reload();
        scene.until_size(SMALL, connections);
        load.goes_on();
        clients = load.stop();
        assert_eq!(scene.chunks_of(&mut clients[0], 40), (1, 1), "chunks again");
    }
    let state = scene.appliance.state();
    assert_eq!(state.0.reloads.taken, 4);
    assert_eq!(state.counter("replies_in"), state.counter("calls_out"));
    assert_eq!(state.refused(), 0);
    drop(clients);
    scene.appliance.end();
}

#[test]
fn what_is_refused_changes_nothing() {
    let scene = Scene::new();
    let mut clients = scene.clients();
    let problem =
        "appliance.toml:7:1: transport.inline = 5: unknown key; did you mean inline_bytes?";
    *scene.file.lock().unwrap() = Err(problem.to_owned());
    let document = scene.reload();
    assert_eq!((document.reloads.taken, document.reloads.refused), (0, 1));
    assert_eq!(document.reloads.last_refusal.as_deref(), Some(problem));
    scene.until_size(SMALL, 2 * clients.len());
    read_and_write(&mut clients[0], 10);

    // What takes a restart is named; what does not is taken.
    scene.write(LARGE, "[[service]]\nname = 's'\nlisten = 's'");
    let document = scene.reload();
    let restart = ["service (which there are, and their order)"];
    assert_eq!(document.reloads.restart, restart);
    assert_eq!(document.reloads.last_refusal, None);
    scene.until_size(LARGE, 2 * clients.len());
    drop(clients);
    scene.appliance.end();
}

/// Two ends with sizes of their own keep them when something else changes.
#[test]
fn a_change_elsewhere_asks_nothing_of_peers() {
    let own = "[back.transport]\ninline_bytes = 8192";
    let scene = Scene::with(own);
    let mut clients = scene.clients();
    let said = scene.appliance.state().counter("properties_out");
    scene.write(SMALL, &format!("{own}\ncredits = 4"));
    assert_eq!(scene.reload().reloads.taken, 1);
    read_and_write(&mut clients[0], 10);
    let state = scene.appliance.state();
    assert_eq!(state.counter("properties_out"), said);
    drop(clients);
    scene.appliance.end();
}

#[test]
fn whoever_is_not_allowed_any_more_comes_in_no_more() {
    let scene = Scene::new();
    let mut clients = scene.clients();
    scene.write(SMALL, "allow = ['192.0.2.0/24']");
    scene.reload();
    assert_eq!(Stream::to(scene.appliance.back()).record(), None);
    read_and_write(&mut clients[0], 10);
    scene.write(SMALL, "");
    scene.reload();
    let mut again = scene.clients();
    read_and_write(&mut again[0], 10);
    drop((clients, again));
    scene.appliance.end();
}

/// Whoever reads the file may hang: the appliance goes on, and ends when told to.
#[test]
fn a_file_that_cannot_be_read_holds_up_nothing() {
    let backend = Backend::new();
    let started = plan(&configuration(backend.address, SMALL, ""));
    let (begun, begins) = channel();
    let (end, ends) = channel::<()>();
    let reread = Box::new(move || {
        begun.send(()).expect("the test waits for it");
        // Until the test is over.
        let _ = ends.recv();
        Err("it is over".to_owned())
    });
    let appliance = Appliance::rereading(started, reread);
    appliance.reload();
    begins.recv().expect("it is being read");
    appliance.reload();
    let mut client = Stream::to(appliance.back());
    read_and_write(&mut client, 10);
    assert_eq!(appliance.state().0.reloads, Reloads::default());
    client.close();
    appliance.end();
    drop(end);
}

/// Where there is no file there is nothing to refuse.
#[test]
fn without_a_file_nothing_is_read() {
    let backend = Backend::new();
    let appliance = Appliance::start(&configuration(backend.address, SMALL, ""));
    appliance.reload();
    // Of a turn of the control loop that began behind that, the last one at least.
    for _ in 0..2 {
        assert_eq!(appliance.state().0.reloads, Reloads::default());
    }
    appliance.end();
}
