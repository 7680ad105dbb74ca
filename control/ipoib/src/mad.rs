//! Management datagrams (MADs) of the subnet administrator (SA): their octets, in both directions (IBA 13.4 and 15.2).
//!
//! ```text
//! | 24            | 12   | 8      | 2      | 2 | 8         | 200 in one MAD; more where many were put together |
//! | common header | RMPP | SM_Key | offset | - | component | the attribute, or a table of them                 |
//! ```
//!
//! [`Mad::parse`] checks the headers once. What is behind them is then asked for by type: [`Mad::record`] for the one
//! attribute of a Get, Set, Delete or Report, [`Mad::table`] for the many of a GetTable, [`Mad::template`] for what a
//! request named. Each looks at the attribute's identifier first, so an answer of another kind than what was asked is
//! refused and not misread.
//!
//! **Two shapes of a record.** Whoever asks names some components and leaves others open: a `Template`, whose fields are
//! `Option`s, and whose component mask is made of those that are there. What the SA answers is complete: a record. Absence
//! is never zero.
//!
//! **Tables.** A reply that is longer than one MAD comes in segments (RMPP, IBA 13.6), which the kernel puts together: what
//! arrives here is one header with all the records behind it, each as far from the next as the header's attribute offset
//! says. Its length is what the peer made it, so [`Mad::parse`] is given a limit. Where nobody reassembles, the table ends
//! with the first MAD; [`Table::cut_bytes`] tells.
//!
//! **Transaction identifiers.** The upper 32 bits are the kernel's: it writes the sending agent's number there, to find
//! it again by the reply's. The lower 32 are the sender's own, and [`Mad::tid`] is only those.
//!
//! Nothing here allocates on what a peer sent, or can fail after it was parsed. [`emit`] writes from values into a buffer
//! that is all zeros before: reserved fields are zero.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::panic
    )
)]

mod class_port_info;
pub mod emit;
mod header;
mod inform;
mod mc_member;
mod notice;
mod path;
mod reject;
mod status;
mod table;
mod units;

pub use class_port_info::ClassPortInfo;
pub use emit::MadOctets;
pub use header::{
    AttributeId, DATA_BYTES, HEADER_BYTES, MAD_BYTES, Mad, Method, TABLE_BYTES, Tid, UMAD_BYTES,
};
pub use inform::InformInfo;
pub use mc_member::{McLeft, McMember, McMemberTemplate};
pub use notice::{Event, Notice};
pub use path::{Path, PathTemplate};
pub use reject::Reject;
pub use status::Status;
pub use table::Table;
pub use units::{PacketLife, Rate, Selector};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An attribute of fixed size, complete.
pub trait Attribute: Sized {
    /// Its octets on the wire.
    type Octets: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned;
    /// Its identifier.
    const ID: AttributeId;

    /// The value of its octets.
    ///
    /// # Errors
    ///
    /// A field has no meaning.
    fn of(octets: &Self::Octets) -> Result<Self, Reject>;

    /// The octets of the value; numbers wider than their field are cut to it.
    fn octets(&self) -> Self::Octets;
}

/// What a request says of an attribute: some components, and none of the others.
pub trait Template: Sized {
    /// The octets of the whole attribute on the wire.
    type Octets: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned;
    /// Its identifier.
    const ID: AttributeId;

    /// The components that `mask` names.
    ///
    /// # Errors
    ///
    /// A field that is named has no meaning, or a selector is named without its value, or the reverse.
    fn of(octets: &Self::Octets, mask: u64) -> Result<Self, Reject>;

    /// The octets, those of absent components zero, and the component mask.
    fn octets(&self) -> (Self::Octets, u64);
}
