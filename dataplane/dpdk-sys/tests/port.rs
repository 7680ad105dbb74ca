//! A port whose cable leads back to itself (net_ring), and some that never start (net_null). There is one EAL
//! per process: one test.

use dpdk_sys::{BURST, Eal, Frame, HEADROOM, Level, Port};

const MTU: u16 = 1500;
const FRAMES: u32 = 2047;
/// All of EAL's memory, mebibytes.
const MIB: u64 = 48;
/// Ports whose frames have no room in that memory, which is found out when their queues are set up.
const TOO_LARGE: [&str; 3] = ["net_null0", "net_null1", "net_null2"];

fn hear(_: Level, _: &str) {}

#[test]
fn what_is_sent_comes_back() {
    let directory = tempfile::tempdir().expect("a directory");
    // SAFETY: this is the only test of its process, and no other thread runs yet.
    unsafe { std::env::set_var("XDG_RUNTIME_DIR", directory.path()) };
    let prefix = format!("dpdk-sys-port-{}", std::process::id());
    let mut arguments = vec!["--no-huge", "--no-shconf", "--no-pci", "--vdev=net_ring0"];
    let too_large = TOO_LARGE.map(|name| format!("--vdev={name},size={}", MIB << 20));
    arguments.extend(too_large.iter().map(String::as_str));
    let mib = MIB.to_string();
    arguments.extend(["-m", &mib, "--file-prefix", &prefix]);
    let arguments: Vec<_> = arguments.into_iter().map(str::to_owned).collect();
    let eal = Eal::start(&[0], &[0], &arguments, hear).expect("EAL");

    let unknown = eal
        .port("net_ring7", MTU, FRAMES)
        .expect_err("no such port");
    assert_eq!(unknown.errno, libc::ENODEV);
    fails_and_leaves_nothing(eal);
    let mut port = eal.port("net_ring0", MTU, FRAMES).expect("a port");
    let twice = eal.port("net_ring0", MTU, FRAMES).expect_err("it is open");
    assert_eq!(twice.errno, libc::EBUSY);
    assert!(port.is_up());
    assert_eq!((port.mtu(), port.driver().as_str()), (MTU, "net_ring"));

    comes_back(&mut port);
    runs_dry(&port);
    drop(port);
    assert!(!eal.end(), "its memory may be anywhere");
    let runtime = eal.runtime_directory();
    let _ = std::fs::remove_file(format!("{runtime}/dpdk_telemetry.v2"));
    let _ = std::fs::remove_dir(runtime);
}

/// A port whose last step fails is gone, and others have the memory of its pool.
fn fails_and_leaves_nothing(eal: &'static Eal) {
    let frames = 8191;
    let three = 3 * dpdk_sys::pool_bytes(MTU, frames);
    assert!(three > MIB << 20, "{three} octets at once");
    for name in TOO_LARGE {
        let fault = eal.port(name, MTU, frames).expect_err("no room");
        let (call, errno) = (fault.call, fault.errno);
        assert_eq!((call, errno), ("rte_eth_rx_queue_setup", libc::ENOMEM));
        let gone = eal.port(name, MTU, frames).expect_err("it was closed");
        assert_eq!(gone.errno, libc::ENODEV, "{gone}");
    }
}

fn comes_back(port: &mut Port) {
    let mut frames = Vec::new();
    for _ in 0..3 {
        port.pool().take(&mut frames).expect("buffers");
    }
    assert_eq!(frames.len(), 3 * BURST);
    for (value, frame) in (0_u8..).zip(&mut frames) {
        assert!(
            frame.lay_out(usize::from(MTU) + 600).is_none(),
            "no such room"
        );
        frame
            .lay_out(usize::from(value) + 60)
            .expect("room")
            .fill(value);
        assert!(frame.prepend(HEADROOM + 1).is_none(), "no such room");
        frame.prepend(14).expect("room")[..14].fill(0xee);
    }
    assert!(port.send(&mut frames), "the ring has room");
    assert!(frames.is_empty());
    let mut back = Vec::new();
    while port.receive(&mut back) > 0 {}
    assert_eq!(back.len(), 3 * BURST);
    for (value, frame) in (0_u8..).zip(&back) {
        let (head, rest) = frame.octets().split_at(14);
        assert_eq!(head, [0xee; 14]);
        assert_eq!(rest, vec![value; usize::from(value) + 60]);
        assert!(!frame.is_chained() && !frame.is_damaged());
    }
    Frame::free_all(&mut back);
    assert!(back.is_empty());
    let counts = port.counts();
    assert_eq!((counts.frames_in, counts.frames_out), (96, 96));
}

/// All buffers can be had, and come back when they are dropped.
fn runs_dry(port: &Port) {
    for _ in 0..2 {
        let mut frames = Vec::new();
        while port.pool().take(&mut frames).is_ok() {}
        assert!(frames.len() > FRAMES as usize - BURST, "{}", frames.len());
    }
}
