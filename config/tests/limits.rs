//! Links and groups up to the limits make a plan; one more does not, and the message names the limit.

use rpcrdma_config::{Machine, parse};
use std::fmt::Write;
use std::path::PathBuf;

/// The messages that a service with these links gives.
fn messages(links: &str) -> String {
    let machine = Machine {
        cores: vec![0],
        status_socket: PathBuf::from("/run/s"),
    };
    let service = "name = 's'\nfabric = 'iwarp-sctp'\nlisten = '192.0.2.1:9899'";
    let text = format!("[[service]]\n{service}\n{links}");
    parse("", &text, &machine).map_or_else(|error| error.to_string(), |_| String::new())
}

fn links_on(ports: &[&str], each: u16) -> String {
    let mut text = String::new();
    for (at, port) in ports.iter().enumerate() {
        for n in 1..=each {
            let of = format!("subnet = 'infiniband'\ndevice = 'mlx5_0/{port}'");
            writeln!(
                text,
                "[[link]]\nname = 'l{at}-{n}'\n{of}\np_key = {}",
                0x8000 | n
            )
            .unwrap();
        }
    }
    text
}

/// Two links that share out `count` groups.
fn groups(count: usize) -> String {
    let list = |range: std::ops::Range<usize>| {
        let quoted: Vec<_> = range.map(|n| format!("'ff15::{n:x}'")).collect();
        quoted.join(",")
    };
    let (first, second) = (list(0..count / 2), list(count / 2..count));
    let creates = "administrator = true";
    format!(
        "[[link]]\nname = 'a'\n{creates}\ngroups = [{first}]\n[[link]]\nname = 'b'\nanswer = [{second}]\n"
    )
}

#[test]
fn a_port_has_no_more_than_32_links() {
    assert_eq!(messages(&links_on(&["1", "2"], 32)), "");
    let shown = messages(&links_on(&["1", "2"], 33));
    let told = "link: is one more than the 32 links that a port can have; remove it";
    assert_eq!(shown.matches(told).count(), 2, "{shown}");
    assert_eq!(shown.lines().count(), 2, "{shown}");
}

#[test]
fn there_are_no_more_than_4096_groups() {
    assert_eq!(messages(&groups(4096)), "");
    let shown = messages(&groups(4097));
    let told = "makes 4097 groups, and 4096 in all are the most; list fewer";
    assert!(
        shown.contains("link.answer") && shown.ends_with(told),
        "{shown}"
    );
    assert_eq!(shown.lines().count(), 1, "{shown}");
}
