use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

fn document() -> Document {
    let connection = Connection {
        number: 7,
        role: Role::Front,
        name: "nfs".into(),
        peer: "memory:3".into(),
        tcp: Some("127.0.0.1:2049".into()),
        phase: "open".into(),
        version: Some(2),
        send_bytes: 4096,
        receive_bytes: 16_384,
        credits_used: 3,
        credits_granted: 64,
        memory_bytes: 3 << 20,
        last_refusal: Some("unaligned_position".into()),
    };
    let lcore = Lcore {
        lcore: 1,
        processor: 5,
        device: "mlx5_0".into(),
        exposure: "window".into(),
        in_use: BTreeMap::from([("connections".into(), 1)]),
        counters: BTreeMap::from([("calls_in".into(), 99)]),
        connections: vec![connection],
        connections_left_out: 2,
        ..Lcore::default()
    };
    Document {
        version: "0.1.0".into(),
        process: 42,
        uptime_seconds: 3 * 3600 + 120,
        state: State::Serving,
        listeners: vec![Listener {
            role: Role::Back,
            name: "back".into(),
            transport: "tcp".into(),
            address: "127.0.0.1:20490".into(),
        }],
        devices: vec![Device {
            name: "mlx5_0".into(),
            node: Some(1),
            state: DeviceState::Down,
        }],
        clamps: vec![Clamp {
            reason: None,
            endpoint: "nfs".into(),
            what: "credits".into(),
            wanted: 64,
            given: 14,
        }],
        warnings: vec!["device mlx5_0: it lets everybody in".into()],
        reloads: Reloads {
            taken: 1,
            refused: 1,
            last_refusal: Some("a.toml:3:1: x = 4: unknown key; remove it".into()),
            restart: vec!["runtime.lcores".into(), "metrics".into()],
        },
        links: vec![link()],
        backends: [true, false]
            .map(|reachable| Backend {
                front: "nfs".into(),
                address: format!("10.0.0.{}:2049", u8::from(reachable)),
                reachable,
            })
            .into(),
        lcores: vec![lcore],
        refused: vec![RefusedHeader::new(
            1,
            7,
            "unaligned_position",
            300,
            &[0, 0xab],
        )],
    }
}

fn link() -> Link {
    Link {
        name: "ib0".into(),
        port: "mlx5_0/1".into(),
        p_key: 0x8006,
        ips: vec![LinkIp {
            version: 4,
            state: "joining".into(),
            error: Some("the partition has no broadcast group".into()),
            ..LinkIp::default()
        }],
        addresses: vec!["10.6.0.5".into()],
        dhcp: Some("bound".into()),
        resources: [
            ("memberships", 2, Some(1024)),
            ("attached_groups", 4, Some(5)),
        ]
        .map(|(name, used, limit)| (name.to_owned(), LinkResource { used, limit }))
        .into(),
        failures: vec![LinkFailure {
            operation: "query".into(),
            cause: "no_record".into(),
            count: 3,
        }],
        sought: vec![Sought {
            back: "clients".into(),
            known: vec!["10.6.0.9:20049".into()],
            ..Sought::default()
        }],
        ..Link::default()
    }
}

#[test]
fn links_are_shown_with_what_keeps_them_down() {
    let text = document().to_string();
    for expected in [
        "0x8006",
        "v4 joining, DHCP bound",
        "10.6.0.9:20049",
        "link ib0, IPv4: the partition has no broadcast group",
        "link ib0: 4 of 5 attached groups are in use",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!text.contains("memberships are in use"), "{text}");
    let away = "front nfs: backend 10.0.0.0:2049 cannot be reached";
    assert!(
        text.contains(away) && !text.contains("10.0.0.1:2049"),
        "{text}"
    );
}

#[test]
fn frames_are_shown_where_there_are_any() {
    let mut document = document();
    assert!(!document.to_string().contains("frames in"));
    let counters = [
        ("port_frames_in", 71_001),
        ("port_frames_out", 71_002),
        ("port_frames_missed", 100),
        ("port_frames_no_buffer", 20),
        ("port_frames_damaged", 3),
        ("port_frames_unsent", 4000),
        ("port_frames_crowded", 300),
        ("port_packets_no_way", 20),
        ("port_packets_unanswered", 1),
    ];
    let known = rpcrdma_fabric::PortCounts::default();
    let known: Vec<_> = known
        .named()
        .map(|(name, ..)| format!("port_{name}"))
        .collect();
    let counters = counters.map(|(name, count)| (name.to_owned(), count));
    assert!(counters.iter().all(|(name, _)| known.contains(name)));
    document.lcores[0].counters.extend(counters);
    let text = document.to_string();
    let row = text.lines().find(|line| line.contains("71001"));
    let numbers = row.into_iter().flat_map(str::split_whitespace);
    let numbers: Vec<_> = numbers.filter_map(|it| it.parse::<u64>().ok()).collect();
    assert_eq!(numbers, [1, 71_001, 71_002, 123, 4321], "{text}");
}

fn path_in(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("made/status.sock")
}

#[test]
fn a_document_arrives_as_it_was_sent() {
    let directory = tempfile::tempdir().unwrap();
    let path = path_in(&directory);
    let socket = StatusSocket::start(&path, document).unwrap();
    let text = ask(&[directory.path().join("nowhere"), path.clone()]).unwrap();
    assert_eq!(parse(&text).unwrap(), document());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["lcores"][0]["counters"]["calls_in"], 99);
    assert_eq!(value["lcores"][0]["in_use"]["connections"], 1);
    assert_eq!(value["lcores"][0]["connections"][0]["role"], "front");
    assert_eq!(value["refused"][0]["hex"], "00ab");
    drop(socket);
    assert!(!path.exists());
}

#[test]
fn a_mistyped_path_makes_no_tree_of_directories() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("no/such/status.sock");
    let error = StatusSocket::start(&path, document).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert!(!directory.path().join("no").exists());
}

#[test]
fn the_socket_and_its_directory_are_the_owners_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = path_in(&directory);
    let _socket = StatusSocket::start(&path, document).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}

#[test]
fn a_socket_left_behind_is_replaced_and_a_live_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("status.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let first = StatusSocket::start(&path, document).unwrap();
    let error = StatusSocket::start(&path, document).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert_eq!(error.to_string(), "another process answers there");
    assert!(ask(std::slice::from_ref(&path)).is_ok());
    drop(first);

    fs::write(&path, "precious").unwrap();
    let error = StatusSocket::start(&path, document).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is a file of that name, and it is no socket"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn another_appliances_socket_is_not_taken_along() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("status.sock");
    let first = StatusSocket::start(&path, document).unwrap();
    fs::remove_file(&path).unwrap();
    let _second = StatusSocket::start(&path, document).unwrap();
    drop(first);
    assert!(ask(&[path]).is_ok());
}

#[test]
fn where_nobody_answers_the_reason_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let stale = directory.path().join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    let error = ask(&[directory.path().join("none"), stale])
        .unwrap_err()
        .to_string();
    assert!(error.contains("none: no socket there\n"), "{error}");
    assert!(
        error.ends_with("stale: nobody listens there any more"),
        "{error}"
    );
    assert!(parse("{}").is_err());
}

#[test]
fn the_table_has_what_an_operator_looks_for() {
    let text = document().to_string();
    for expected in [
        "refused:\na.toml:3:1: x = 4: unknown key",
        "takes a restart: runtime.lcores; metrics",
        "rpcrdmad 0.1.0, process 42, serving for 3 h 2 min\n",
        "127.0.0.1:20490",
        "\ndevice mlx5_0: link down\n",
        "\nnfs: credits is 14, not 64: the device can do no more\n",
        "front nfs",
        "4096/16384",
        "3 of 64",
        "3072 KiB",
        "and 2 more\n",
        "# connection 7, unaligned_position\n00ab\n",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
}
