//! EAL without huge pages and without privileges. There is one EAL per process: one test.

use dpdk_sys::{Eal, Level, Socket, current};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn hear(_: Level, line: &str) {
    SAID.lock().expect("not poisoned").push(line.to_owned());
}

#[test]
fn eal_lives_once_with_its_lcores_and_its_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    // SAFETY: this is the only test of its process, and no other thread runs yet.
    unsafe { std::env::set_var("XDG_RUNTIME_DIR", directory.path()) };
    let prefix = format!("dpdk-sys-{}", std::process::id());
    let arguments = ["--no-huge", "--no-shconf", "--no-pci", "-m", "64"];
    let arguments = arguments.into_iter().chain(["--file-prefix", &prefix]);
    let arguments: Vec<_> = arguments.map(str::to_owned).collect();
    assert!(Eal::running().is_none());
    let eal = Eal::start(&[0], &[0, 0], &arguments, hear).expect("EAL");
    let again = Eal::start(&[0], &[0], &[], hear).expect_err("once a process");
    assert_eq!(again.errno, libc::EALREADY);
    assert!(!eal.has_hugepages());
    let said = SAID.lock().expect("not poisoned").join("\n");
    assert!(said.contains("EAL: Detected CPU lcores"), "{said}");

    jobs(eal);
    zones(eal);
    telemetry(eal);
    let runtime = eal.runtime_directory();
    ends(eal);
    // Root's is not in the directory above, and DPDK leaves it behind.
    let _ = std::fs::remove_file(format!("{runtime}/dpdk_telemetry.v2"));
    let _ = std::fs::remove_dir(runtime);
}

fn jobs(eal: &'static Eal) {
    let [first, second] = eal.workers() else {
        panic!("{:?}", eal.workers())
    };
    let (go, wait) = channel::<()>();
    let (tell, told) = channel();
    let job = move || {
        tell.send(current()).expect("somebody listens");
        let _ = wait.recv();
    };
    let task = eal.launch(*first, job).expect("it waits");
    assert_eq!(told.recv().expect("an answer"), Some(1));
    assert!(!task.is_over());
    let busy = eal.launch(*first, || ()).expect_err("it has a job");
    assert_eq!(busy.errno, libc::EBUSY);
    drop(go);
    task.join();

    let panics = eal.launch(*second, || panic!("as told")).expect("it waits");
    panics.join();
    let (tell, told) = channel();
    let after = move || tell.send(current()).expect("somebody listens");
    let task = eal
        .launch(*second, after)
        .expect("a panic ends a job, not the lcore");
    assert_eq!(told.recv().expect("an answer"), Some(2));
    task.join();
    assert_eq!(current(), Some(0), "the main lcore");
    let elsewhere = std::thread::spawn(current).join().expect("no panic");
    assert_eq!(elsewhere, None);
}

fn zones(eal: &'static Eal) {
    const ALIGN: u32 = 2 << 20;
    let zone = eal.zone("one", 8 << 20, Socket::Any, ALIGN).expect("room");
    assert_eq!(zone.start().as_ptr().align_offset(ALIGN as usize), 0);
    assert!(zone.bytes() >= 8 << 20);
    let len = usize::try_from(zone.bytes()).expect("it is mapped");
    // SAFETY: the zone is ours alone, and lives.
    let octets = unsafe { std::slice::from_raw_parts_mut(zone.start().as_ptr(), len) };
    assert!(octets.iter().all(|&octet| octet == 0));
    octets.fill(0xA5);
    let twice = eal
        .zone("one", 4096, Socket::Any, 64)
        .expect_err("its name");
    assert_eq!(twice.errno, libc::EEXIST);
    let large = eal
        .zone("two", 1 << 40, Socket::Any, 64)
        .expect_err("64 MiB");
    assert_eq!(large.errno, libc::ENOMEM, "{large}");
    let unnamed = eal.zone(&"x".repeat(32), 4096, Socket::Any, 64);
    assert!(unnamed.is_err());
    drop(zone);
    let zone = eal.zone("one", 8 << 20, Socket::Any, ALIGN).expect("freed");
    // SAFETY: as above.
    let octets = unsafe { std::slice::from_raw_parts(zone.start().as_ptr(), len) };
    assert!(octets.iter().all(|&octet| octet == 0), "zeroed again");
    assert!(!eal.end(), "there is a zone");
}

fn telemetry(eal: &'static Eal) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&asked);
    let says = move |parameters: &str| {
        notes
            .lock()
            .expect("not poisoned")
            .push(parameters.to_owned());
        match parameters {
            "" => Ok(vec![
                ("calls".to_owned(), 7),
                ("rejects".to_owned(), u64::MAX),
            ]),
            "panic" => panic!("as told"),
            _ => Err(libc::EINVAL),
        }
    };
    let command = c"/test/counters";
    dpdk_sys::answer(eal, command, c"Counters.", Box::new(says)).expect("nobody has it");
    let path = format!("{}/dpdk_telemetry.v2", eal.runtime_directory());
    let mut socket = connect(&path);
    let hello = read(&mut socket);
    assert!(hello.contains("DPDK"), "{hello}");
    let answer = ask(&mut socket, "/test/counters");
    let wanted = r#"{"/test/counters":{"calls":7,"rejects":18446744073709551615}}"#;
    assert_eq!(answer, wanted);
    for refused in ["/test/counters,9", "/test/counters,panic"] {
        let answer = ask(&mut socket, refused);
        assert!(answer.contains("null"), "{answer}");
    }
    dpdk_sys::hush();
    assert!(ask(&mut socket, "/test/counters").contains("null"));
    assert_eq!(*asked.lock().expect("not poisoned"), ["", "9", "panic"]);
}

fn ends(eal: &'static Eal) {
    assert!(eal.end());
    assert!(Eal::running().is_none());
    assert!(eal.zone("late", 4096, Socket::Any, 64).is_err());
    assert!(eal.launch(eal.workers()[0], || ()).is_err());
    assert!(!eal.end(), "once");
}

/// A connection to DPDK's telemetry: one packet a message.
fn connect(path: &str) -> UnixStream {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
    let kind = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("a socket");
    connect(&kind, &SocketAddrUnix::new(path).expect("short")).expect("EAL listens");
    UnixStream::from(kind)
}

fn ask(socket: &mut UnixStream, command: &str) -> String {
    socket.write_all(command.as_bytes()).expect("sent");
    read(socket)
}

fn read(socket: &mut UnixStream) -> String {
    let mut buffer = vec![0; 1 << 14];
    let length = socket.read(&mut buffer).expect("a message");
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}
