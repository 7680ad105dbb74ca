//! Upper-layer bindings (RFC 8267): which items of a program's messages may go by direct data
//! placement, and how long a Reply can get.
//!
//! A [`Binding`] is looked up once, from the header of the Call, kept with it, and asked again
//! when the Reply is there. It is a pointer to a row of a table: each program is one table of
//! [`Rule`]s by procedure, and one function walks the XDR shapes in them. Walking allocates
//! nothing and cannot fail: octets that do not have the expected shape have no eligible item,
//! and the message travels whole, for its receiver to judge (V1-12).
//!
//! RPCSEC_GSS: under integrity or privacy, and in its context-control messages, arguments and
//! results are not where RFC 1813 says, so nothing is eligible and the Reply has no bound.
//!
//! A further program is one more table and one more arm in [`Binding::of_procedure`]. Nothing here knows
//! how many items a message has beyond [`MAX_ITEMS`].

mod auxiliary;
pub mod nfs3;
mod shape;

#[cfg(test)]
mod tests;

pub use auxiliary::{mount3, nfsacl3};

use crate::xdr::{Cursor, padding};
use arrayvec::ArrayVec;
use rpcrdma_engine::{MAX_PARTS, MAX_RESULTS};
use rpcrdma_wire::rpc::{CallHeader, RPC_VERSION};
use shape::{Step, walk};

/// Most eligible items of one message: each makes at most two parts of it, and one part more is
/// what follows the last.
pub const MAX_ITEMS: usize = (MAX_PARTS - 1) / 2;

/// Longest head of an accepted RPC Reply, in octets: five words, a verifier of 400 octets
/// (RFC 5531 section 8.2) and the status.
pub const REPLY_HEAD_BYTES: u32 = 5 * 4 + 400 + 4;

/// The eligible items of a message, in order.
pub type Items = ArrayVec<Item, MAX_ITEMS>;

/// One DDP-eligible data item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Where its octets begin (or would, in a reduced message): just behind the word that
    /// holds its length. In octets from the start of the message.
    pub at: u32,
    /// Its octets, without padding.
    pub len: u32,
}

/// How long the Reply to a Call can get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Largest size of each eligible result, in octets, padding left out, in order.
    pub results: ArrayVec<u32, MAX_RESULTS>,
    /// Largest size of the RPC message without those results, in octets. `None`: no bound.
    pub body: Option<u32>,
}

/// What the binding of a program says of one procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    /// The way from the start of the arguments to the length of the eligible one.
    argument: Option<&'static [Step]>,
    /// The way from the start of the results to the length of the eligible one.
    result: Option<&'static [Step]>,
    /// How large the results get.
    room: Room,
}

/// How large the results of a procedure get, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Never larger than this.
    Fixed(u32),
    /// `base`, and as much again as the argument at `count` allows, or `least`.
    Counted {
        base: u32,
        least: u32,
        count: &'static [Step],
    },
    /// `base`, and an eligible item of at most `item`.
    Item { base: u32, item: u32 },
    /// `base`, and an eligible item of as many octets as the argument at `count` says.
    CountedItem { base: u32, count: &'static [Step] },
    /// The protocol sets no bound.
    Unbound,
}

impl Rule {
    const fn fixed(largest: u32) -> Self {
        Self {
            argument: None,
            result: None,
            room: Room::Fixed(largest),
        }
    }

    const fn counted(base: u32, least: u32, count: &'static [Step]) -> Self {
        Self {
            argument: None,
            result: None,
            room: Room::Counted { base, least, count },
        }
    }
}

/// The binding of one Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding(Option<&'static Rule>);

impl Binding {
    /// No item is eligible and no reply has a bound: for programs without a binding.
    pub const NONE: Self = Self(None);

    /// The binding of a Call, by its header.
    #[must_use]
    pub fn of(header: &CallHeader) -> Self {
        if header.rpc_version != RPC_VERSION || !header.reducible() {
            return Self::NONE;
        }
        Self::of_procedure(header.program, header.version, header.procedure)
    }

    /// The binding of a procedure under a security flavor that leaves arguments and results
    /// in the clear and in place.
    #[must_use]
    pub fn of_procedure(program: u32, version: u32, procedure: u32) -> Self {
        let rules: &'static [Rule] = match (program, version) {
            (nfs3::PROGRAM, nfs3::VERSION) => &nfs3::RULES,
            (mount3::PROGRAM, mount3::VERSION) => &mount3::RULES,
            (nfsacl3::PROGRAM, nfsacl3::VERSION) => &nfsacl3::RULES,
            _ => &[],
        };
        Self(rules.get(procedure as usize))
    }

    /// The eligible items of a Call message whose arguments begin at octet `arguments`.
    #[must_use]
    pub fn call_items(self, message: &[u8], arguments: usize) -> Items {
        let shape = self.0.and_then(|rule| rule.argument);
        whole_item(shape, message, arguments)
    }

    /// The eligible items of a successful Reply message whose results begin at octet `results`.
    #[must_use]
    pub fn reply_items(self, message: &[u8], results: usize) -> Items {
        let shape = self.0.and_then(|rule| rule.result);
        whole_item(shape, message, results)
    }

    /// Where the eligible items were taken out of a successful Reply message that came reduced,
    /// and how long each one is. `message` may have its first item only: where that one is
    /// missing, nothing behind it is where it seems.
    #[must_use]
    pub fn reply_gaps(self, message: &[u8], results: usize) -> Items {
        let shape = self.0.and_then(|rule| rule.result);
        item(shape, message, results).into_iter().collect()
    }

    /// How long the Reply can get, from the Call's arguments, which begin at octet `arguments`
    /// of `message`. The first [`CALL_HEAD_BYTES`] of the message are enough to tell.
    #[must_use]
    pub fn expected(self, message: &[u8], arguments: usize) -> Expected {
        let count = |shape| {
            let mut cursor = Cursor::new(message, arguments);
            walk(&mut cursor, shape)?;
            cursor.take_word()
        };
        // Arguments that do not even reach their count are garbage: any error reply is short.
        let (base, item) = match self.0.map_or(Room::Unbound, |rule| rule.room) {
            Room::Fixed(largest) => (Some(largest), None),
            Room::Counted {
                base,
                least,
                count: shape,
            } => {
                let counted = count(shape).unwrap_or(0).max(least);
                (Some(base.saturating_add(counted)), None)
            }
            Room::Item { base, item } => (Some(base), Some(item)),
            Room::CountedItem { base, count: shape } => (Some(base), count(shape)),
            Room::Unbound => (None, None),
        };
        let body = base.map(|base| base.saturating_add(REPLY_HEAD_BYTES).saturating_add(3) & !3);
        Expected {
            results: item.into_iter().collect(),
            body,
        }
    }
}

/// Octets at the front of any Call that hold its RPC header (both opaques at their largest,
/// RFC 5531 section 8.2) and every argument that [`Binding::expected`] looks at.
pub const CALL_HEAD_BYTES: u32 = 6 * 4 + 2 * (8 + 400) + 96;

/// The item at the end of `shape`, if its octets and its padding are there.
fn whole_item(shape: Option<&[Step]>, message: &[u8], at: usize) -> Items {
    let whole = |item: &Item| {
        let end = u64::from(item.at) + u64::from(item.len) + u64::from(padding(item.len));
        end <= message.len() as u64
    };
    item(shape, message, at).filter(whole).into_iter().collect()
}

/// The item whose length stands at the end of `shape`. Empty ones count as absent: there is
/// nothing to place.
fn item(shape: Option<&[Step]>, message: &[u8], at: usize) -> Option<Item> {
    let mut cursor = Cursor::new(message, at);
    walk(&mut cursor, shape?)?;
    let len = cursor.take_word().filter(|&len| len != 0)?;
    Some(Item {
        at: u32::try_from(cursor.at()).ok()?,
        len,
    })
}
