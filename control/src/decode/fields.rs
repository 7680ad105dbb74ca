//! The parts of a decoded message, in the form they are printed in.

use rpcrdma_wire::{
    BackwardRequests, Body, ErrorBody, Property, PropertySet, PropertySubset, RawSegment,
    ReadSegment, Segment, cel_v2_03, rfc8166,
};
use serde::Serialize;

/// `rdma_proc`: by name where its version has it, else the number.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Proc {
    Named(&'static str),
    Number(u32),
}

impl Proc {
    pub(super) fn of(vers: u32, proc: u32) -> Proc {
        let name = match (vers, proc) {
            (_, cel_v2_03::MSG) => "MSG",
            (_, cel_v2_03::NOMSG) => "NOMSG",
            (_, cel_v2_03::ERROR) => "ERROR",
            (rfc8166::VERSION, rfc8166::MSGP) => "MSGP",
            (rfc8166::VERSION, rfc8166::DONE) => "DONE",
            (cel_v2_03::VERSION, cel_v2_03::OPTIONAL) => "OPTIONAL",
            (cel_v2_03::VERSION, cel_v2_03::CONNPROP) => "CONNPROP",
            (cel_v2_03::VERSION, cel_v2_03::REQPROP) => "REQPROP",
            (cel_v2_03::VERSION, cel_v2_03::RESPROP) => "RESPROP",
            (cel_v2_03::VERSION, cel_v2_03::UPDPROP) => "UPDPROP",
            _ => return Proc::Number(proc),
        };
        Proc::Named(name)
    }
}

/// One segment.
#[derive(Debug, Serialize)]
pub(super) struct SegmentField {
    pub(super) handle: u32,
    pub(super) length: u32,
    pub(super) offset: u64,
}

impl From<Segment> for SegmentField {
    fn from(segment: Segment) -> SegmentField {
        SegmentField {
            handle: segment.handle.0,
            length: segment.length,
            offset: segment.offset,
        }
    }
}

/// One Read chunk: the segments of one position.
#[derive(Debug, Serialize)]
pub(super) struct ReadChunk {
    pub(super) position: u32,
    pub(super) segments: Vec<SegmentField>,
}

/// Read list entries as chunks, in the order in which their positions first appear.
pub(super) fn read_chunks(reads: &[ReadSegment]) -> Vec<ReadChunk> {
    let mut chunks: Vec<ReadChunk> = Vec::new();
    for read in reads {
        let position = read.position();
        let segment = read.target().into();
        match chunks.iter_mut().find(|chunk| chunk.position == position) {
            Some(chunk) => chunk.segments.push(segment),
            None => chunks.push(ReadChunk {
                position,
                segments: vec![segment],
            }),
        }
    }
    chunks
}

/// The segments of a Write or Reply chunk.
pub(super) fn segments(chunk: &[RawSegment]) -> Vec<SegmentField> {
    let values = chunk.iter().map(RawSegment::value);
    values.map(SegmentField::from).collect()
}

/// What an ERROR says: code and name, and the two words that some codes have.
#[derive(Debug, Serialize)]
pub(super) struct ErrorField {
    pub(super) code: u32,
    pub(super) name: &'static str,
    #[serde(flatten)]
    pub(super) words: Option<ErrorWords>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ErrorWords {
    Versions { low: u32, high: u32 },
    Room { segment: u32, length: u32 },
}

impl ErrorField {
    pub(super) fn of(error: ErrorBody, vers: u32) -> ErrorField {
        let (name, words) = match error {
            ErrorBody::Version { low, high } => {
                ("ERR_VERS", Some(ErrorWords::Versions { low, high }))
            }
            ErrorBody::Chunk if vers == cel_v2_03::VERSION => ("BAD_XDR", None),
            ErrorBody::Chunk => ("ERR_CHUNK", None),
            ErrorBody::ReplyResource { segment, length } => {
                ("REPLY_RESOURCE", Some(ErrorWords::Room { segment, length }))
            }
            ErrorBody::InvalProc => ("INVAL_PROC", None),
            ErrorBody::InvalOption => ("INVAL_OPTION", None),
            ErrorBody::System => ("SYSTEM", None),
        };
        ErrorField {
            code: error.code(),
            name,
            words,
        }
    }
}

/// One property of a set. Its place in the list is its position.
#[derive(Debug, Serialize)]
pub(super) struct PropertyField {
    pub(super) id: u32,
    pub(super) name: Option<&'static str>,
    pub(super) value: Option<PropertyValue>,
    pub(super) data: String,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum PropertyValue {
    Bytes(u32),
    Backward(&'static str),
}

/// The sets and subsets of a property message, under their names in the draft.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Properties {
    Connection {
        start: Vec<PropertyField>,
        nochg: Vec<u32>,
    },
    Request {
        want: Vec<PropertyField>,
    },
    Response {
        done: Vec<u32>,
        rejected: Vec<u32>,
        other: Vec<PropertyField>,
    },
    Update {
        now: Vec<PropertyField>,
    },
}

impl Properties {
    pub(super) fn of(body: &Body<'_>) -> Option<Properties> {
        Some(match body {
            Body::ConnProp { start, nochg } => Properties::Connection {
                start: set(start),
                nochg: subset(nochg),
            },
            Body::ReqProp { want } => Properties::Request { want: set(want) },
            Body::RespProp {
                done,
                rejected,
                other,
            } => Properties::Response {
                done: subset(done),
                rejected: subset(rejected),
                other: set(other),
            },
            Body::UpdProp { now } => Properties::Update { now: set(now) },
            Body::Msg(_) | Body::NoMsg(_) | Body::Error(_) => return None,
        })
    }
}

fn set(set: &PropertySet<'_>) -> Vec<PropertyField> {
    set.iter()
        .map(|(_, id, data)| {
            let (name, value) = match Property::decode(id, data) {
                Ok(Property::ReceiveBufferSize(bytes)) => {
                    (Some("RBSIZ"), Some(PropertyValue::Bytes(bytes)))
                }
                Ok(Property::BackwardRequests(which)) => {
                    (Some("BRS"), Some(PropertyValue::Backward(backward(which))))
                }
                Ok(Property::Unknown) | Err(_) => (None, None),
            };
            PropertyField {
                id,
                name,
                value,
                data: hex(data),
            }
        })
        .collect()
}

fn backward(which: BackwardRequests) -> &'static str {
    match which {
        BackwardRequests::None => "NONE",
        BackwardRequests::Inline => "INLINE",
        BackwardRequests::General => "GENL",
    }
}

fn subset(subset: &PropertySubset<'_>) -> Vec<u32> {
    subset.iter().collect()
}

/// Octets as hex digits.
pub(super) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
