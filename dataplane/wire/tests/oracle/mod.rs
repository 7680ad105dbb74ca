//! A second opinion: a slow, allocating decoder written from the specifications alone.
//!
//! It shares no code and no constants with the crate it judges, and is built the other way
//! round: first the whole message is turned into lists of numbers, without judging any; then
//! the rules are put to the numbers, one after the other. It does not name its reasons, only
//! what goes back.

mod judge;
pub(crate) mod model;
mod read;

pub(crate) use model::{Limit, Message, Part, What};

/// What the oracle thinks of a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Opinion {
    /// It is good, and this is what it says.
    Good(Message),
    /// It is refused, and this goes back.
    Bad(&'static str),
}

/// Decodes and judges one message.
pub(crate) fn consult(octets: &[u8], limit: &Limit) -> Opinion {
    let Some(words) = read::fixed(octets) else {
        return Opinion::Bad("drop");
    };
    let [_, vers, _, proc] = words;
    let least = match (vers, proc) {
        (2, _) => 20,
        (_, 4) => 20,
        _ => 28,
    };
    if octets.len() < least {
        return Opinion::Bad("drop");
    }
    match (vers, proc) {
        (1 | 2, 0 | 1) => rpc(octets, words, limit),
        (_, 4) => match read::error(octets) {
            Some(what) => good(octets, words, what),
            None => Opinion::Bad("drop"),
        },
        (1, 3) => Opinion::Bad("drop"),
        (1, _) => Opinion::Bad("ERR_CHUNK"),
        (2, 5) => match read::option(octets) {
            Some(0) => Opinion::Bad("INVAL_OPTION"),
            Some(_) => Opinion::Bad("drop"),
            None if reply_declared(octets) => Opinion::Bad("drop"),
            None => Opinion::Bad("BAD_XDR"),
        },
        (2, 6..=9) => match read::properties(octets, proc) {
            Some(what) if judge::properties(&what, limit) => good(octets, words, what),
            _ if proc == 8 => Opinion::Bad("drop"),
            _ => Opinion::Bad("BAD_XDR"),
        },
        (2, _) => Opinion::Bad("INVAL_PROC"),
        _ => Opinion::Bad("ERR_VERS"),
    }
}

fn good(octets: &[u8], words: [u32; 4], what: What) -> Opinion {
    let header = match &what {
        What::Error(error) => 16 + 4 * error.len(),
        _ => octets.len(),
    };
    Opinion::Good(Message {
        xid: words[0],
        vers: words[1],
        credits: words[2],
        header,
        what,
    })
}

fn reply_declared(octets: &[u8]) -> bool {
    octets[16..20] == [0, 0, 0, 1]
}

fn rpc(octets: &[u8], words: [u32; 4], limit: &Limit) -> Opinion {
    let two = words[1] == 2;
    let bad = if two { "BAD_XDR" } else { "ERR_CHUNK" };
    let Some((header, part)) = read::lists(octets, two) else {
        let drop = two && reply_declared(octets);
        return Opinion::Bad(if drop { "drop" } else { bad });
    };
    let nomsg = words[3] == 1;
    let payload = &octets[header..];
    // Whose message it is: declared in version two, seen in version one.
    let reply = match (two, nomsg) {
        (true, _) => part.declared == Some(1),
        (false, true) => part.reads.is_empty() && part.reply.is_some(),
        (false, false) => payload.len() >= 8 && payload[4..8] == [0, 0, 0, 1],
    };
    if !judge::rpc(words[0], &part, nomsg, reply, payload, limit) {
        return Opinion::Bad(if reply { "drop" } else { bad });
    }
    let inv = if reply { 0 } else { part.inv };
    Opinion::Good(Message {
        xid: words[0],
        vers: words[1],
        credits: words[2],
        header,
        what: What::Rpc {
            nomsg,
            reply,
            part: Part { inv, ..part },
        },
    })
}
