//! Headers that are refused. One row each: in which versions, what comes of it, the counter,
//! and the octets.
//!
//! Each message is sent on a connection that has answered a NULL already; unless it ends the
//! connection, the next NULL is answered as if nothing had been.

use crate::scene::{GRANT, Outcome, SERVICE, Scene, WIDE};
use crate::support::octets::{
    CALL_BYTES, ERROR, Head, NOMSG, One, Two, Version, head, null, segment, success, words,
};
use Outcome::{Closed, Dropped, InvalidOption, InvalidProcedure, Refused, VersionRange};

const XID: u32 = 0x4057_1E00;
const BOTH: &[Version] = &[One, Two];

/// One thing a peer may send.
struct Row {
    versions: &'static [Version],
    /// Who is asked.
    service: &'static str,
    outcome: Outcome,
    /// The counter that says so, which rises by one.
    counter: &'static str,
    octets: fn(Version) -> Vec<u8>,
}

fn play(row: &Row) {
    for &version in row.versions {
        let mut scene = Scene::new();
        scene.peer.connect(row.service);
        scene.peer.greet(version, 1, GRANT);
        let before = scene.state();
        scene.peer.send(&(row.octets)(version));
        if row.outcome == Closed {
            assert_eq!(scene.peer.until_over(), Vec::<Vec<u8>>::new());
        } else {
            if let Some(answer) = row.outcome.answer(version, XID) {
                assert_eq!(scene.peer.answer(), answer, "version {}", version.code());
            }
            // What is dropped has no answer: the next one is this.
            scene.peer.greet(version, 2, GRANT);
            scene.is_as_in(&before);
        }
        let after = scene.state();
        let rose = after.counter(row.counter) - before.counter(row.counter);
        assert_eq!(rose, 1, "{} in version {}", row.counter, version.code());
        let others = after.refused() - before.refused() - after.rejected(row.counter)
            + before.rejected(row.counter);
        assert_eq!(others, 0, "refused for one reason alone");
        scene.bystander.goes_on();
        if row.outcome != Closed {
            scene.peer.leave();
        }
        scene.is_as_before();
    }
}

macro_rules! rows {
    ($($(#[$doc:meta])* $name:ident: $versions:expr, $service:expr, $outcome:expr, $counter:literal, $octets:expr;)*) => {
        $(
            $(#[$doc])*
            #[test]
            fn $name() {
                play(&Row {
                    versions: $versions,
                    service: $service,
                    outcome: $outcome,
                    counter: $counter,
                    octets: $octets,
                });
            }
        )*
    };
}

/// A NULL Call's header.
fn null_head(version: Version) -> Head {
    head(version, XID)
}

fn with_null(head: &Head) -> Vec<u8> {
    head.with(&null(XID))
}

/// A property message: what stands behind the fixed header.
fn property(procedure: u32, body: &[u32]) -> Vec<u8> {
    words(&[&[XID, 2, 8, procedure], body].concat())
}

rows! {
    // --- where Read chunks belong (V1-06) ---

    position_beyond_the_body: BOTH, SERVICE, Refused, "position-beyond-body",
        |version| with_null(&null_head(version).read(CALL_BYTES + 4, segment(1, 4, 0)));
    position_beyond_the_body_behind_another: BOTH, SERVICE, Refused, "position-beyond-body",
        |version| with_null(
            &null_head(version)
                .read(CALL_BYTES, segment(1, 8, 0))
                .read(CALL_BYTES + 12, segment(2, 4, 0)),
        );
    position_beyond_a_long_call: BOTH, SERVICE, Refused, "position-beyond-body",
        |version| null_head(version)
            .procedure(NOMSG)
            .read(0, segment(1, 40, 0))
            .read(44, segment(2, 4, 0))
            .with(&[]);
    position_unaligned: BOTH, SERVICE, Refused, "position-unaligned",
        |version| with_null(&null_head(version).read(CALL_BYTES - 2, segment(1, 4, 0)));
    reads_that_overlap: BOTH, SERVICE, Refused, "chunks-overlap",
        |version| with_null(
            &null_head(version)
                .read(CALL_BYTES, segment(1, 8, 0))
                .read(CALL_BYTES + 4, segment(2, 8, 0)),
        );
    reads_that_overlap_out_of_order: BOTH, SERVICE, Refused, "chunks-overlap",
        |version| with_null(
            &null_head(version)
                .read(CALL_BYTES, segment(2, 4, 0))
                .read(CALL_BYTES - 4, segment(1, 12, 0)),
        );
    position_zero_in_an_inline_call: BOTH, SERVICE, Refused, "position-zero-in-msg",
        |version| with_null(&null_head(version).read(0, segment(1, 40, 0)));
    a_long_call_without_position_zero: BOTH, SERVICE, Refused, "no-position-zero",
        |version| null_head(version)
            .procedure(NOMSG)
            .read(4, segment(1, 40, 0))
            .with(&[]);
    a_long_call_without_lists: BOTH, SERVICE, Refused, "no-lists",
        |version| null_head(version).procedure(NOMSG).with(&[]);

    // --- lengths (V1-06) ---

    a_segment_of_all_ones: BOTH, SERVICE, Refused, "call-bytes",
        |version| with_null(&null_head(version).read(CALL_BYTES, segment(1, u32::MAX, 0)));
    a_long_call_of_all_ones: BOTH, SERVICE, Refused, "call-bytes",
        |version| null_head(version)
            .procedure(NOMSG)
            .read(0, segment(1, u32::MAX, 0))
            .with(&[]);
    read_lengths_that_overflow: BOTH, SERVICE, Refused, "call-bytes",
        |version| with_null(
            &null_head(version)
                .read(CALL_BYTES, segment(1, 0x8000_0004, 0))
                .read(CALL_BYTES, segment(2, 0x8000_0004, 0)),
        );
    write_lengths_that_overflow: BOTH, SERVICE, Refused, "reply-bytes",
        |version| with_null(
            &null_head(version)
                .write(&[segment(1, 0x8000_0004, 0), segment(2, 0x8000_0004, 0)]),
        );
    write_chunks_that_overflow_together: BOTH, SERVICE, Refused, "reply-bytes",
        |version| with_null(
            &null_head(version)
                .write(&[segment(1, 0x8000_0004, 0)])
                .write(&[segment(2, 0x8000_0004, 0)]),
        );
    reply_lengths_that_overflow: BOTH, SERVICE, Refused, "reply-bytes",
        |version| with_null(
            &null_head(version)
                .reply(&[segment(1, 0x8000_0004, 0), segment(2, 0x8000_0004, 0)]),
        );
    a_reply_segment_of_all_ones: BOTH, SERVICE, Refused, "reply-bytes",
        |version| with_null(&null_head(version).reply(&[segment(1, u32::MAX, 0)]));
    an_offset_that_wraps: BOTH, SERVICE, Refused, "segment-wraps",
        |version| with_null(&null_head(version).read(CALL_BYTES, segment(1, 8, u64::MAX - 6)));
    a_write_offset_that_wraps: BOTH, SERVICE, Refused, "segment-wraps",
        |version| with_null(&null_head(version).write(&[segment(1, 8, u64::MAX - 6)]));

    // --- counts ---

    a_thousand_read_segments: BOTH, WIDE, Refused, "read-segments",
        |version| with_null(
            &(0..1000).fold(null_head(version), |head, n| {
                head.read(CALL_BYTES, segment(n, 4, 0))
            }),
        );
    a_thousand_write_segments: BOTH, WIDE, Refused, "chunk-segments",
        |version| with_null(&null_head(version).write(&[segment(1, 4, 0); 1000]));
    a_thousand_reply_segments: BOTH, WIDE, Refused, "chunk-segments",
        |version| with_null(&null_head(version).reply(&[segment(1, 4, 0); 1000]));
    a_thousand_write_chunks: BOTH, WIDE, Refused, "write-chunks",
        |version| with_null(
            &(0..1000).fold(null_head(version), |head, n| head.write(&[segment(n, 4, 0)])),
        );
    a_thousand_segments_that_are_not_there: BOTH, SERVICE, Refused, "chunk-segments",
        |version| {
            let mut octets = with_null(&null_head(version).reply(&[]));
            let count = octets.len() - CALL_BYTES as usize - 4;
            octets[count..count + 4].copy_from_slice(&words(&[1000]));
            octets
        };
    four_billion_segments: BOTH, SERVICE, Refused, "chunk-segments",
        |version| {
            let mut octets = with_null(&null_head(version).write(&[]));
            let count = octets.len() - CALL_BYTES as usize - 12;
            octets[count..count + 4].copy_from_slice(&words(&[u32::MAX]));
            octets
        };
    /// A thousand segments do not fit a receive of 4096 octets: the queue pair ends.
    a_message_longer_than_its_receive: BOTH, SERVICE, Closed, "work_closes",
        |version| with_null(
            &(0..1000).fold(null_head(version), |head, n| {
                head.read(CALL_BYTES, segment(n, 4, 0))
            }),
        );

    // --- what is no header ---

    shorter_than_its_fixed_part: BOTH, SERVICE, Dropped, "short",
        |version| {
            let least = match version { One => 28, Two => 20 };
            with_null(&null_head(version))[..least - 1].to_vec()
        };
    one_octet: BOTH, SERVICE, Dropped, "short", |_| vec![0x40];
    nothing_at_all: BOTH, SERVICE, Dropped, "short", |_| Vec::new();
    lists_cut_short: BOTH, SERVICE, Refused, "truncated",
        |version| {
            let octets = null_head(version).read(CALL_BYTES, segment(1, 4, 0)).with(&[]);
            octets[..octets.len() - 10].to_vec()
        };
    a_list_flag_of_two: BOTH, SERVICE, Refused, "list-flag",
        |version| {
            let mut octets = with_null(&null_head(version));
            let flag = match version { One => 16, Two => 24 };
            octets[flag + 3] = 2;
            octets
        };
    no_payload: BOTH, SERVICE, Refused, "no-payload", |version| null_head(version).with(&[]);
    an_xid_of_its_own: BOTH, SERVICE, Refused, "xid-mismatch",
        |version| null_head(version).with(&null(XID + 1));

    // --- procedures and versions ---

    an_unknown_procedure_of_version_one: &[One], SERVICE, Refused, "unknown-procedure",
        |version| with_null(&null_head(version).procedure(17));
    an_unknown_procedure_of_version_two: &[Two], SERVICE, InvalidProcedure, "unknown-procedure",
        |version| with_null(&null_head(version).procedure(10));
    an_old_procedure_in_version_two: &[Two], SERVICE, InvalidProcedure, "unknown-procedure",
        |version| with_null(&null_head(version).procedure(3));
    a_padded_message: &[One], SERVICE, Refused, "msgp",
        |version| with_null(&null_head(version).procedure(2));
    done: &[One], SERVICE, Dropped, "done", |version| with_null(&null_head(version).procedure(3));
    an_unknown_version: BOTH, SERVICE, VersionRange(3), "unknown-version",
        |version| {
            let mut octets = with_null(&null_head(version));
            octets[7] = 3;
            octets
        };
    version_zero: BOTH, SERVICE, VersionRange(0), "unknown-version",
        |version| {
            let mut octets = with_null(&null_head(version));
            octets[7] = 0;
            octets
        };
    /// V2-24.
    version_one_on_a_connection_of_version_two: &[Two], SERVICE, VersionRange(1), "unknown-version",
        |_| with_null(&null_head(One));
    /// V2-24.
    version_two_on_a_connection_of_version_one: &[One], SERVICE, VersionRange(2), "unknown-version",
        |_| with_null(&null_head(Two));

    // --- version two alone ---

    a_handle_to_invalidate_that_is_nowhere: &[Two], SERVICE, Refused, "unmatched-inv-handle",
        |version| with_null(
            &null_head(version)
                .invalidate(0x0BAD_0BAD)
                .write(&[segment(1, 4096, 0)]),
        );
    a_handle_to_invalidate_without_chunks: &[Two], SERVICE, Refused, "unmatched-inv-handle",
        |version| with_null(&null_head(version).invalidate(1));
    a_direction_of_two: &[Two], SERVICE, Refused, "direction-value",
        |version| with_null(&null_head(version).direction(2));
    /// V2-10.
    a_reply_that_says_it_is_a_call: &[Two], SERVICE, Refused, "direction-mismatch",
        |version| null_head(version).with(&success(XID));
    /// V2-10.
    a_call_that_says_it_is_a_reply: &[Two], SERVICE, Dropped, "direction-mismatch",
        |version| with_null(&null_head(version).direction(1));
    an_unknown_option: &[Two], SERVICE, InvalidOption, "unknown-option",
        |_| property(5, &[0, 5, 0]);
    /// V2-01.
    a_property_operation_as_an_option: &[Two], SERVICE, InvalidOption, "unknown-option",
        |_| property(5, &[0, 1, 0]);
    /// V2-18.
    an_option_that_is_a_reply: &[Two], SERVICE, Dropped, "option-reply",
        |_| property(5, &[1, 5, 0]);
    /// V2-03.
    a_receive_size_of_two_octets: &[Two], SERVICE, Refused, "property-value",
        |_| property(9, &[1, 1, 2, 0]);
    /// V2-21.
    a_receive_size_below_the_least: &[Two], SERVICE, Refused, "property-value",
        |_| property(9, &[1, 1, 4, 1023]);
    backward_calls_of_a_kind_there_is_not: &[Two], SERVICE, Refused, "property-value",
        |_| property(6, &[1, 2, 4, 3, 0]);
    more_properties_than_the_limit: &[Two], SERVICE, Refused, "too-many-properties",
        |_| {
            let values: Vec<u32> = (0..33).flat_map(|n| [0xFFFF_FF00 + n, 0]).collect();
            property(9, &[&[33], &values[..]].concat())
        };
    four_billion_properties: &[Two], SERVICE, Refused, "too-many-properties",
        |_| property(6, &[u32::MAX]);
    a_property_longer_than_the_limit: &[Two], SERVICE, Refused, "property-bytes",
        |_| property(9, &[&[1, 0xFFFF_FF00, 260][..], &[0; 65]].concat());
    a_property_beyond_the_message: &[Two], SERVICE, Refused, "truncated",
        |_| property(9, &[1, 0xFFFF_FF00, 64, 0]);
    /// V2-23.
    octets_after_the_properties: &[Two], SERVICE, Refused, "trailing-octets",
        |_| property(9, &[0, 0]);
    /// V2-05.
    a_subset_beyond_its_set: &[Two], SERVICE, Refused, "subset-beyond-set",
        |_| property(6, &[1, 1, 4, 4096, 1, 2]);

    // --- what nobody waits for ---

    /// V1-04.
    an_error_that_is_none: BOTH, SERVICE, Dropped, "error-code",
        |version| words(&[XID, version.code(), 8, ERROR, 77, 0, 0]);
    an_error_cut_short: BOTH, SERVICE, Dropped, "error-truncated",
        |version| words(&[XID, version.code(), 8, ERROR, 1, 1]);
    an_error_about_nothing: BOTH, SERVICE, Dropped, "strays",
        |version| words(&[XID, version.code(), 8, ERROR, 2]);
    a_reply_to_no_call: BOTH, SERVICE, Dropped, "strays",
        |version| {
            let reply = null_head(version).direction(1);
            reply.with(&success(XID))
        };
    /// V2-14.
    an_answer_to_no_request: &[Two], SERVICE, Dropped, "strays",
        |_| property(8, &[0, 0, 0]);
}
