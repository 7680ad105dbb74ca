//! A second opinion on octets that are nearly right: the vectors with a little changed.

use crate::bodies;
use crate::vector::load;
use proptest::prelude::*;
use proptest::sample::Index;

/// One change of octets.
#[derive(Clone, Debug)]
enum Change {
    /// Another value somewhere.
    Octet(Index, u8),
    /// Cut short.
    Cut(Index),
    /// Something behind.
    More(Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    let octet = prop_oneof![any::<u8>(), (0_u8..8).prop_map(|bit| 1 << bit)];
    prop_oneof![
        8 => (any::<Index>(), octet).prop_map(|(at, octet)| Change::Octet(at, octet)),
        1 => any::<Index>().prop_map(Change::Cut),
        1 => proptest::collection::vec(any::<u8>(), 0..80).prop_map(Change::More),
    ]
}

fn changed(folder: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let vectors: Vec<Vec<u8>> = load(folder).into_iter().map(|it| it.octets).collect();
    let changes = proptest::collection::vec(change(), 0..4);
    (proptest::sample::select(vectors), changes).prop_map(|(mut octets, changes)| {
        for change in changes {
            match change {
                Change::Octet(at, octet) if !octets.is_empty() => {
                    let at = at.index(octets.len());
                    octets[at] ^= octet;
                }
                Change::Octet(..) => {}
                Change::Cut(at) => octets.truncate(at.index(octets.len() + 1)),
                Change::More(more) => octets.extend(more),
            }
        }
        octets
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn on_management_datagrams(octets in changed("mad")) {
        bodies::mad(&octets);
    }

    #[test]
    fn on_frames(octets in changed("packet")) {
        bodies::encapsulation(&octets);
    }

    #[test]
    fn on_messages_of_arp(octets in changed("packet")) {
        bodies::arp(octets.get(4..).unwrap_or(&[]));
    }

    #[test]
    fn on_messages_of_neighbour_discovery(octets in changed("packet")) {
        bodies::discovery(octets.get(12..).unwrap_or(&[]));
    }
}
