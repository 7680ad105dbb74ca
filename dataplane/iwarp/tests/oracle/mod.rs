//! A second opinion on chunks, from the texts and not from the crate: slow, allocating, every
//! field cut out of a string of bits by the figures of RFC 5040, 5041, 5043 and 6581. It says what
//! a chunk is, or what is wrong with it first.

/// The rest of a chunk, as bits.
struct Bits(Vec<bool>);

impl Bits {
    fn of(octets: &[u8]) -> Bits {
        let bit = |octet: &u8| (0..8).map(|n| octet << n & 0x80 != 0).collect::<Vec<_>>();
        Bits(octets.iter().flat_map(bit).collect())
    }

    fn left(&self) -> usize {
        self.0.len()
    }

    fn field(&mut self, width: usize) -> u64 {
        let rest = self.0.split_off(width);
        let field = std::mem::replace(&mut self.0, rest);
        field
            .iter()
            .fold(0, |value, bit| value << 1 | u64::from(*bit))
    }
}

/// What a chunk is, in words, or the name of what is wrong with it.
pub(crate) fn consult(ppid: u32, chunk: &[u8]) -> Result<String, &'static str> {
    let mut bits = Bits::of(chunk);
    if bits.left() < 16 {
        return Err("chunk-short");
    }
    let ssn = bits.field(16);
    let what = match ppid {
        16 => segment(&mut bits)?,
        17 => control(&mut bits)?,
        _ => return Err("ppid"),
    };
    Ok(format!("ssn {ssn} {what}"))
}

/// RFC 5043 section 5.2.3, RFC 6581 sections 7 and 9.
fn control(bits: &mut Bits) -> Result<String, &'static str> {
    if bits.left() < 16 {
        return Err("chunk-short");
    }
    let code = bits.field(16);
    let name = match code {
        1 => "initiate",
        2 => "accept",
        3 => "reject",
        4 => "terminate",
        5 => "enhanced-initiate",
        6 => "enhanced-accept",
        7 => "enhanced-reject",
        _ => return Err("function-code"),
    };
    if bits.left() > 512 * 8 {
        return Err("private-data-long");
    }
    if code == 4 && bits.left() > 0 {
        return Err("private-data-in-terminate");
    }
    let mut word = String::new();
    if code == 5 || code == 6 {
        if bits.left() < 32 {
            return Err("depths-missing");
        }
        let (a, b, ird) = (bits.field(1), bits.field(1), bits.field(14));
        let (c, d, ord) = (bits.field(1), bits.field(1), bits.field(14));
        word = format!(
            " ird {ird} ord {ord} peers {a} rtr {}{}{}",
            a & b,
            a & c,
            a & d
        );
    }
    Ok(format!("{name}{word} data {}", bits.left() / 8))
}

/// RFC 5041 section 4, RFC 5040 section 4.
fn segment(bits: &mut Bits) -> Result<String, &'static str> {
    if bits.left() < 8 {
        return Err("segment-short");
    }
    let (tagged, last) = (bits.field(1) == 1, bits.field(1) == 1);
    let (_, version) = (bits.field(4), bits.field(2));
    if version != 1 {
        let names = ["untagged-version", "tagged-version"];
        return Err(names[usize::from(tagged)]);
    }
    let header = if tagged { 112 } else { 144 };
    if bits.left() < header - 8 {
        return Err("segment-short");
    }
    let (version, _, opcode) = (bits.field(2), bits.field(2), bits.field(4));
    let last = if last { " last" } else { "" };
    if tagged {
        let (stag, to) = (bits.field(32), bits.field(64));
        let name = operation(version, opcode, &[(0, "write"), (2, "read-response")])?;
        let len = bits.left() / 8;
        return Ok(format!(
            "{name}{last} stag {stag:#x} to {to:#x} payload {len}"
        ));
    }
    let (word, queue) = (bits.field(32), bits.field(32));
    let (msn, mo) = (bits.field(32), bits.field(32));
    let names: &[_] = match queue {
        0 => &[
            (3, "send"),
            (4, "send-invalidate"),
            (5, "send-solicited"),
            (6, "send-solicited-invalidate"),
        ],
        1 => &[(1, "read-request")],
        2 => &[(7, "terminate-message")],
        _ => return Err("queue-number"),
    };
    let name = operation(version, opcode, names)?;
    let invalidated = if matches!(opcode, 4 | 6) {
        format!(" invalidate {word:#x}")
    } else {
        String::new()
    };
    let len = bits.left() / 8;
    let inside = match (opcode, mo, len) {
        (1, 0, 28) => request(bits),
        (7, 0, 4..) => terminate(bits),
        _ => String::new(),
    };
    Ok(format!(
        "{name}{last}{invalidated} msn {msn} mo {mo} payload {len}{inside}"
    ))
}

fn operation(
    version: u64,
    opcode: u64,
    names: &[(u64, &'static str)],
) -> Result<&'static str, &'static str> {
    if version != 1 {
        return Err("rdmap-version");
    }
    let named = names.iter().find(|(code, _)| *code == opcode);
    named.map(|(_, name)| *name).ok_or("opcode")
}

/// RFC 5040 section 4.4.
fn request(bits: &mut Bits) -> String {
    let (sink, sink_to, size) = (bits.field(32), bits.field(64), bits.field(32));
    let (source, source_to) = (bits.field(32), bits.field(64));
    format!(" sink {sink:#x} at {sink_to:#x} size {size} source {source:#x} at {source_to:#x}")
}

/// RFC 5040 section 4.8.
fn terminate(bits: &mut Bits) -> String {
    let (layer, kind, code) = (bits.field(4), bits.field(4), bits.field(8));
    let (_, _, request) = (bits.field(1), bits.field(1), bits.field(1));
    format!(" layer {layer} type {kind} code {code} request {request}")
}
