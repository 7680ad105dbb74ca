//! What `decode` says, key by key, and that it says of the wire crate's golden vectors what
//! they say themselves.

use super::{Judge, decode};
use rpcrdma_wire::Role;
use serde_json::{Value, json};
use std::path::Path;

const KEYS: [&str; 17] = [
    "accept",
    "reject",
    "answer",
    "answer_hex",
    "xid",
    "version",
    "credit",
    "proc",
    "direction",
    "inv_handle",
    "reads",
    "writes",
    "reply",
    "error",
    "option",
    "properties",
    "header_bytes",
];

fn object(line: &str, role: Option<Role>) -> Value {
    let judge = Judge {
        role,
        ..Judge::default()
    };
    serde_json::to_value(decode(line, &judge).unwrap()).unwrap()
}

/// The object of a message, all keys but these being null.
fn expect(line: &str, fields: Value) {
    let mut expected: serde_json::Map<String, Value> = KEYS
        .iter()
        .map(|key| ((*key).to_owned(), Value::Null))
        .collect();
    expected.extend(fields.as_object().unwrap().clone());
    assert_eq!(object(line, None), Value::Object(expected), "{line}");
}

#[test]
fn a_call_with_chunks() {
    let read = |position: u32, handle: u32| {
        format!("00000001{position:08x}{handle:08x}000000040000000000001000")
    };
    let line = [
        "01020304 00000002 00000020 00000000 00000000 00000022",
        &read(0x28, 0x11),
        &read(0x30, 0x22),
        &read(0x28, 0x33),
        "00000000 00000001 00000000 00000000 00000001 00000001",
        "00000044 00001000 ffffffff00000000",
        "01020304 00000000 00000002 000186a3 00000003 00000007",
        "00000000 00000000 00000000 00000000",
    ];
    let segment = |handle: u32| json!({"handle": handle, "length": 4, "offset": 4096});
    expect(
        &line.concat(),
        json!({
            "accept": true, "answer": "none",
            "xid": 0x0102_0304, "version": 2, "credit": 32, "proc": "MSG",
            "direction": "CALL", "inv_handle": 0x22,
            "reads": [
                {"position": 40, "segments": [segment(0x11), segment(0x33)]},
                {"position": 48, "segments": [segment(0x22)]},
            ],
            "writes": [[]],
            "reply": [{"handle": 0x44, "length": 4096, "offset": 0xffff_ffff_0000_0000_u64}],
            "header_bytes": 24 + 3 * 24 + 4 + 8 + 4 + 24,
        }),
    );
}

#[test]
fn a_refused_message_shows_what_could_be_read_and_what_goes_back() {
    expect(
        "0x01020304 00000001 00000020 00000011 00000000 00000000 00000000",
        json!({
            "accept": false, "reject": "unknown-procedure", "answer": "ERR_CHUNK",
            "answer_hex": "0102030400000001000000010000000400000002",
            "xid": 0x0102_0304, "version": 1, "credit": 32, "proc": 17,
        }),
    );
    expect(
        "01020304",
        json!({"accept": false, "reject": "short", "answer": "drop"}),
    );
}

#[test]
fn options_are_shown_though_they_are_refused() {
    expect(
        "01020304 00000002 00000001 00000005 00000000 00000003 00000000",
        json!({
            "accept": false, "reject": "unknown-option", "answer": "INVAL_OPTION",
            "answer_hex": "0102030400000002000000010000000400000005",
            "xid": 0x0102_0304, "version": 2, "credit": 1, "proc": "OPTIONAL",
            "direction": "CALL", "option": 3,
        }),
    );
}

#[test]
fn errors_and_properties() {
    expect(
        "01020304 00000002 00000001 00000004 00000003 00000002 00010000",
        json!({
            "accept": true, "answer": "none",
            "xid": 0x0102_0304, "version": 2, "credit": 1, "proc": "ERROR", "direction": "REPLY",
            "error": {"code": 3, "name": "REPLY_RESOURCE", "segment": 2, "length": 65536},
            "header_bytes": 28,
        }),
    );
    expect(
        "01020304 00000002 00000001 00000006 00000002 00000001 00000004 00002000 \
         ffffff00 00000001 aa000000 00000001 00000001",
        json!({
            "accept": true, "answer": "none",
            "xid": 0x0102_0304, "version": 2, "credit": 1, "proc": "CONNPROP",
            "properties": {
                "start": [
                    {"id": 1, "name": "RBSIZ", "value": 8192, "data": "00002000"},
                    {"id": 0xffff_ff00_u32, "name": null, "value": null, "data": "aa"},
                ],
                "nochg": [0],
            },
            "header_bytes": 52,
        }),
    );
}

#[test]
fn lines_that_are_no_messages() {
    let judge = Judge::default();
    assert!(decode("", &judge).is_none());
    assert!(decode("  \t", &judge).is_none());
    assert!(decode("# 0102", &judge).is_none());
    for line in ["xyz", "012", "0102 030", "0x", "\u{ff11}\u{ff12}"] {
        let hex = decode(line, &judge).unwrap().is_message();
        // Nothing after the prefix is a message of no octets.
        assert_eq!(hex, line == "0x", "{line}");
    }
    expect("zz", json!({"accept": false, "reject": "not-hex"}));
}

#[test]
fn golden_vectors_are_decoded_as_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataplane/wire/tests/vectors");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let field = |key: &str| {
            let lines = text.lines().filter_map(|line| line.split_once(' '));
            let values: Vec<&str> = lines.filter(|(k, _)| *k == key).map(|(_, v)| v).collect();
            values.concat()
        };
        let role = match field("role").as_str() {
            "responder" => Some(Role::Responder),
            "requester" => Some(Role::Requester),
            _ => None,
        };
        let hex = field("hex");
        let Some(decoded) = decode(
            &hex,
            &Judge {
                role,
                ..Judge::default()
            },
        ) else {
            // The vector of no octets is a blank line here.
            assert!(hex.is_empty());
            continue;
        };
        let reject = field("reject");
        let (name, answer) = reject.split_once(' ').unwrap_or(("", "none"));
        assert_eq!(decoded.accept, reject.is_empty(), "{text}");
        assert_eq!(decoded.reject.unwrap_or_default(), name, "{text}");
        assert_eq!(decoded.answer, Some(answer), "{text}");
        let answer_hex = decoded.answer_hex.clone().unwrap_or_default();
        assert_eq!(answer_hex, field("answer-hex").replace(' ', ""), "{text}");
        assert!(decoded.to_string().starts_with(if decoded.accept {
            "accepted"
        } else {
            "refused"
        }));
        seen += 1;
    }
    assert!(seen > 100, "{seen}");
}
