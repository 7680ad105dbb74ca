//! The look at plain messages, held against the parser and against what is emitted.

use proptest::prelude::*;
use rpcrdma_wire::plain::{PLAIN_BYTES, Plain, emit_plain, header_bytes};
use rpcrdma_wire::{Body, Direction, Limits, Version, Xid, parse};

/// A header and the first words of an RPC message, words drawn from those that matter.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![4 => Just(0_u32), 3 => Just(1), 2 => Just(2), 1 => any::<u32>()];
    (prop::collection::vec(word, 0..14), 0..4_usize).prop_map(|(words, more)| {
        let octets = words.into_iter().flat_map(u32::to_be_bytes);
        octets.chain(std::iter::repeat_n(7, more)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn sees_what_the_parser_sees(message in messages()) {
        let limits = Limits::default();
        let parsed = parse(&message, &limits).ok();
        let plain = parsed.and_then(|header| match header.body {
            Body::Msg(lists)
                if lists.reads.is_empty() && lists.writes.is_empty() && lists.reply.is_none() =>
            {
                Some(Plain {
                    xid: header.xid,
                    version: header.version,
                    credits: header.credits,
                    direction: lists.direction,
                    header_bytes: u32::try_from(header.header_bytes).unwrap(),
                })
            }
            _ => None,
        });
        let seen = Plain::peek(&message);
        // It need not see a Reply with a handle, which the parser ignores (V2-08).
        let handle = message.get(20..24).is_some_and(|handle| handle != [0; 4]);
        if handle && plain.is_some_and(|plain| plain.version == Version::Two) {
            prop_assert_eq!(seen, None);
        } else {
            prop_assert_eq!(seen, plain);
        }
    }

    #[test]
    fn sees_what_was_emitted(xid: u32, credits: u32, two: bool, reply: bool) {
        let version = if two { Version::Two } else { Version::One };
        let direction = if reply { Direction::Reply } else { Direction::Call };
        let mut room = [0xff; PLAIN_BYTES];
        let header = emit_plain(&mut room, version, Xid(xid), credits, direction);
        let mut message = header.to_vec();
        prop_assert_eq!(message.len(), header_bytes(version) as usize);
        message.extend(xid.to_be_bytes());
        message.extend(direction.code().to_be_bytes());
        let seen = Plain::peek(&message).unwrap();
        prop_assert_eq!((seen.xid, seen.version), (Xid(xid), version));
        prop_assert_eq!((seen.credits, seen.direction), (credits, direction));
    }
}
