//! RPC call and reply heads.

use crate::bodies;
use proptest::prelude::*;
use rpcrdma_wire::rpc::{
    CALL_BYTES, CallHeader, GssService, Outcome, REPLY_BYTES, ReplyHeader, emit_call, emit_reply,
    peek,
};
use rpcrdma_wire::{Direction, Xid};

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A Call with this credential.
fn call(flavor: u32, credential: &[u8]) -> Vec<u8> {
    let mut out = words(&[7, 0, 2, 100_003, 3, 7, flavor, credential.len() as u32]);
    out.extend(credential);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(words(&[0, 0]));
    out
}

#[test]
fn emitted_heads_are_read_back() {
    let mut buf = [0; 64];
    assert_eq!(emit_call(&mut buf, Xid(7), 100_003, 3, 6), Some(CALL_BYTES));
    let header = CallHeader::parse(&buf).unwrap();
    assert_eq!((header.xid, header.rpc_version), (Xid(7), 2));
    assert_eq!(
        (header.program, header.version, header.procedure),
        (100_003, 3, 6)
    );
    assert_eq!((header.flavor, header.gss, header.arguments), (0, None, 40));
    assert!(header.reducible());
    assert_eq!(peek(&buf), Some((Xid(7), Direction::Call)));

    assert_eq!(emit_reply(&mut buf, Xid(7)), Some(REPLY_BYTES));
    let header = ReplyHeader::parse(&buf).unwrap();
    assert_eq!((header.xid, header.results), (Xid(7), REPLY_BYTES));
    assert!(header.succeeded());
    assert_eq!(emit_call(&mut buf[..39], Xid(7), 1, 1, 1), None);
    assert_eq!(emit_reply(&mut buf[..23], Xid(7)), None);
}

#[test]
fn credentials_are_stepped_over_with_their_padding() {
    let message = call(1, &[9; 21]);
    assert_eq!(CallHeader::parse(&message).unwrap().arguments, 64);
    assert_eq!(
        CallHeader::parse(&call(1, &[9; 400])).unwrap().arguments,
        440
    );
    assert_eq!(CallHeader::parse(&call(1, &[9; 401])), None);
}

#[test]
fn gss_services_decide_what_may_be_reduced() {
    let cases = [
        (words(&[1, 0, 5, 1, 0]), GssService::None),
        (words(&[1, 0, 5, 2, 0]), GssService::Integrity),
        (words(&[1, 0, 5, 3, 0]), GssService::Privacy),
        (words(&[1, 1, 5, 1, 0]), GssService::Other),
        (words(&[2, 0, 5, 1, 0]), GssService::Other),
        (words(&[1, 0, 5, 4, 0]), GssService::Other),
        (words(&[1, 0, 5]), GssService::Other),
    ];
    for (credential, service) in cases {
        let header = CallHeader::parse(&call(6, &credential)).unwrap();
        assert_eq!(header.gss, Some(service));
        assert_eq!(header.reducible(), service == GssService::None);
    }
}

#[test]
fn replies_of_every_kind() {
    let accepted = words(&[7, 1, 0, 0, 0, 4]);
    let header = ReplyHeader::parse(&accepted).unwrap();
    assert_eq!(header.outcome, Outcome::Accepted(4));
    assert!(!header.succeeded());
    let denied = words(&[7, 1, 1, 1, 5]);
    let header = ReplyHeader::parse(&denied).unwrap();
    assert_eq!((header.outcome, header.results), (Outcome::Denied(1), 16));
    assert_eq!(ReplyHeader::parse(&words(&[7, 1, 2, 0])), None);
    assert_eq!(ReplyHeader::parse(&words(&[7, 0, 0, 0, 0, 0])), None);
    assert_eq!(CallHeader::parse(&accepted), None);
    assert_eq!(peek(&words(&[7, 2])), None);
    assert_eq!(peek(&words(&[7, 1])[..7]), None);
}

proptest! {
    #[test]
    fn any_credential_and_any_cut(flavor in 0..8_u32, credential in proptest::collection::vec(any::<u8>(), 0..420), cut in any::<prop::sample::Index>()) {
        let message = call(flavor, &credential);
        bodies::rpc(&message);
        bodies::rpc(&message[..cut.index(message.len())]);
    }
}
