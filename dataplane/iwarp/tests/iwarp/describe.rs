//! What the crate makes of a chunk, in the oracle's words.

use rpcrdma_iwarp::rdmap::{Arrival, Opcode, ReadRequest, sort};
use rpcrdma_iwarp::session::control::{self, Function};
use rpcrdma_iwarp::{Reject, Terminate, ddp};

/// What a chunk is, or what is wrong with it.
pub(crate) fn describe(ppid: u32, chunk: &[u8]) -> Result<String, Reject> {
    let (ssn, rest) = chunk.split_first_chunk().ok_or(Reject::ChunkShort)?;
    let ssn = u16::from_be_bytes(*ssn);
    let what = match ppid {
        16 => segment(rest)?,
        17 => message(rest)?,
        _ => return Err(Reject::Ppid),
    };
    Ok(format!("ssn {ssn} {what}"))
}

fn message(octets: &[u8]) -> Result<String, Reject> {
    let control = control::parse(octets)?;
    let name = match control.function {
        Function::Initiate => "initiate",
        Function::Accept => "accept",
        Function::Reject => "reject",
        Function::Terminate => "terminate",
        Function::EnhancedInitiate => "enhanced-initiate",
        Function::EnhancedAccept => "enhanced-accept",
        Function::EnhancedReject => "enhanced-reject",
    };
    let word = control.word.map_or(String::new(), |word| {
        let bit = u8::from;
        format!(
            " ird {} ord {} peers {} rtr {}{}{}",
            word.depths.ird,
            word.depths.ord,
            bit(word.peers),
            bit(word.send),
            bit(word.write),
            bit(word.read)
        )
    });
    Ok(format!("{name}{word} data {}", control.private_data.len()))
}

fn segment(octets: &[u8]) -> Result<String, Reject> {
    let (header, payload) = ddp::parse(octets)?;
    let len = payload.len();
    let last = |last| if last { " last" } else { "" };
    Ok(match sort(header)? {
        Arrival::Write(it) => format!(
            "write{} stag {:#x} to {:#x} payload {len}",
            last(it.last),
            it.stag.0,
            it.to
        ),
        Arrival::ReadResponse(it) => format!(
            "read-response{} stag {:#x} to {:#x} payload {len}",
            last(it.last),
            it.stag.0,
            it.to
        ),
        Arrival::Send(it) => {
            let (name, invalidate) = send(it.ulp, it.ulp_word);
            format!(
                "{name}{}{invalidate} msn {} mo {} payload {len}",
                last(it.last),
                it.msn,
                it.mo
            )
        }
        Arrival::ReadRequest(it) => format!(
            "read-request{} msn {} mo {} payload {len}{}",
            last(it.last),
            it.msn,
            it.mo,
            request(it.mo, payload)
        ),
        Arrival::Terminate(it) => format!(
            "terminate-message{} msn {} mo {} payload {len}{}",
            last(it.last),
            it.msn,
            it.mo,
            terminate(it.mo, payload)
        ),
    })
}

fn send(control: u8, word: u32) -> (&'static str, String) {
    let opcode = Opcode::parse(control).unwrap();
    let name = match opcode {
        Opcode::SendInvalidate => "send-invalidate",
        Opcode::SendSolicited => "send-solicited",
        Opcode::SendSolicitedInvalidate => "send-solicited-invalidate",
        _ => "send",
    };
    let invalidate = if opcode.invalidates() {
        format!(" invalidate {word:#x}")
    } else {
        String::new()
    };
    (name, invalidate)
}

fn request(mo: u32, payload: &[u8]) -> String {
    match payload.try_into() {
        Ok(octets) if mo == 0 => {
            let it = ReadRequest::parse(octets);
            format!(
                " sink {:#x} at {:#x} size {} source {:#x} at {:#x}",
                it.sink.0, it.sink_to, it.size, it.source.0, it.source_to
            )
        }
        _ => String::new(),
    }
}

fn terminate(mo: u32, payload: &[u8]) -> String {
    match Terminate::parse(payload) {
        Some(it) if mo == 0 => format!(
            " layer {} type {} code {} request {}",
            it.code.layer,
            it.code.error_type,
            it.code.error_code,
            u8::from(it.of_request)
        ),
        _ => String::new(),
    }
}
