//! Golden vectors: what is said of each, of every prefix of each, and that every refusal has one.

use crate::describe;
use crate::oracle;
use crate::vector::load;
use rpcrdma_ipoib::{mad, packet};

/// The limit that the vectors are read with: a table that is longer is refused.
pub(crate) const LIMIT: usize = 1024;

#[test]
fn management_datagrams_say_what_is_written() {
    for vector in load("mad") {
        assert_eq!(
            describe::mad(&vector.octets, LIMIT),
            vector.says,
            "{}",
            vector.name
        );
        assert_eq!(
            oracle::mad::describe(&vector.octets, LIMIT),
            vector.says,
            "{}",
            vector.name
        );
    }
}

#[test]
fn frames_say_what_is_written() {
    for vector in load("packet") {
        assert_eq!(
            describe::frame(&vector.octets),
            vector.says,
            "{}",
            vector.name
        );
        assert_eq!(
            oracle::packet::describe(&vector.octets),
            vector.says,
            "{}",
            vector.name
        );
    }
}

#[test]
fn every_prefix_of_a_management_datagram_is_judged_alike() {
    for vector in load("mad") {
        for bytes in 0..vector.octets.len() {
            let prefix = &vector.octets[..bytes];
            let says = describe::mad(prefix, LIMIT);
            assert_eq!(
                says,
                oracle::mad::describe(prefix, LIMIT),
                "{} {bytes}",
                vector.name
            );
            assert!(
                bytes >= 56 || says == "reject mad-short",
                "{} {bytes}",
                vector.name
            );
        }
    }
}

#[test]
fn every_prefix_of_a_frame_is_refused() {
    for vector in load("packet") {
        // Padding is not missed, so the vectors that have some are left out.
        if vector.name.contains("padded") {
            continue;
        }
        for bytes in 0..vector.octets.len() {
            let prefix = &vector.octets[..bytes];
            let says = describe::frame(prefix);
            assert_eq!(
                says,
                oracle::packet::describe(prefix),
                "{} {bytes}",
                vector.name
            );
            assert!(
                says.starts_with("reject "),
                "{} {bytes}: {says}",
                vector.name
            );
        }
    }
}

/// The reasons for which no vector of a folder is refused.
fn unseen(folder: &str, names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let vectors = load(folder);
    let seen = |name: &str| {
        let word = format!("reject {name}");
        vectors.iter().any(|vector| {
            vector
                .says
                .split(['|', ':'])
                .any(|part| part.trim() == word)
        })
    };
    names.filter(|name| !seen(name)).collect()
}

#[test]
fn every_refusal_of_a_management_datagram_has_a_vector() {
    // A vector is read as what it says it is: the test below asks for something else.
    let others = mad::Reject::ALL
        .iter()
        .filter(|reject| **reject != mad::Reject::Attribute);
    assert_eq!(unseen("mad", others.map(|reject| reject.name())), [""; 0]);
}

#[test]
fn every_refusal_of_a_frame_has_a_vector() {
    let names = packet::Reject::ALL.iter().map(|reject| reject.name());
    assert_eq!(unseen("packet", names), [""; 0]);
}

#[test]
fn an_answer_about_something_else_is_not_misread() {
    let vectors = load("mad");
    let vector = vectors
        .iter()
        .find(|vector| vector.name == "join-reply")
        .unwrap();
    let mad = mad::Mad::parse(&vector.octets, LIMIT).unwrap();
    assert_eq!(mad.record::<mad::Path>(), Err(mad::Reject::Attribute));
    assert_eq!(
        mad.template::<mad::PathTemplate>(),
        Err(mad::Reject::Attribute)
    );
    assert_eq!(mad.table::<mad::Path>().err(), Some(mad::Reject::Attribute));
}
