//! Peers that speak correct SCTP and wrong everything above.

#[path = "../bed/mod.rs"]
mod bed;
mod fiend;
mod host;

use bed::Bed;
use fiend::{
    ACCEPT, CONTROL, Chunk, INITIATE, SEGMENT, Scene, TERMINATE, control, segment, untagged, write,
};
use rpcrdma_fabric::connect::Fabric;
use rpcrdma_fabric::{Access, Handle, Outcome, Port, Segment, Span, WorkId};
use rpcrdma_iwarp::Stag;
use rpcrdma_iwarp::ddp::{Header, Tagged, Untagged};
use rpcrdma_iwarp::rdmap::ReadRequest;
use rpcrdma_iwarp_sctp::Settings;
use rpcrdma_iwarp_sctp::stand_in::Manner;
use rpcrdma_sctp::Reason;

/// "This stream", where there is no better word for what was wrong.
const STREAM: (u8, u8, u8) = (0, 2, 7);

/// What the fiend's session has of the victim, and what it has not.
struct Stags {
    /// To be written, a hundred octets.
    written: Segment,
    /// To be read.
    read: Segment,
    /// To be written, by another connection.
    foreign: Segment,
    /// That was to be written.
    retired: Segment,
}

const EXPOSED: Span = Span {
    offset: 8 << 20,
    len: 100,
};

fn expose(bed: &mut Bed, scene: rpcrdma_fabric::QueuePair, access: Access) -> Segment {
    bed.port.expose(scene, EXPOSED, access).expect("a window")
}

fn request(source: u32, source_to: u64, size: u32) -> Vec<u8> {
    let asked = ReadRequest {
        sink: Stag(1),
        sink_to: 0,
        size,
        source: Stag(source),
        source_to,
    };
    asked.octets().to_vec()
}

fn handle(segment: Segment) -> u32 {
    let Handle(handle) = segment.handle;
    handle
}

/// One wrong thing, after the Accept, as chunk number 1.
fn wrongs(stags: &Stags) -> Vec<(&'static str, Chunk, (u8, u8, u8))> {
    let send = |header: Untagged, payload: &[u8]| segment(1, Header::Untagged(header), payload);
    let to = |header: Header| segment(1, header, &[7; 10]);
    let Stags {
        written,
        read,
        foreign,
        retired,
    } = *stags;
    let ask = |source, source_to, size| send(untagged(1, 1, 1), &request(source, source_to, size));
    vec![
        (
            "a chunk shorter than its number",
            (SEGMENT, vec![0]),
            STREAM,
        ),
        (
            "a segment shorter than its header",
            (SEGMENT, vec![0, 1, 0x41, 0x43]),
            (0, 2, 0xFF),
        ),
        (
            "a chunk longer than any",
            segment(1, Header::Untagged(untagged(3, 0, 1)), &[0; 65_520]),
            STREAM,
        ),
        ("another protocol", (99, vec![0, 1, 2, 3]), STREAM),
        (
            "a control message cut short",
            (CONTROL, vec![0, 1, 0]),
            STREAM,
        ),
        ("an unknown function", control(1, 9, b""), STREAM),
        (
            "an Accept that nobody asked for",
            control(1, ACCEPT, b""),
            STREAM,
        ),
        ("a second Initiate", control(1, INITIATE, b""), STREAM),
        (
            "private data with Terminate",
            control(1, TERMINATE, b"x"),
            STREAM,
        ),
        (
            "too much private data",
            control(1, INITIATE, &[0; 513]),
            STREAM,
        ),
        (
            "a number that was used",
            segment(0, Header::Untagged(untagged(3, 0, 1)), b"x"),
            STREAM,
        ),
        (
            "a number out of reach",
            segment(32_768, Header::Untagged(untagged(3, 0, 1)), b"x"),
            STREAM,
        ),
        (
            "an unknown STag",
            to(write(handle(written) ^ 1 << 31, written.offset)),
            (1, 1, 0),
        ),
        (
            "another's STag",
            to(write(handle(foreign), foreign.offset)),
            (1, 1, 2),
        ),
        (
            "an STag that is no more",
            to(write(handle(retired), retired.offset)),
            (1, 1, 0),
        ),
        (
            "writing what is to be read",
            to(write(handle(read), read.offset)),
            (1, 1, 0),
        ),
        (
            "beyond the end",
            to(write(handle(written), written.offset + 91)),
            (1, 1, 1),
        ),
        (
            "before the beginning",
            to(write(handle(written), written.offset - 1)),
            (1, 1, 1),
        ),
        (
            "around the end of all offsets",
            to(write(handle(written), u64::MAX - 3)),
            (1, 1, 3),
        ),
        (
            "a Read beyond what was agreed on",
            send(untagged(1, 1, 33), &request(1, 0, 0)),
            (1, 2, 2),
        ),
        (
            "a Read from an unknown STag",
            ask(handle(read) ^ 1 << 31, read.offset, 10),
            (0, 1, 0),
        ),
        (
            "a Read beyond the end",
            ask(handle(read), read.offset, 101),
            (0, 1, 1),
        ),
        (
            "a Read from what is to be written",
            ask(handle(written), written.offset, 10),
            (0, 1, 2),
        ),
        (
            "a Read from another's STag",
            ask(handle(foreign), foreign.offset, 10),
            (0, 1, 3),
        ),
        (
            "a Read around the end",
            ask(handle(read), u64::MAX - 3, 10),
            (0, 1, 4),
        ),
        (
            "a Read Request of another length",
            send(untagged(1, 1, 1), &[0; 27]),
            (0, 2, 0xFF),
        ),
        (
            "an unknown opcode",
            send(untagged(9, 0, 1), b"x"),
            (0, 2, 6),
        ),
        (
            "a Read Response to no Read",
            to(Header::Tagged(Tagged {
                last: true,
                ulp: 0x42,
                stag: Stag(handle(written)),
                to: 0,
            })),
            (1, 1, 0),
        ),
        ("an unknown queue", send(untagged(3, 7, 1), b"x"), (1, 2, 1)),
        (
            "a message number before the first",
            send(untagged(3, 0, 0), b"x"),
            (1, 2, 3),
        ),
        (
            "a message without a receive",
            send(untagged(3, 0, 9), b"x"),
            (1, 2, 2),
        ),
        (
            "a message longer than its receive",
            send(untagged(3, 0, 1), &[0; 4097]),
            (1, 2, 5),
        ),
        (
            "an offset beyond the receive",
            send(
                Untagged {
                    mo: 5000,
                    ..untagged(3, 0, 1)
                },
                b"x",
            ),
            (1, 2, 4),
        ),
        (
            "a message with a gap",
            send(
                Untagged {
                    mo: 10,
                    ..untagged(3, 0, 1)
                },
                b"x",
            ),
            (1, 2, 4),
        ),
        (
            "invalidating what is not there",
            send(
                Untagged {
                    ulp_word: 5,
                    ..untagged(4, 0, 1)
                },
                b"x",
            ),
            (0, 1, 9),
        ),
        (
            "invalidating another's",
            send(
                Untagged {
                    ulp_word: handle(foreign),
                    ..untagged(4, 0, 1)
                },
                b"x",
            ),
            (0, 1, 9),
        ),
    ]
}

/// Each wrong thing ends its session with the right word, writes nothing, and disturbs nobody.
#[test]
fn what_is_wrong_is_named_and_ends_its_session_alone() {
    let mut nth = 0;
    loop {
        let mut scene = Scene::new();
        let victim = scene.session();
        let (other, _) = scene.honest;
        let bed = &mut scene.bed;
        let stags = Stags {
            written: expose(bed, victim.pair, Access::Write),
            read: expose(bed, victim.pair, Access::Read),
            foreign: expose(bed, other.pair, Access::Write),
            retired: expose(bed, victim.pair, Access::Write),
        };
        let gone = bed
            .port
            .retire(victim.pair, stags.retired.handle, WorkId(0));
        gone.expect("it was open");
        let wrongs = wrongs(&stags);
        let Some((what, chunk, code)) = wrongs.get(nth) else {
            break;
        };
        scene.fiend.say(0, chunk);
        scene.bed.completion(what, |completion| {
            completion.token == victim.token && completion.outcome == Outcome::Disconnected
        });
        scene.until(what, |_, fiend| {
            (fiend.controls(0) == [ACCEPT, TERMINATE]).then_some(())
        });
        assert_eq!(scene.fiend.blamed(0), Some(*code), "{what}");
        assert_eq!(scene.fiend.down, None, "{what}: the association stays");
        scene.check_honest();
        // SAFETY: the test's own, and nothing is under way.
        let octets = unsafe { scene.bed.arena.octets(EXPOSED) };
        assert!(octets.iter().all(|&octet| octet == 0), "{what}");
        nth += 1;
    }
    assert!(nth > 30);
}

/// What comes before a session stands has no RDMAP to answer it.
#[test]
fn what_comes_too_early_is_answered_by_the_session_alone() {
    let early: [(&str, &[Chunk]); 4] = [
        ("an Accept without an Initiate", &[control(0, ACCEPT, b"")]),
        (
            "a segment without an Initiate",
            &[segment(1, Header::Untagged(untagged(3, 0, 1)), b"x")],
        ),
        (
            "a segment before the Accept",
            &[
                control(0, INITIATE, b""),
                segment(1, Header::Untagged(untagged(3, 0, 1)), b"x"),
            ],
        ),
        (
            "a Terminate without an Initiate",
            &[control(0, TERMINATE, b"")],
        ),
    ];
    for (what, chunks) in early {
        let mut scene = Scene::new();
        scene.turn();
        for chunk in chunks {
            scene.fiend.say(0, chunk);
        }
        scene.until(what, |_, fiend| {
            (fiend.controls(0) == [TERMINATE]).then_some(())
        });
        assert_eq!(scene.fiend.blamed(0), None, "{what}");
        scene.check_honest();
    }
}

/// RFC 5043 section 6.4: the one too many gets Terminate, and the others wait as before.
#[test]
fn section_6_4_requests_that_wait_are_limited() {
    let mut scene = Scene::new();
    scene.turn();
    let most = Settings::default().pending;
    for stream in 0..=most {
        scene.fiend.say(stream, &control(0, INITIATE, b"x"));
    }
    scene.until("a Terminate", |_, fiend| {
        (fiend.controls(most) == [TERMINATE]).then_some(())
    });
    for _ in 0..most {
        let (asked, data) = scene.bed.request();
        assert_eq!(data, b"x");
        scene.bed.fabric.reject(asked, "no").expect("a request");
    }
    scene.until("the Rejects", |_, fiend| {
        (0..most)
            .all(|stream| fiend.controls(stream) == [3])
            .then_some(())
    });
    scene.check_honest();
}

/// A request that its sender takes back before it was answered.
#[test]
fn a_request_can_be_taken_back() {
    let mut scene = Scene::new();
    scene.turn();
    scene.fiend.say(0, &control(0, INITIATE, b""));
    let (asked, _) = scene.bed.request();
    scene.fiend.wire.abort_all();
    scene.turn();
    let end = scene.bed.fabric.take(asked, scene.bed.id);
    assert!(end.is_err(), "control knows");
    scene.check_honest();
}

/// RFC 5043 sections 5.1, 7.1, 8 and 11.1: without DDP's indication, or with unequal streams, there is
/// no association.
#[test]
fn section_7_1_an_association_without_ddp_is_aborted() {
    let plain = Manner::default();
    let strangers = [
        Manner {
            indication: None,
            ..plain
        },
        Manner {
            indication: Some(2),
            ..plain
        },
        Manner {
            streams: 5,
            ..plain
        },
    ];
    for manner in strangers {
        let mut scene = Scene::with(manner);
        let down = scene.until("the end", |_, fiend| fiend.down);
        assert!(matches!(down, Reason::AbortedByPeer(_)), "{manner:?}");
        scene.check_honest();
    }
}
