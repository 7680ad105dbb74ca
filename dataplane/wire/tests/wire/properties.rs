//! Property values, sets and subsets.

use rpcrdma_wire::emit::{emit_connprop, emit_resprop};
use rpcrdma_wire::{BackwardRequests, Body, Limits, Property, Reject, Xid, parse};

#[test]
fn values_are_read_as_the_rulings_say() {
    let bytes = |n: u32| n.to_be_bytes();
    let good = |n| Ok(Property::ReceiveBufferSize(n));
    assert_eq!(Property::decode(1, &[]), good(4096));
    assert_eq!(Property::decode(1, &bytes(1024)), good(1024));
    assert_eq!(Property::decode(1, &bytes(u32::MAX)), good(u32::MAX));
    assert_eq!(
        Property::decode(1, &bytes(1023)),
        Err(Reject::PropertyValue)
    );
    assert_eq!(Property::decode(1, &[0; 3]), Err(Reject::PropertyValue));
    assert_eq!(Property::decode(1, &[1; 8]), Err(Reject::PropertyValue));
    let brs = |which| Ok(Property::BackwardRequests(which));
    assert_eq!(Property::decode(2, &[]), brs(BackwardRequests::Inline));
    assert_eq!(Property::decode(2, &bytes(0)), brs(BackwardRequests::None));
    assert_eq!(
        Property::decode(2, &bytes(2)),
        brs(BackwardRequests::General)
    );
    assert_eq!(Property::decode(2, &bytes(3)), Err(Reject::PropertyValue));
    assert_eq!(Property::decode(0xFFFF_FFFF, &[1]), Ok(Property::Unknown));
}

#[test]
fn what_is_encoded_is_decoded() {
    for property in [
        Property::ReceiveBufferSize(8192),
        Property::BackwardRequests(BackwardRequests::None),
        Property::BackwardRequests(BackwardRequests::Inline),
        Property::BackwardRequests(BackwardRequests::General),
    ] {
        let (id, data) = property.encode().unwrap();
        assert_eq!(Property::decode(id, &data), Ok(property));
    }
    assert_eq!(Property::Unknown.encode(), None);
}

#[test]
fn the_last_of_two_counts_and_unknown_ones_keep_their_place() {
    let mut buf = [0; 128];
    let set = [(1, &[0, 0, 16, 0][..]), (77, b"x"), (1, &[0, 0, 32, 0])];
    let bytes = emit_connprop(&mut buf, Xid(1), 1, set, [0b110]).unwrap();
    let header = parse(&buf[..bytes], &Limits::default()).unwrap();
    let Body::ConnProp { start, nochg } = header.body else {
        panic!("{:?}", header.body);
    };
    assert_eq!(start.last(1), Some(2));
    assert_eq!(start.last(2), None);
    let values: Vec<_> = start.values().collect();
    assert_eq!(values[1], (1, Property::Unknown));
    assert_eq!(values[2], (2, Property::ReceiveBufferSize(8192)));
    assert_eq!(nochg.iter().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn subsets_are_bit_masks_over_positions() {
    let mut buf = [0; 128];
    let bytes = emit_resprop(&mut buf, Xid(1), 1, [1 << 31, 1], [], []).unwrap();
    let header = parse(&buf[..bytes], &Limits::default()).unwrap();
    let Body::RespProp { done, rejected, .. } = header.body else {
        panic!("{:?}", header.body);
    };
    assert_eq!(done.iter().collect::<Vec<_>>(), [31, 32]);
    assert!(done.contains(31) && done.contains(32));
    assert!(!done.contains(0) && !done.contains(63) && !done.contains(u32::MAX));
    assert!(done.within(33) && !done.within(32));
    assert!(rejected.within(0) && rejected.iter().next().is_none());
}
