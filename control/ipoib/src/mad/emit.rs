//! Management datagrams from values.

use super::header::{DATA_BYTES, HEADER_BYTES, HeaderOctets, MAD_BYTES};
use super::{Attribute, AttributeId, Mad, Method, Status, Template, Tid};
use zerocopy::IntoBytes;
use zerocopy::network_endian::{U16, U64};

/// The octets of one management datagram.
pub type MadOctets = [u8; MAD_BYTES];

/// A request that names components: the Get, GetTable, Set and Delete of records.
#[must_use]
pub fn request<T: Template>(method: Method, tid: Tid, template: &T) -> MadOctets {
    let (octets, mask) = template.octets();
    let mut header = HeaderOctets::new(method, Status::Ok, tid, T::ID);
    header.mask = U64::new(mask);
    assemble(&header, octets.as_bytes())
}

/// A request with a whole attribute, which has no components to name: the Set of a subscription, the Report of an event.
#[must_use]
pub fn whole<A: Attribute>(method: Method, tid: Tid, attribute: &A) -> MadOctets {
    let header = HeaderOctets::new(method, Status::Ok, tid, A::ID);
    assemble(&header, attribute.octets().as_bytes())
}

/// A request without any data: the Get of what there is one of.
#[must_use]
pub fn bare(method: Method, tid: Tid, attribute: AttributeId) -> MadOctets {
    assemble(&HeaderOctets::new(method, Status::Ok, tid, attribute), &[])
}

/// The answer to a report: its own octets, with the method of an answer, so that the reporter repeats it no more.
#[must_use]
pub fn acknowledge<A: Attribute>(report: &Mad<'_>, attribute: &A) -> MadOctets {
    reply(report, Status::Ok, Some(attribute))
}

/// The answer of an SA to a request, with the attribute if there is one to give.
#[must_use]
pub fn reply<A: Attribute>(to: &Mad<'_>, status: Status, attribute: Option<&A>) -> MadOctets {
    let header = answer(to, status);
    match attribute {
        Some(attribute) => assemble(&header, attribute.octets().as_bytes()),
        None => assemble(&header, &[]),
    }
}

/// The answer of an SA to a GetTable, as it is after reassembly: the headers and all records, appended to `out`, which has
/// to be empty. Not padded to the length of a MAD.
pub fn reply_table<A: Attribute>(to: &Mad<'_>, records: &[A], out: &mut Vec<u8>) {
    let step = size_of::<A::Octets>().next_multiple_of(8);
    let bytes = records.len().saturating_mul(step);
    let mut header = answer(to, Status::Ok);
    header.alone(u32::try_from(bytes).unwrap_or(u32::MAX));
    header.offset = U16::new(match records {
        [] => 0,
        _ => u16::try_from(step.div_euclid(8)).unwrap_or(u16::MAX),
    });
    out.reserve(HEADER_BYTES.saturating_add(bytes));
    out.extend_from_slice(header.as_bytes());
    for record in records {
        let octets = record.octets();
        out.extend_from_slice(octets.as_bytes());
        let padding = step.saturating_sub(size_of::<A::Octets>());
        out.extend(std::iter::repeat_n(0, padding));
    }
}

fn answer(to: &Mad<'_>, status: Status) -> HeaderOctets {
    let mut header = HeaderOctets::new(to.method.response(), status, to.tid, to.attribute);
    header.tid = U64::new(to.whole_tid);
    header
}

fn assemble(header: &HeaderOctets, data: &[u8]) -> MadOctets {
    let mut mad = [0; MAD_BYTES];
    let (head, rest) = mad.split_at_mut(HEADER_BYTES);
    head.copy_from_slice(header.as_bytes());
    debug_assert!(data.len() <= DATA_BYTES, "an attribute fits in a MAD");
    for (place, octet) in rest.iter_mut().zip(data) {
        *place = *octet;
    }
    mad
}
