//! What a message of 1 KiB costs in DDP, RDMAP and the adaptation to SCTP, on each side, without
//! the layer below: sending into a buffer, and taking the same chunk with its numbers counted on.
//! Beside them a floor: copying the message once, which both do.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rpcrdma_fabric::{Access, Segment, Span, WorkId};
use rpcrdma_iwarp::{
    Association, Busy, Depths, Domain, Endpoint, Event, Indication, Local, Lower, Memory, Outfit,
    Owner, Party, Ppid, Scope, SegmentBytes, Settings, StagTable, StreamId,
};
use std::hint::black_box;

const STREAM: StreamId = StreamId(0);
const LEN: u32 = 1024;
const FROM: Span = Span {
    offset: 4096,
    len: LEN,
};
const PARTY: Party = Party {
    owner: Owner(1),
    domain: Domain(1),
};

struct Ram(Vec<u8>);

impl Memory for Ram {
    #[inline]
    fn place(&mut self, to: Span, octets: &[u8]) {
        let from = usize::try_from(to.offset).unwrap_or(0);
        self.0[from..from + octets.len()].copy_from_slice(octets);
    }

    #[inline]
    fn fetch(&self, from: Span, into: &mut [u8]) {
        let at = usize::try_from(from.offset).unwrap_or(0);
        into.copy_from_slice(&self.0[at..at + into.len()]);
    }
}

/// Keeps the last chunk.
struct Last {
    octets: [u8; 2048],
    len: usize,
    ppid: Ppid,
}

impl Lower for Last {
    #[inline]
    fn segment_bytes(&self) -> SegmentBytes {
        SegmentBytes::of_chunk(1400)
    }

    #[inline]
    fn send(
        &mut self,
        _: StreamId,
        ppid: Ppid,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Busy> {
        fill(&mut self.octets[..len]);
        self.len = len;
        self.ppid = ppid;
        Ok(())
    }
}

struct Side {
    association: Association,
    stags: StagTable,
    ram: Ram,
    last: Last,
}

impl Side {
    fn new(seed: u64) -> Side {
        let mut stags = StagTable::new(64, StdRng::seed_from_u64(seed));
        let mut association = Association::new(Settings::default(), 1, 1).expect("equal counts");
        let settled = association.indication(Indication::Ddp, &mut |_, _| {});
        settled.expect("DDP");
        let outfit = Outfit {
            party: PARTY,
            receive_depth: 64,
            send_depth: 64,
            depths: Depths { ird: 8, ord: 8 },
        };
        let endpoint = Box::new(Endpoint::new(outfit, &mut stags));
        if seed == 1 {
            let bound = association.bind(STREAM, endpoint);
            bound.expect("idle");
        }
        Side {
            association,
            stags,
            ram: Ram(vec![0x5A; 1 << 16]),
            last: Last {
                octets: [0; 2048],
                len: 0,
                ppid: Ppid::Control,
            },
        }
    }

    #[inline]
    fn transmit(&mut self, told: &mut impl FnMut(StreamId, Event<'_>)) {
        let mut local = Local {
            memory: &mut self.ram,
            stags: &mut self.stags,
        };
        let association = &mut self.association;
        association.transmit(STREAM, 8, &mut local, &mut self.last, told);
    }

    #[inline]
    fn receive(&mut self, ppid: u32, chunk: &[u8], told: &mut impl FnMut(StreamId, Event<'_>)) {
        let mut local = Local {
            memory: &mut self.ram,
            stags: &mut self.stags,
        };
        let association = &mut self.association;
        association.receive(STREAM, ppid, chunk, &mut local, told);
    }

    fn post(&mut self) {
        let endpoint = self.association.endpoint(STREAM).expect("bound");
        let posted = endpoint.post_receive(FROM, WorkId(1));
        posted.expect("room");
    }
}

/// Two ends with a session.
fn pair() -> (Side, Side) {
    let (mut a, mut b) = (Side::new(1), Side::new(2));
    let asked = a.association.initiate(STREAM, b"", true);
    asked.expect("idle");
    a.transmit(&mut |_, _| {});
    b.receive(17, &a.last.octets[..a.last.len], &mut |_, _| {});
    let outfit = Outfit {
        party: PARTY,
        receive_depth: 64,
        send_depth: 64,
        depths: Depths { ird: 8, ord: 8 },
    };
    let endpoint = Box::new(Endpoint::new(outfit, &mut b.stags));
    let bound = b.association.bind(STREAM, endpoint);
    bound.expect("pending");
    let accepted = b.association.accept(STREAM, b"");
    accepted.expect("pending");
    b.transmit(&mut |_, _| {});
    a.receive(17, &b.last.octets[..b.last.len], &mut |_, _| {});
    a.association.dry();
    b.association.dry();
    (a, b)
}

fn sending(c: &mut Criterion) {
    let mut group = c.benchmark_group("1 KiB sent");
    group.throughput(Throughput::Bytes(u64::from(LEN)));
    let (mut a, _) = pair();
    group.bench_function("Send", |bencher| {
        bencher.iter(|| {
            let endpoint = a.association.endpoint(STREAM).expect("bound");
            let posted = endpoint.send(&[FROM], None, false, WorkId(1));
            posted.expect("room");
            let mut done = 0;
            a.transmit(&mut |_, _| done += 1);
            a.association.dry();
            assert_eq!(black_box(done), 1);
        });
    });
    let to = Segment {
        handle: rpcrdma_fabric::Handle(1),
        length: LEN,
        offset: 0,
    };
    group.bench_function("Write", |bencher| {
        bencher.iter(|| {
            let endpoint = a.association.endpoint(STREAM).expect("bound");
            let posted = endpoint.write(FROM, to, WorkId(1));
            posted.expect("room");
            let mut done = 0;
            a.transmit(&mut |_, _| done += 1);
            a.association.dry();
            assert_eq!(black_box(done), 1);
        });
    });
    let mut out = [0; 1024];
    group.bench_function("floor: one copy", |bencher| {
        bencher.iter(|| {
            a.ram.fetch(black_box(FROM), &mut out);
            black_box(&mut out);
        });
    });
    group.finish();
}

fn receiving(c: &mut Criterion) {
    let mut group = c.benchmark_group("1 KiB received");
    group.throughput(Throughput::Bytes(u64::from(LEN)));
    let (mut a, mut b) = pair();
    let window = b
        .stags
        .open(PARTY, Scope::Stream, FROM, Access::Write)
        .expect("free");
    let endpoint = a.association.endpoint(STREAM).expect("bound");
    let posted = endpoint.send(&[FROM], None, false, WorkId(1));
    posted.expect("room");
    a.transmit(&mut |_, _| {});
    let mut chunk = a.last.octets[..a.last.len].to_vec();
    let (mut ssn, mut msn) = (1_u16, 1_u32);
    group.bench_function("Send", |bencher| {
        bencher.iter(|| {
            b.post();
            chunk[..2].copy_from_slice(&ssn.to_be_bytes());
            chunk[12..16].copy_from_slice(&msn.to_be_bytes());
            let mut told = 0;
            b.receive(16, black_box(&chunk), &mut |_, _| told += 1);
            assert_eq!(black_box(told), 1);
            ssn = ssn.wrapping_add(1);
            msn = msn.wrapping_add(1);
        });
    });
    let endpoint = a.association.endpoint(STREAM).expect("bound");
    let posted = endpoint.write(FROM, window, WorkId(1));
    posted.expect("room");
    a.transmit(&mut |_, _| {});
    let mut chunk = a.last.octets[..a.last.len].to_vec();
    group.bench_function("Write", |bencher| {
        bencher.iter(|| {
            chunk[..2].copy_from_slice(&ssn.to_be_bytes());
            b.receive(16, black_box(&chunk), &mut |_, _| panic!("told of a Write"));
            ssn = ssn.wrapping_add(1);
        });
    });
    group.finish();
}

criterion_group!(benches, sending, receiving);
criterion_main!(benches);
