//! Golden vectors: one file each, a sentence, the chunk, what it is or what is wrong with it. And
//! the oracle, which has to be of the same mind, about them and about any other octets.

use crate::bodies;
use crate::describe::describe;
use crate::oracle::consult;
use crate::support::*;
use proptest::prelude::*;
use rpcrdma_fabric::{Access, WorkId};
use rpcrdma_iwarp::rdmap::{Opcode, sort};
use rpcrdma_iwarp::{Stag, ddp};
use std::collections::BTreeSet;
use std::path::Path;

struct Vector {
    name: String,
    ppid: u32,
    octets: Vec<u8>,
    /// What it is, or the name of what is wrong with it.
    outcome: Result<String, String>,
}

fn load() -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Vector {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.starts_with("# "), "{name}: no sentence");
    let field = |key: &str| -> Vec<&str> {
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.filter(|(k, _)| *k == key).map(|(_, v)| v).collect()
    };
    let outcome = match (&field("accept")[..], &field("reject")[..]) {
        ([what], []) => Ok((*what).to_owned()),
        ([], [what]) => Err((*what).to_owned()),
        _ => panic!("{name}: one of accept and reject"),
    };
    Vector {
        ppid: field("ppid")[0].parse().unwrap(),
        octets: hex::decode(field("hex").concat().replace(' ', "")).unwrap(),
        outcome,
        name,
    }
}

#[test]
fn each_is_what_it_says() {
    for vector in load() {
        let found = describe(vector.ppid, &vector.octets).map_err(|it| it.name().to_owned());
        assert_eq!(found, vector.outcome, "{}", vector.name);
    }
}

#[test]
fn the_oracle_agrees() {
    for vector in load() {
        let found = consult(vector.ppid, &vector.octets).map_err(str::to_owned);
        assert_eq!(found, vector.outcome, "{}", vector.name);
    }
}

/// Whatever is cut off, the crate and the oracle say the same of what is left; and below the
/// header nothing is taken.
#[test]
fn every_prefix_of_every_vector() {
    for vector in load() {
        for len in 0..vector.octets.len() {
            let prefix = &vector.octets[..len];
            let found = describe(vector.ppid, prefix);
            if len < 4 || (vector.ppid == 16 && len < 16) {
                assert!(found.is_err(), "{}: {len}", vector.name);
            }
            bodies::segment(&[&(vector.ppid as u8).to_be_bytes()[..], prefix].concat());
        }
    }
}

/// Every kind of message is among them, in one segment and, where it can be, in the middle of
/// several.
#[test]
fn there_is_one_of_every_kind() {
    let kinds: BTreeSet<String> = load()
        .iter()
        .filter_map(|vector| vector.outcome.as_ref().ok())
        .map(|what| what.split(' ').nth(2).unwrap().to_owned())
        .collect();
    let wanted = [
        "accept",
        "enhanced-accept",
        "enhanced-initiate",
        "enhanced-reject",
        "initiate",
        "read-request",
        "read-response",
        "reject",
        "send",
        "send-invalidate",
        "send-solicited",
        "send-solicited-invalidate",
        "terminate",
        "terminate-message",
        "write",
    ];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), wanted);
}

/// What this side sends is what the texts say, in the oracle's reading.
#[test]
fn what_is_sent_is_what_is_meant() {
    let mut pair = Pair::open();
    let stag = Some(Stag(0xCAFE));
    let to = rpcrdma_fabric::Segment {
        handle: rpcrdma_fabric::Handle(0xBEEF),
        length: 600,
        offset: u64::MAX - 10_000,
    };
    let source = pair.a.open(span(0, 600), Access::Read);
    let endpoint = pair.a.endpoint();
    endpoint
        .send(&[span(0, 5)], None, false, WorkId(1))
        .unwrap();
    endpoint
        .send(&[span(0, 500)], stag, true, WorkId(2))
        .unwrap();
    endpoint.write(span(0, 600), to, WorkId(3)).unwrap();
    endpoint.read(span(0, 600), to, WorkId(4)).unwrap();
    pair.a.pump();
    let request = rpcrdma_iwarp::rdmap::ReadRequest {
        sink: Stag(0xF00D),
        sink_to: 77,
        size: 600,
        source: source.handle.into(),
        source_to: source.offset,
    };
    pair.a
        .receive(&untagged(1, 1, true, (1, 1, 0), &request.octets()));
    pair.a.receive(&untagged(2, 3, true, (9, 1, 0), b""));
    pair.a.pump();
    let said: Vec<String> = pair
        .a
        .out
        .chunks
        .iter()
        .map(|chunk| {
            let said = consult(chunk.ppid, &chunk.octets).unwrap();
            assert_eq!(Ok(&said), describe(chunk.ppid, &chunk.octets).as_ref());
            said
        })
        .collect();
    let wanted = [
        "ssn 1 send last msn 1 mo 0 payload 5",
        "ssn 2 send-solicited-invalidate invalidate 0xcafe msn 2 mo 0 payload 498",
        "ssn 3 send-solicited-invalidate last invalidate 0xcafe msn 2 mo 498 payload 2",
        "ssn 4 write stag 0xbeef to 0xffffffffffffd8ef payload 502",
        "ssn 5 write last stag 0xbeef to 0xffffffffffffdae5 payload 98",
        "ssn 6 read-request last msn 1 mo 0 payload 28 sink ",
        "ssn 7 terminate-message last msn 1 mo 0 payload 24 layer 1 type 2 code 1 request 0",
        "ssn 8 terminate data 0",
    ];
    assert_eq!(said.len(), wanted.len());
    for (said, wanted) in said.iter().zip(wanted) {
        assert!(said.starts_with(wanted), "{said}\n{wanted}");
    }
    assert!(said[5].ends_with("size 600 source 0xbeef at 0xffffffffffffd8ef"));
}

/// Headers come back as they were, but for the bits that are reserved and sent as zero.
#[test]
fn emission_is_the_reverse_of_parsing() {
    for vector in load() {
        if vector.ppid != 16 || vector.outcome.is_err() {
            continue;
        }
        let segment = &vector.octets[2..];
        let (header, payload) = ddp::parse(segment).unwrap();
        let mut out = vec![0; segment.len()];
        let rest = match header {
            ddp::Header::Tagged(header) => header.emit(&mut out),
            ddp::Header::Untagged(header) => header.emit(&mut out),
        };
        rest.unwrap().copy_from_slice(payload);
        let mut wanted = segment.to_vec();
        wanted[0] &= 0xC3;
        assert_eq!(out, wanted, "{}", vector.name);
        assert!(sort(header).is_ok());
        let opcode = Opcode::parse(segment[1]).unwrap();
        assert_eq!(opcode.control(), segment[1] & 0xCF);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn the_oracle_agrees_about_anything(
        ppid in prop_oneof![Just(16_u8), Just(17), any::<u8>()],
        octets in prop::collection::vec(any::<u8>(), 0..64),
        head in prop_oneof![Just(None), (0..8_u8, 0..16_u8, 0..4_u32).prop_map(Some)],
    ) {
        let mut chunk = vec![ppid];
        chunk.extend(octets);
        // Most random octets have the wrong versions and no queue.
        if let Some((bits, opcode, queue)) = head {
            if chunk.len() >= 5 {
                chunk[3] = bits << 5 | 1;
                chunk[4] = 0x40 | opcode;
            }
            if chunk.len() >= 13 && bits & 4 == 0 {
                chunk[9..13].copy_from_slice(&queue.to_be_bytes());
            }
        }
        bodies::segment(&chunk);
    }
}
