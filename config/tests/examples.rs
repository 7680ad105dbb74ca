//! Each file of `config/examples` makes a plan, and the plan is the one it describes.

use rpcrdma_config::plan::{
    BackendAddress, Devices, Expose, Fabric, Idle, Programs, SourcePort, Upstream, VersionMax,
};
use rpcrdma_config::{EMBEDDED, Machine, Plan, embedded, load, parse, reference};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

fn machine() -> Machine {
    Machine {
        cores: vec![0, 1, 2, 3],
        status_socket: PathBuf::from("/run/rpcrdmad/status.sock"),
    }
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(name)
}

fn example(name: &str) -> Plan {
    load(&path(name), &machine()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn each_example_makes_a_plan() {
    let mut seen = 0;
    for entry in std::fs::read_dir(path("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let plan = example(&name);
        assert!(plan.budget.shared_bytes().is_some(), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 15);
}

#[test]
fn the_embedded_plan_needs_no_port_and_no_right() {
    let plan = embedded(Path::new("/home/me/share"), &machine()).unwrap();
    assert_eq!(
        plan.export.as_ref().unwrap().directory,
        Path::new("/home/me/share")
    );
    assert_eq!(plan.export.as_ref().unwrap().listen.port(), 0);
    assert_eq!(plan.backs[0].listen.port(), 0);
    assert!(plan.backs[0].listen.ip().is_loopback());
    assert_eq!(
        plan.backs[0].upstream,
        Upstream::Memory(plan.fronts[0].listen.clone())
    );
    assert_eq!(plan.budget.memlock_bytes, 0);
    for program in [100_003, 100_005] {
        let backend = &plan.fronts[0].backends[plan.fronts[0].backend_of(program).unwrap()];
        assert_eq!(backend.address, BackendAddress::Export);
        assert_eq!(backend.source_port, SourcePort::Any);
    }
    assert_eq!(plan.fronts[0].backend_of(100_227), None);
    assert!(EMBEDDED.contains("[export]"));
}

#[test]
fn the_embedded_plan_fits_any_machine() {
    for cores in 1..=8 {
        let machine = Machine {
            cores: (0..cores).collect(),
            ..machine()
        };
        let plan = embedded(Path::new("/x"), &machine).unwrap();
        assert_eq!(
            plan.runtime.lcores.len(),
            if cores > 2 { cores - 1 } else { cores }
        );
    }
    let nowhere = Machine {
        cores: vec![],
        ..machine()
    };
    assert!(embedded(Path::new("/x"), &nowhere).is_err());
}

#[test]
fn an_external_server_gets_its_programs() {
    let plan = example("nfs-server.toml");
    let front = &plan.fronts[0];
    assert_eq!(front.backend_of(100_003), front.backend_of(100_227));
    assert_eq!(front.backend_of(100_005), Some(1));
    assert_eq!(
        front.backends[1].address.to_string(),
        "nfs.example.net:20048"
    );
    assert_eq!(front.backends[1].source_port, SourcePort::Privileged);
    let may = |client: &str| {
        plan.backs[0]
            .allow
            .permits(client.parse::<IpAddr>().unwrap())
    };
    assert!(may("192.0.2.77") && may("127.0.0.1"));
    assert!(!may("192.0.3.1") && !may("::1"));
}

#[test]
fn rdma_devices_are_named_or_all() {
    let plan = example("verbs-front.toml");
    assert_eq!(plan.fabric, Fabric::Verbs);
    assert_eq!(plan.fronts[0].listen, "[::]:20049");
    assert_eq!(plan.verbs.devices, Devices::All);
    assert_eq!(plan.verbs.expose, Expose::Auto);
    assert!(plan.budget.memlock_bytes > plan.budget.total_bytes);
    let may = |peer: &str| {
        let allow = &plan.fronts[0].allow;
        allow.permits(peer.parse::<IpAddr>().unwrap())
    };
    assert!(may("192.0.2.77") && !may("192.0.3.1") && !may("127.0.0.1"));

    let plan = example("verbs-back.toml");
    assert_eq!(plan.backs[0].upstream.to_string(), "nfs.example.net:20049");
    let named = Devices::Named(vec!["mlx5_0".to_owned(), "mlx5_1".to_owned()]);
    assert_eq!(plan.verbs.devices, named);
}

#[test]
fn an_endpoint_overrides_the_common_transport_key_by_key() {
    let plan = example("version-one.toml");
    assert_eq!(plan.fronts[0].transport.version_max, VersionMax::One);
    assert_eq!(plan.fronts[0].transport.credits, 32);
    assert_eq!(plan.backs[0].transport.version_max, VersionMax::Two);
    assert_eq!(plan.backs[0].transport.credits, 64);

    let plan = example("service.toml");
    assert_eq!(plan.services[0].transport, plan.backs[0].transport);
    assert_eq!(plan.services[0].transport.credits, 256);
    assert_eq!(plan.services[0].transport.limits.call_bytes, 2 << 20);
    assert_eq!(plan.runtime.idle, Idle::Spin);
}

#[test]
fn a_backend_for_all_others_takes_what_is_left() {
    let plan = example("minimal.toml");
    assert_eq!(plan.fronts[0].backends[0].programs, Programs::Others);
    assert_eq!(plan.fronts[0].backend_of(1), Some(0));
    assert_eq!(plan.metrics, None);
    assert_eq!(
        plan.status,
        Some(PathBuf::from("/run/rpcrdmad/status.sock"))
    );
}

/// The same endpoints with nothing but what has to be there.
const BARE: &str = r#"
    [metrics]
    [[back]]
    name = "clients"
    listen = "127.0.0.1:20049"
    upstream = "nfs"
    [[front]]
    name = "nfs"
    listen = "nfs"
    [[front.backend]]
    programs = [100003, 100227, 100005]
    address = "export"
    [[service]]
    name = "benchmark"
    listen = "benchmark"
    [export]
    directory = "/srv/rpcrdmad"
    [[link]]
    name = "ib0"
    [[link]]
    name = "ib1"
    administrator = true
    [dpdk]
"#;

#[test]
fn the_defaults_are_what_the_example_of_every_key_says() {
    let bare = parse("bare", BARE, &machine()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(example("every-key.toml"), bare);
}

#[test]
fn the_example_of_every_key_has_every_key() {
    // Some keys have no meaning in the memory fabric: two more files have those.
    let texts = [
        "every-key.toml",
        "ipoib-front.toml",
        "ipoib-back.toml",
        "iwarp-sctp-dpdk.toml",
    ]
    .map(|name| std::fs::read_to_string(path(name)).unwrap());
    let text = texts.concat();
    let reference = reference();
    let keys = reference
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let mut seen = 0;
    for key in keys {
        let written = |line: &str| {
            line.starts_with(&format!("{key} = ")) || line.trim_matches(['[', ']']).ends_with(key)
        };
        assert!(text.lines().any(written), "{key}");
        seen += 1;
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn the_readme_has_the_reference() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    assert!(
        readme.contains(&reference()),
        "README.md should contain:\n\n{}",
        reference()
    );
}
