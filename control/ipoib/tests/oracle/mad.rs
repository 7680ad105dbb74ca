//! Management datagrams, by the tables of the InfiniBand Architecture Specification.

use super::{Bits, Refusal, or_nothing, said};

/// A field: its name, its width in bits.
type Field = (&'static str, usize);

/// MCMemberRecord; the component mask counts its fields from bit 0.
const MEMBER: &[Field] = &[
    ("mgid", 128),
    ("port", 128),
    ("qkey", 32),
    ("mlid", 16),
    ("mtusel", 2),
    ("mtu", 6),
    ("tclass", 8),
    ("pkey", 16),
    ("ratesel", 2),
    ("rate", 6),
    ("lifesel", 2),
    ("life", 6),
    ("sl", 4),
    ("flow", 20),
    ("hop", 8),
    ("scope", 4),
    ("state", 4),
    ("proxy", 1),
    ("-", 7),
    ("-", 16),
];
/// PathRecord, likewise.
const PATH: &[Field] = &[
    ("-", 32),
    ("-", 32),
    ("dgid", 128),
    ("sgid", 128),
    ("dlid", 16),
    ("slid", 16),
    ("-", 1),
    ("-", 3),
    ("flow", 20),
    ("hop", 8),
    ("tclass", 8),
    ("reversible", 1),
    ("numb", 7),
    ("pkey", 16),
    ("-", 12),
    ("sl", 4),
    ("mtusel", 2),
    ("mtu", 6),
    ("ratesel", 2),
    ("rate", 6),
    ("lifesel", 2),
    ("life", 6),
    ("-", 8),
    ("-", 48),
];
const INFORM: &[Field] = &[
    ("gid", 128),
    ("begin", 16),
    ("end", 16),
    ("-", 16),
    ("generic8", 8),
    ("subscribe8", 8),
    ("kind", 16),
    ("trap", 16),
    ("qpn", 24),
    ("-", 3),
    ("time", 5),
    ("-", 8),
    ("producer", 24),
];
const NOTICE: &[Field] = &[
    ("generic", 1),
    ("kind", 7),
    ("producer", 24),
    ("trap", 16),
    ("issuer", 16),
    ("-", 16),
    ("-", 48),
    ("gid", 128),
    ("-", 128),
    ("-", 128),
    ("issuergid", 128),
];
const CLASS_PORT_INFO: &[Field] = &[
    ("-", 16),
    ("mask", 16),
    ("mask2", 27),
    ("time", 5),
    ("-", 256),
    ("-", 256),
];

const SELECTORS: [&str; 3] = ["mtusel", "ratesel", "lifesel"];
/// Fields of a path that a request's components are not looked at.
const UNASKED: [&str; 4] = ["flow", "hop", "tclass", "life"];

/// A record's fields, or that it is cut.
fn fields(table: &[Field], octets: &[u8]) -> Result<Vec<(&'static str, u128)>, Refusal> {
    let mut bits = Bits::new(octets);
    let read = |field: &Field| Some((field.0, bits.take(field.1)?));
    let read: Option<Vec<_>> = table.iter().map(read).collect();
    read.ok_or("mad-truncated")
}

fn words(fields: impl IntoIterator<Item = (&'static str, u128)>) -> String {
    let words = fields.into_iter().filter(|(name, _)| *name != "-");
    let words: Vec<String> = words
        .map(|(name, value)| format!("{name}={value:#x}"))
        .collect();
    or_nothing(words.join(" "))
}

fn is_mtu(code: u128) -> bool {
    (1..=5).contains(&code)
}

/// A complete record: its selectors say nothing.
fn record(table: &[Field], octets: &[u8], unsaid: &[&str]) -> Result<String, Refusal> {
    let mut fields = fields(table, octets)?;
    if fields
        .iter()
        .any(|(name, value)| *name == "mtu" && !is_mtu(*value))
    {
        return Err("mad-mtu");
    }
    fields.retain(|(name, _)| !SELECTORS.contains(name) && !unsaid.contains(name));
    Ok(words(fields))
}

/// What is left after a leave: the rest of the record is the request's.
fn left(octets: &[u8]) -> Result<String, Refusal> {
    let mut fields = fields(MEMBER, octets)?;
    fields.retain(|(name, _)| ["mgid", "port", "state"].contains(name));
    Ok(words(fields))
}

/// What a request names.
fn template(
    table: &[Field],
    octets: &[u8],
    mask: u128,
    unasked: &[&str],
) -> Result<String, Refusal> {
    let fields = fields(table, octets)?;
    let named = |at: usize| mask >> at & 1 == 1;
    let mut said = Vec::new();
    for (at, &(name, value)) in fields.iter().enumerate() {
        let value_of_selector = |name: &str| name.trim_end_matches("sel") != name;
        if value_of_selector(name) && !unasked.contains(&name.trim_end_matches("sel")) {
            if named(at) != named(at + 1) {
                return Err("mad-selector");
            }
            if name == "mtusel" && named(at) && !is_mtu(fields[at + 1].1) {
                return Err("mad-mtu");
            }
        }
        if named(at) && !unasked.contains(&name) && !unasked.contains(&name.trim_end_matches("sel"))
        {
            said.push((name, value));
        }
    }
    Ok(words(said))
}

fn table(layout: &[Field], octets: &[u8], step: usize, unsaid: &[&str]) -> Result<String, Refusal> {
    let bytes = layout.iter().map(|(_, width)| width).sum::<usize>() / 8;
    if step == 0 || octets.is_empty() {
        return Ok("table".to_owned());
    }
    if step < bytes {
        return Err("mad-attribute-offset");
    }
    let mut text = "table".to_owned();
    for chunk in octets.chunks(step) {
        if chunk.len() < bytes {
            text += &format!(" | cut {}", chunk.len());
        } else {
            text += &format!(" | {}", super::said(record(layout, chunk, unsaid)));
        }
    }
    Ok(text)
}

/// Everything about a datagram of at most `limit` octets.
pub(crate) fn describe(octets: &[u8], limit: usize) -> String {
    said(judge(octets, limit))
}

fn judge(octets: &[u8], limit: usize) -> Result<String, Refusal> {
    if octets.len() < 56 {
        return Err("mad-short");
    }
    if octets.len() > limit {
        return Err("mad-too-long");
    }
    let number =
        |from: usize, to: usize| Bits::new(&octets[from..to]).take((to - from) * 8).unwrap();
    if octets[0] != 1 {
        return Err("mad-base-version");
    }
    if octets[1] != 3 {
        return Err("mad-class");
    }
    if octets[2] != 2 {
        return Err("mad-class-version");
    }
    let method = octets[3];
    if ![0x01, 0x02, 0x06, 0x12, 0x15, 0x81, 0x86, 0x92, 0x95].contains(&method) {
        return Err("mad-method");
    }
    let (kind, flags) = (octets[25], octets[26]);
    if flags & 1 == 1 && [2, 3, 4].contains(&kind) {
        return Err("mad-rmpp-type");
    }
    let (status, tid, attribute) = (number(4, 6), number(8, 16), number(16, 18));
    let (step, mask) = (number(44, 46) as usize * 8, number(48, 56));
    let mut data = &octets[56..];
    let says = number(32, 36) as usize;
    if flags & 7 == 7 && says >= 20 && says - 20 < data.len() {
        data = &data[..says - 20];
    }
    let head = format!(
        "method {method:#x} status {status:#x} tid {tid:#x} attribute {attribute:#x} mask {mask:#x}"
    );
    let body = said(body(method, attribute, data, step, mask));
    Ok(format!("{head} : {body}"))
}

fn body(
    method: u8,
    attribute: u128,
    data: &[u8],
    step: usize,
    mask: u128,
) -> Result<String, Refusal> {
    let request = method & 0x80 == 0;
    match (attribute, method) {
        (0x38, 0x92) => table(MEMBER, data, step, &[]),
        (0x38, 0x95) => left(data),
        (0x38, _) if request => template(MEMBER, data, mask, &[]),
        (0x38, _) => record(MEMBER, data, &[]),
        (0x35, 0x92) => table(PATH, data, step, &["numb"]),
        (0x35, _) if request => template(PATH, data, mask, &UNASKED),
        (0x35, _) => record(PATH, data, &["numb"]),
        (0x03, _) => {
            let mut fields = fields(INFORM, data)?;
            for (name, value) in &mut fields {
                match *name {
                    "generic8" => (*name, *value) = ("generic", u128::from(*value != 0)),
                    "subscribe8" => (*name, *value) = ("subscribe", u128::from(*value != 0)),
                    _ => {}
                }
            }
            Ok(words(fields))
        }
        (0x02, _) => record(NOTICE, data, &[]),
        (0x01, _) => record(CLASS_PORT_INFO, data, &[]),
        _ => Ok("opaque".to_owned()),
    }
}
