//! Random traffic through both gateways: sizes, order, shortage of memory and the end are drawn
//! from a seed. Every call is answered once and truly, or both connections end; nothing leaks.

mod pair;

use pair::tcp::{
    BACK, Gateways, NFS, NLM, call, error, payload, read_call, read_reply, reply, write_call,
    write_reply,
};
use pair::{CLIENT, SERVER, setups};
use proptest::prelude::*;
use rpcrdma_wire::Version;
use std::collections::HashMap;

/// What a client asks, and what the server will say to it.
#[derive(Clone, Debug)]
enum Ask {
    Null,
    Read { count: u16, short: bool },
    ReadFails { count: u16 },
    Write { len: u16 },
    Unbound { there: u16, back: u16 },
    Unserved,
}

impl Ask {
    /// The Call, and the Reply in the end.
    fn records(&self, xid: u32) -> (Vec<u8>, Vec<u8>) {
        let seed = xid.to_be_bytes()[3];
        match *self {
            Ask::Null => (call(xid, NFS, 0, &[]), reply(xid, &[])),
            Ask::Read { count, short } => {
                let len = if short { count / 2 } else { count };
                let data = payload(len.into(), seed);
                (read_call(xid, count.into()), read_reply(xid, &data))
            }
            Ask::ReadFails { count } => (read_call(xid, count.into()), reply(xid, &[0, 0, 0, 5])),
            Ask::Write { len } => {
                let data = payload(len.into(), seed);
                (write_call(xid, &data), write_reply(xid, len.into()))
            }
            Ask::Unbound { there, back } => {
                let (there, back) = (payload(there.into(), seed), payload(back.into(), !seed));
                (call(xid, NLM, 3, &there), reply(xid, &back))
            }
            Ask::Unserved => (call(xid, 200_000, 1, &[]), error(xid, 1)),
        }
    }
}

fn ask() -> impl Strategy<Value = Ask> {
    let len = || prop_oneof![0..2000_u16, 3000..5000_u16, 0..40_000_u16];
    prop_oneof![
        Just(Ask::Null),
        (len(), any::<bool>()).prop_map(|(count, short)| Ask::Read { count, short }),
        len().prop_map(|count| Ask::ReadFails { count }),
        len().prop_map(|len| Ask::Write { len }),
        (len(), len()).prop_map(|(there, back)| Ask::Unbound { there, back }),
        Just(Ask::Unserved),
    ]
}

/// How it ends.
#[derive(Clone, Copy, Debug)]
enum End {
    ClientLeaves,
    BackendLeaves,
    FabricBreaks,
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::One), Just(Version::Two)]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::ClientLeaves),
        Just(End::BackendLeaves),
        Just(End::FabricBreaks)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_call_is_answered_once_and_truly(
        asks in proptest::collection::vec(ask(), 1..40),
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 40),
        room in prop_oneof![Just(u64::MAX >> 1), 150_000..400_000_u64],
        (client, server) in (version(), version()),
        last in proptest::collection::vec(ask(), 0..6),
        turns in 0..4_usize,
        end in end(),
    ) {
        let mut all = Gateways::with(setups(client, server), &BACK);
        all.exchange(&call(1, NFS, 0, &[]), &reply(1, &[]));
        for side in [CLIENT, SERVER] {
            let half = &mut all.pair.world.halves[side];
            half.ceiling = Some(half.in_use().saturating_add(room));
        }
        let mut expected = HashMap::new();
        for (xid, ask) in (100..).zip(&asks) {
            let (there, back) = ask.records(xid);
            all.client.send(&there);
            expected.insert(xid, (there, back));
        }
        let mut held: Vec<u32> = Vec::new();
        let mut picks = picks.iter().cycle();
        while !expected.is_empty() {
            all.until("an answer", |all| {
                while let Some(record) = all.server().record() {
                    let xid = u32::from_be_bytes(*record.first_chunk().unwrap());
                    assert!(expected[&xid].0 == record, "call {xid} changed on its way");
                    held.push(xid);
                }
                if !held.is_empty() {
                    let pick = picks.next().unwrap().index(held.len());
                    let xid = held.swap_remove(pick);
                    all.server().send(&expected[&xid].1);
                }
                let record = all.client.record()?;
                let xid = u32::from_be_bytes(*record.first_chunk().unwrap());
                let (_, back) = expected.remove(&xid).expect("answered once");
                assert!(back == record, "reply {xid} changed on its way");
                Some(())
            });
        }
        for (xid, ask) in (1000..).zip(&last) {
            all.client.send(&ask.records(xid).0);
        }
        for _ in 0..turns {
            all.turn();
        }
        match end {
            End::FabricBreaks => all.pair.world.cut(),
            End::BackendLeaves => {
                all.server().close();
                // It may have owed nothing.
                all.settle();
                all.pair.world.cut();
            }
            End::ClientLeaves => {
                all.client.drop_stream();
                all.pair.now += std::time::Duration::from_secs(1);
                all.settle();
                all.pair.now += rpcrdma_upper::back::LINGER;
            }
        }
        all.closed();
    }
}
