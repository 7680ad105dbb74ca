//! Messages to order: mostly good, near the edges of every rule, and then spoilt.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

pub(crate) const XID: u32 = 0x0A0B_0C0D;

type Seg = (u32, u32, u64);

/// A word that some rule is likely to care about.
fn word() -> impl Strategy<Value = u32> {
    select(vec![
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        16,
        17,
        31,
        32,
        33,
        40,
        1023,
        1024,
        u32::MAX,
    ])
}

fn segment() -> impl Strategy<Value = Seg> {
    let length = prop_oneof![
        8 => select(vec![0, 1, 3, 4, 5, 8, 12, 4096, 4999, 5000]),
        1 => select(vec![(4 << 20) | (64 << 10), (4 << 20) | (64 << 10) | 1, u32::MAX]),
    ];
    let offset = prop_oneof![
        8 => select(vec![0, 0x7F00_0000_1000]),
        1 => select(vec![u64::MAX, u64::MAX - 4, u64::MAX - 4096]),
    ];
    (1..5_u32, length, offset)
}

fn position() -> impl Strategy<Value = u32> {
    prop_oneof![
        12 => (0..14_u32).prop_map(|n| 4 * n),
        1 => 0..60_u32,
        1 => select(vec![4136, 4140, u32::MAX - 3, u32::MAX]),
    ]
}

fn chunk() -> impl Strategy<Value = Vec<Seg>> {
    prop_oneof![8 => vec(segment(), 0..4), 1 => vec(segment(), 15..19)]
}

fn put(out: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

fn put_segments(out: &mut Vec<u8>, segments: &[Seg]) {
    for (handle, length, offset) in segments {
        put(out, &[*handle, *length]);
        out.extend_from_slice(&offset.to_be_bytes());
    }
}

fn put_chunk(out: &mut Vec<u8>, segments: &[Seg]) {
    put(out, &[1, segments.len() as u32]);
    put_segments(out, segments);
}

prop_compose! {
    fn lists()(
        reads in prop_oneof![8 => vec((position(), segment()), 0..5), 1 => vec((position(), segment()), 15..19)],
        writes in prop_oneof![8 => vec(chunk(), 0..4), 1 => vec(chunk(), 8..10)],
        reply in option::of(chunk()),
    ) -> Vec<u8> {
        let mut out = Vec::new();
        for (position, segment) in &reads {
            put(&mut out, &[1, *position]);
            put_segments(&mut out, &[*segment]);
        }
        put(&mut out, &[0]);
        for write in &writes {
            put_chunk(&mut out, write);
        }
        put(&mut out, &[0]);
        match &reply {
            Some(reply) => put_chunk(&mut out, reply),
            None => put(&mut out, &[0]),
        }
        out
    }
}

prop_compose! {
    fn payload()(
        kind in prop_oneof![6 => Just(0_u32), 3 => Just(1_u32), 1 => Just(2_u32)],
        xid in prop_oneof![12 => Just(XID), 1 => Just(7_u32)],
        octets in select(vec![0_usize, 4, 7, 8, 24, 40, 40, 40, 44, 60]),
    ) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, &[xid, kind]);
        out.resize(octets, 0);
        out
    }
}

prop_compose! {
    /// An MSG or NOMSG of either version.
    fn rpc()(
        two in any::<bool>(),
        nomsg in prop_oneof![2 => Just(false), 1 => Just(true)],
        credits in word(),
        direction in prop_oneof![6 => Just(0_u32), 3 => Just(1_u32), 1 => Just(2_u32)],
        inv in prop_oneof![4 => Just(0_u32), 4 => 1..6_u32],
        lists in lists(),
        payload in payload(),
    ) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, &[XID, 1 + u32::from(two), credits, u32::from(nomsg)]);
        if two {
            put(&mut out, &[direction, inv]);
        }
        out.extend(lists);
        if !nomsg {
            out.extend(payload);
        }
        out
    }
}

fn property() -> impl Strategy<Value = (u32, Vec<u8>)> {
    let id = select(vec![1, 1, 2, 2, 3, 0xFFFF_FF00]);
    let word = word().prop_map(|word| word.to_be_bytes().to_vec());
    (
        id,
        prop_oneof![6 => word, 2 => vec(any::<u8>(), 0..10), 1 => vec(any::<u8>(), 255..259)],
    )
}

fn set() -> impl Strategy<Value = Vec<u8>> {
    let count = prop_oneof![12 => 0..4_usize, 1 => 31..35_usize];
    count
        .prop_flat_map(|count| vec(property(), count))
        .prop_map(|properties| {
            let mut out = Vec::new();
            put(&mut out, &[properties.len() as u32]);
            for (id, data) in &properties {
                put(&mut out, &[*id, data.len() as u32]);
                out.extend(data);
                out.resize(out.len().next_multiple_of(4), 0);
            }
            out
        })
}

fn subset() -> impl Strategy<Value = Vec<u8>> {
    let words = vec(select(vec![0, 0, 1, 2, 3, 4, 0x8000_0000]), 0..3);
    words.prop_map(|words| {
        let mut out = Vec::new();
        put(&mut out, &[words.len() as u32]);
        put(&mut out, &words);
        out
    })
}

/// Everything that is not an MSG or NOMSG.
fn control() -> impl Strategy<Value = Vec<u8>> {
    let body = prop_oneof![
        (
            Just(4),
            vec(word(), 0..4).prop_map(|words| {
                let mut out = Vec::new();
                put(&mut out, &words);
                out
            })
        ),
        (
            Just(5),
            (0..3_u32, word(), vec(any::<u8>(), 0..9)).prop_map(|(direction, kind, info)| {
                let mut out = Vec::new();
                put(&mut out, &[direction, kind, info.len() as u32]);
                out.extend(info);
                out.resize(out.len().next_multiple_of(4), 0);
                out
            })
        ),
        (
            Just(6),
            (set(), subset()).prop_map(|(set, subset)| [set, subset].concat())
        ),
        (Just(7), set()),
        (
            Just(8),
            (subset(), subset(), set()).prop_map(|(a, b, set)| [a, b, set].concat())
        ),
        (Just(9), set()),
        (word(), vec(any::<u8>(), 0..40)),
    ];
    let vers = prop_oneof![8 => Just(2_u32), 3 => Just(1_u32), 1 => word()];
    (vers, body, prop_oneof![8 => Just(0_usize), 1 => 1..9_usize]).prop_map(
        |(vers, (proc, body), trailing)| {
            let mut out = Vec::new();
            put(&mut out, &[XID, vers, 1, proc]);
            out.extend(body);
            out.resize(out.len() + trailing, 0);
            out
        },
    )
}

/// A message with nothing done to it.
pub(crate) fn fresh() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![3 => rpc(), 2 => control()]
}

/// One way to spoil a message.
#[derive(Clone, Debug)]
enum Fault {
    Word(prop::sample::Index, u32),
    Octet(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Longer(Vec<u8>),
}

fn fault() -> impl Strategy<Value = Fault> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        4 => (at(), word()).prop_map(|(at, word)| Fault::Word(at, word)),
        2 => (at(), any::<u8>()).prop_map(|(at, octet)| Fault::Octet(at, octet)),
        1 => at().prop_map(Fault::Cut),
        1 => vec(any::<u8>(), 1..20).prop_map(Fault::Longer),
    ]
}

fn spoil(octets: &mut Vec<u8>, fault: &Fault) {
    if octets.len() < 4 {
        return;
    }
    match fault {
        Fault::Word(at, word) => {
            let at = 4 * at.index(octets.len() / 4);
            octets[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
        Fault::Octet(at, octet) => {
            let at = at.index(octets.len());
            octets[at] = *octet;
        }
        Fault::Cut(at) => octets.truncate(at.index(octets.len())),
        Fault::Longer(more) => octets.extend(more),
    }
}

/// A message with up to three things done to it.
pub(crate) fn spoilt() -> impl Strategy<Value = Vec<u8>> {
    (fresh(), vec(fault(), 1..4)).prop_map(|(mut octets, faults)| {
        for fault in &faults {
            spoil(&mut octets, fault);
        }
        octets
    })
}
