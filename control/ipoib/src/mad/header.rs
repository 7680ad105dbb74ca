//! The three headers of an SA management datagram (IBA 13.4.2, 13.6.2, 15.2.1.1).

use super::table::Table;
use super::{Attribute, Reject, Status, Template};
use std::fmt;
use zerocopy::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Octets of one MAD.
pub const MAD_BYTES: usize = 256;
/// Octets of the headers before the attribute.
pub const HEADER_BYTES: usize = 56;
/// Octets of data in one MAD.
pub const DATA_BYTES: usize = 200;
/// A limit for [`Mad::parse`]: a table of more than 16,000 groups.
pub const TABLE_BYTES: usize = 1 << 20;
/// Octets of the kernel's own header before a MAD that is sent or received through it.
pub const UMAD_BYTES: usize = 64;

const BASE_VERSION: u8 = 1;
const SUBNET_ADMINISTRATION: u8 = 0x03;
const CLASS_VERSION: u8 = 2;
const RMPP_DATA: u8 = 1;
/// The types that are no data: acknowledgement, stop, abort. Zero is data too, of senders that leave it to the kernel.
const RMPP_CONTROL: std::ops::RangeInclusive<u8> = 2..=4;
const RMPP_ACTIVE: u8 = 0x01;
/// Active, first, last: a table that is one segment long.
pub(super) const RMPP_ALONE: u8 = 0x07;
/// Octets of the SA's own header, which a segment's payload length counts too.
pub(super) const SA_HEADER_BYTES: u32 = 20;

/// The octets before the attribute.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct HeaderOctets {
    pub(super) base_version: u8,
    pub(super) class: u8,
    pub(super) class_version: u8,
    pub(super) method: u8,
    pub(super) status: U16,
    class_specific: U16,
    pub(super) tid: U64,
    pub(super) attribute: U16,
    reserved: U16,
    pub(super) modifier: U32,
    pub(super) rmpp_version: u8,
    pub(super) rmpp_type: u8,
    pub(super) rmpp_flags: u8,
    rmpp_status: u8,
    pub(super) rmpp_segment: U32,
    pub(super) rmpp_bytes: U32,
    pub(super) sm_key: U64,
    /// In units of eight octets.
    pub(super) offset: U16,
    reserved_2: U16,
    pub(super) mask: U64,
}

const _: () = assert!(size_of::<HeaderOctets>() == HEADER_BYTES);
const _: () = assert!(HEADER_BYTES + DATA_BYTES == MAD_BYTES);

impl HeaderOctets {
    /// The header of a datagram that is sent.
    pub(super) fn new(method: Method, status: Status, tid: Tid, attribute: AttributeId) -> Self {
        Self {
            base_version: BASE_VERSION,
            class: SUBNET_ADMINISTRATION,
            class_version: CLASS_VERSION,
            method: method.code(),
            status: U16::new(status.word()),
            tid: U64::new(tid.0.into()),
            attribute: U16::new(attribute.0),
            ..Self::new_zeroed()
        }
    }

    /// Marks a table as one segment of the reliable protocol that is all there is.
    pub(super) fn alone(&mut self, data_bytes: u32) {
        self.rmpp_version = 1;
        self.rmpp_type = RMPP_DATA;
        self.rmpp_flags = RMPP_ALONE;
        self.rmpp_segment = U32::new(1);
        self.rmpp_bytes = U32::new(data_bytes.saturating_add(SA_HEADER_BYTES));
    }
}

/// What a MAD asks for or answers (IBA 13.4.5, 15.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Method {
    /// One attribute is asked for.
    Get = 0x01,
    /// One is set: joining and creating are this.
    Set = 0x02,
    /// An event is told to who subscribed to it.
    Report = 0x06,
    /// A table is asked for.
    GetTable = 0x12,
    /// One is deleted: leaving is this.
    Delete = 0x15,
    /// The answer to Get and Set.
    GetResp = 0x81,
    /// The answer to Report.
    ReportResp = 0x86,
    /// The answer to GetTable.
    GetTableResp = 0x92,
    /// The answer to Delete.
    DeleteResp = 0x95,
}

impl Method {
    /// Of a code; `None` of one that is not spoken here.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0x01 => Self::Get,
            0x02 => Self::Set,
            0x06 => Self::Report,
            0x12 => Self::GetTable,
            0x15 => Self::Delete,
            0x81 => Self::GetResp,
            0x86 => Self::ReportResp,
            0x92 => Self::GetTableResp,
            0x95 => Self::DeleteResp,
            _ => return None,
        })
    }

    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// It answers something.
    #[must_use]
    pub const fn is_response(self) -> bool {
        self.code() & 0x80 != 0
    }

    /// The method of the answer; an answer's is itself.
    #[must_use]
    pub const fn response(self) -> Self {
        match self {
            Self::Get | Self::Set | Self::GetResp => Self::GetResp,
            Self::Report | Self::ReportResp => Self::ReportResp,
            Self::GetTable | Self::GetTableResp => Self::GetTableResp,
            Self::Delete | Self::DeleteResp => Self::DeleteResp,
        }
    }
}

/// Which attribute a MAD is about, host order.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttributeId(pub u16);

impl AttributeId {
    /// What the SA can do (IBA 13.4.8.1).
    pub const CLASS_PORT_INFO: Self = Self(0x0001);
    /// An event (IBA 13.4.8.2).
    pub const NOTICE: Self = Self(0x0002);
    /// A subscription to events (IBA 13.4.8.3).
    pub const INFORM_INFO: Self = Self(0x0003);
    /// A path between ports (IBA 15.2.5.16).
    pub const PATH_RECORD: Self = Self(0x0035);
    /// A port's membership in a group (IBA 15.2.5.17).
    pub const MC_MEMBER_RECORD: Self = Self(0x0038);
}

impl fmt::Debug for AttributeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::CLASS_PORT_INFO => f.write_str("ClassPortInfo"),
            Self::NOTICE => f.write_str("Notice"),
            Self::INFORM_INFO => f.write_str("InformInfo"),
            Self::PATH_RECORD => f.write_str("PathRecord"),
            Self::MC_MEMBER_RECORD => f.write_str("MCMemberRecord"),
            Self(other) => write!(f, "attribute {other:#06x}"),
        }
    }
}

/// The sender's own half of a transaction identifier, host order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Tid(pub u32);

/// A management datagram whose headers were checked.
#[derive(Clone, Copy, Debug)]
pub struct Mad<'b> {
    /// What it asks for or answers.
    pub method: Method,
    /// What became of the request; of no meaning in a request.
    pub status: Status,
    /// Whose transaction, in the requester's own half.
    pub tid: Tid,
    /// The whole identifier, for who answers: the kernel's half goes back with it.
    pub whole_tid: u64,
    /// Which attribute.
    pub attribute: AttributeId,
    /// Which components a request names, by the attribute's own numbering; replies leave it zero, or as it was.
    pub mask: u64,
    /// From one record of a table to the next, in octets; zero of an empty table.
    offset_bytes: usize,
    /// What is behind the headers.
    data: &'b [u8],
}

impl<'b> Mad<'b> {
    /// Checks the headers of a datagram as it came, or of a table that was put together of many.
    ///
    /// # Errors
    ///
    /// It is shorter than its headers or longer than `max_bytes`, or not one of the SA's, or no data.
    pub fn parse(octets: &'b [u8], max_bytes: usize) -> Result<Self, Reject> {
        let (header, data) = HeaderOctets::ref_from_prefix(octets).map_err(|_| Reject::Short)?;
        if octets.len() > max_bytes {
            return Err(Reject::TooLong);
        }
        check_class(header)?;
        let method = Method::from_code(header.method).ok_or(Reject::Method)?;
        if header.rmpp_flags & RMPP_ACTIVE != 0 && RMPP_CONTROL.contains(&header.rmpp_type) {
            return Err(Reject::RmppType);
        }
        let whole_tid = header.tid.get();
        Ok(Self {
            method,
            status: Status::of_word(header.status.get()),
            tid: own_half(whole_tid),
            whole_tid,
            attribute: AttributeId(header.attribute.get()),
            mask: header.mask.get(),
            offset_bytes: usize::from(header.offset.get()).saturating_mul(8),
            data: clip(header, data),
        })
    }

    /// The one attribute it has.
    ///
    /// # Errors
    ///
    /// It is about another attribute, or too short for this one, or a field has no meaning.
    pub fn record<A: Attribute>(&self) -> Result<A, Reject> {
        let octets: &A::Octets = self.first(A::ID)?;
        A::of(octets)
    }

    /// What a request names of an attribute.
    ///
    /// # Errors
    ///
    /// As [`Mad::record`]; also where a selector is named without its value.
    pub fn template<T: Template>(&self) -> Result<T, Reject> {
        let octets: &T::Octets = self.first(T::ID)?;
        T::of(octets, self.mask)
    }

    /// The records of a table, which may be none.
    ///
    /// # Errors
    ///
    /// It is about another attribute, or its records are nearer to each other than they are long.
    pub fn table<A: Attribute>(&self) -> Result<Table<'b, A>, Reject> {
        if self.attribute != A::ID {
            return Err(Reject::Attribute);
        }
        Table::new(self.data, self.offset_bytes)
    }

    fn first<O>(&self, id: AttributeId) -> Result<&'b O, Reject>
    where
        O: FromBytes + Immutable + KnownLayout + Unaligned,
    {
        if self.attribute != id {
            return Err(Reject::Attribute);
        }
        let (octets, _) = O::ref_from_prefix(self.data).map_err(|_| Reject::Truncated)?;
        Ok(octets)
    }
}

fn check_class(header: &HeaderOctets) -> Result<(), Reject> {
    if header.base_version != BASE_VERSION {
        return Err(Reject::BaseVersion);
    }
    if header.class != SUBNET_ADMINISTRATION {
        return Err(Reject::Class);
    }
    if header.class_version != CLASS_VERSION {
        return Err(Reject::ClassVersion);
    }
    Ok(())
}

/// The data that counts. A segment that is alone says how much of its 200 octets is data; of a table that was put
/// together the length says it, and the header is that of its first segment.
fn clip<'b>(header: &HeaderOctets, data: &'b [u8]) -> &'b [u8] {
    let says = header.rmpp_bytes.get().checked_sub(SA_HEADER_BYTES);
    match (header.rmpp_flags & RMPP_ALONE, says) {
        (RMPP_ALONE, Some(bytes)) => data.get(..bytes as usize).unwrap_or(data),
        _ => data,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the lower half is asked for"
)]
const fn own_half(tid: u64) -> Tid {
    Tid(tid as u32)
}
