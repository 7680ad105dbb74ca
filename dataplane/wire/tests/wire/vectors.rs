//! The golden vectors: what they say, what they cover, and every prefix of them.

use crate::bodies;
use crate::describe::{describe, describe_oracle, oracle_limit};
use crate::oracle::{Opinion, consult};
use crate::vector::{Outcome, Vector, load};
use rpcrdma_wire::{
    Answer, FixedHeader, Limits, Reject, Role, answer, emit_error, parse, parse_as, role_of,
};
use std::collections::BTreeSet;

/// Credits in the errors that the vectors show.
const CREDITS: u32 = 1;

fn check(vector: &Vector) {
    let Vector { name, octets, .. } = vector;
    let result = parse_as(octets, &Limits::default(), vector.role);
    match (&vector.outcome, result) {
        (Outcome::Accept(text), Ok(header)) => assert_eq!(describe(&header), *text, "{name}"),
        (Outcome::Reject(reject, reply, hex), Err(found)) => {
            assert_eq!(found, *reject, "{name}");
            let answer = answer(found, octets, vector.role);
            assert_eq!(answer.name(), reply, "{name}");
            assert_eq!(emitted(answer, octets), *hex, "{name}");
        }
        (_, result) => panic!("{name}: {:?}", result.map(|header| describe(&header))),
    }
}

fn emitted(answer: Answer, message: &[u8]) -> Option<Vec<u8>> {
    let error = answer.error(1, 2)?;
    let fixed = FixedHeader::peek(message)?;
    let mut buf = vec![0; 28];
    let bytes = emit_error(&mut buf, fixed.vers, fixed.xid, CREDITS, error)?;
    buf.truncate(bytes);
    Some(buf)
}

#[test]
fn each_is_judged_as_it_says() {
    load().iter().for_each(check);
}

/// The oracle has no role but the one the message tells.
#[test]
fn the_oracle_agrees() {
    let limit = oracle_limit(&Limits::default());
    for vector in load() {
        if vector.role != role_of(&vector.octets) {
            continue;
        }
        match (&vector.outcome, consult(&vector.octets, &limit)) {
            (Outcome::Accept(text), Opinion::Good(message)) => {
                assert_eq!(describe_oracle(&message), *text, "{}", vector.name);
            }
            (Outcome::Reject(_, answer, _), Opinion::Bad(goes_back)) => {
                assert_eq!(goes_back, answer, "{}", vector.name);
            }
            (_, opinion) => panic!("{}: {opinion:?}", vector.name),
        }
    }
}

#[test]
fn every_reject_has_a_vector() {
    let mut missing: BTreeSet<&str> = Reject::ALL.iter().map(|reject| reject.name()).collect();
    for vector in load() {
        if let Outcome::Reject(reject, ..) = vector.outcome {
            missing.remove(reject.name());
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

/// The rulings that one message can show. The others are about a connection: its credits, its
/// order of events, its buffers.
#[test]
fn every_ruling_of_one_message_has_a_vector() {
    let one = [1, 2, 3, 4, 5, 6, 7, 8, 12].map(|n| format!("V1-{n:02}"));
    let two = [
        1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 21, 22, 23,
    ];
    let two = two.map(|n| format!("V2-{n:02}"));
    let wanted: BTreeSet<String> = one.into_iter().chain(two).collect();
    let shown: BTreeSet<String> = load().into_iter().flat_map(|v| v.rulings).collect();
    assert_eq!(shown, wanted);
}

#[test]
fn every_answer_a_refusal_can_have_is_shown() {
    let answers: BTreeSet<String> = load()
        .into_iter()
        .filter_map(|vector| match vector.outcome {
            Outcome::Reject(_, answer, _) => Some(answer),
            Outcome::Accept(_) => None,
        })
        .collect();
    let wanted = [
        "BAD_XDR",
        "ERR_CHUNK",
        "ERR_VERS",
        "INVAL_OPTION",
        "INVAL_PROC",
        "drop",
    ];
    assert!(answers.iter().eq(wanted));
}

/// What a prefix of a message may be: too short, cut off, or a whole message by itself.
#[test]
fn every_prefix_is_judged_and_the_oracle_agrees() {
    for vector in load() {
        for end in 0..vector.octets.len() {
            let prefix = &vector.octets[..end];
            // The oracle is slow: of the longest messages it sees the beginning.
            if end <= 1024 {
                bodies::parse(prefix);
            }
            if let Err(reject) = parse(prefix, &Limits::default()) {
                let _ = answer(reject, prefix, role_of(prefix));
            }
        }
    }
}

#[test]
fn a_requester_answers_nothing_but_an_unknown_version() {
    let message = [0; 64];
    for reject in Reject::ALL {
        let expected = match reject {
            Reject::UnknownVersion => Answer::ErrVers,
            _ => Answer::Drop,
        };
        assert_eq!(answer(*reject, &message, Role::Requester), expected);
    }
}

#[test]
fn indexes_are_dense_and_names_differ() {
    let names: BTreeSet<&str> = Reject::ALL.iter().map(|reject| reject.name()).collect();
    assert_eq!(names.len(), Reject::COUNT);
    for (index, reject) in Reject::ALL.iter().enumerate() {
        assert_eq!(reject.index(), index);
    }
}
