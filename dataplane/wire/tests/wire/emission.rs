//! What is emitted: exact octets, exact sizes, all or nothing.

use rpcrdma_wire::emit::{emit_connprop, emit_optional, emit_reqprop};
use rpcrdma_wire::{
    Body, Direction, Emitter, ErrorBody, Handle, Limits, Optional, Procedure, Segment, Version,
    Xid, emit_error, message_bytes, parse,
};

const XID: Xid = Xid(0xAABB_CCDD);

fn segment(handle: u32) -> Segment {
    Segment {
        handle: Handle(handle),
        length: 0x0102_0304,
        offset: 0x1112_1314_1516_1718,
    }
}

fn emit(buf: &mut [u8], version: Version) -> Option<usize> {
    let mut out = Emitter::new(buf);
    out.start(version, XID, 9, Procedure::NoMsg)
        .direction(Direction::Call, Some(Handle(2)))
        .read(0, segment(1))
        .end_reads()
        .write_chunk([segment(2), segment(3)].into_iter())
        .write_chunk(std::iter::empty())
        .end_writes()
        .reply_chunk(Some([segment(4)].into_iter()))
        .finish()
}

#[test]
fn octets_are_those_of_the_specification() {
    let mut buf = [0; 256];
    let bytes = emit(&mut buf, Version::Two).unwrap();
    let segment = |handle: &str| format!("000000{handle}010203041112131415161718");
    let expected = [
        "aabbccdd 00000002 00000009 00000001 00000000 00000002",
        "00000001 00000000",
        &segment("01"),
        "00000000 00000001 00000002",
        &segment("02"),
        &segment("03"),
        "00000001 00000000 00000000 00000001 00000001",
        &segment("04"),
    ];
    assert_eq!(
        hex::encode(&buf[..bytes]),
        expected.concat().replace(' ', "")
    );
}

#[test]
fn sizes_are_known_beforehand_and_short_buffers_overflow() {
    for version in [Version::One, Version::Two] {
        let bytes = message_bytes(version, 1, 2, 2, Some(1));
        for room in 0..bytes {
            let mut buf = vec![0xA5; bytes];
            assert_eq!(emit(&mut buf[..room], version), None, "{room}");
            assert!(buf[room..].iter().all(|octet| *octet == 0xA5));
        }
        assert_eq!(emit(&mut vec![0; bytes], version), Some(bytes));
    }
}

#[test]
fn the_shortest_headers_are_28_and_36_octets() {
    assert_eq!(message_bytes(Version::One, 0, 0, 0, None), 28);
    assert_eq!(message_bytes(Version::Two, 0, 0, 0, None), 36);
}

#[test]
fn a_reply_names_no_handle_to_invalidate() {
    let mut buf = [0xFF; 64];
    let mut out = Emitter::new(&mut buf);
    out.start(Version::Two, XID, 1, Procedure::Msg);
    out.direction(Direction::Reply, Some(Handle(7)));
    assert_eq!(out.finish(), Some(24));
    assert_eq!(buf[16..24], [0, 0, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn errors_come_back_as_they_were() {
    let bodies = [
        ErrorBody::Version { low: 1, high: 2 },
        ErrorBody::Chunk,
        ErrorBody::ReplyResource {
            segment: 3,
            length: 70_000,
        },
        ErrorBody::InvalProc,
        ErrorBody::InvalOption,
        ErrorBody::System,
    ];
    for body in bodies {
        let mut buf = [0; 28];
        let bytes = emit_error(&mut buf, 2, XID, 5, body).unwrap();
        assert_eq!(emit_error(&mut vec![0; bytes - 1], 2, XID, 5, body), None);
        let header = parse(&buf[..bytes], &Limits::default()).unwrap();
        assert_eq!((header.xid, header.credits), (XID, 5));
        assert!(matches!(header.body, Body::Error(found) if found == body));
    }
}

#[test]
fn an_error_carries_the_version_of_its_cause() {
    let mut buf = [0; 28];
    let body = ErrorBody::Version { low: 1, high: 2 };
    emit_error(&mut buf, 0x0700_0007, XID, 1, body).unwrap();
    assert_eq!(buf[4..8], [7, 0, 0, 7]);
}

#[test]
fn an_option_can_be_looked_at_though_it_is_refused() {
    let mut buf = [0; 64];
    let bytes = emit_optional(&mut buf, XID, 1, Direction::Call, 99, b"hello").unwrap();
    let message = &buf[..bytes];
    assert!(parse(message, &Limits::default()).is_err());
    let optional = Optional::peek(message).unwrap();
    assert_eq!((optional.option, optional.info), (99, &b"hello"[..]));
    assert_eq!(Optional::peek(&message[..bytes - 1]), None);
}

#[test]
fn property_messages_overflow_in_any_part() {
    let set = || [(1, &[0, 0, 32, 0][..]), (9, b"odd")];
    let bytes = emit_connprop(&mut [0; 128], XID, 1, set(), [3]).unwrap();
    assert_eq!(bytes, 16 + 4 + 12 + 12 + 8);
    for room in 0..bytes {
        assert_eq!(emit_connprop(&mut vec![0; room], XID, 1, set(), [3]), None);
    }
    assert_eq!(emit_reqprop(&mut [0; 19], XID, 1, []), None);
    assert_eq!(emit_reqprop(&mut [0; 20], XID, 1, []), Some(20));
}
