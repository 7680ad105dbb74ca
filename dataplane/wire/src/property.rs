//! Transport properties of version two: sets of them, and subsets of sets.
//!
//! A set is a counted array of `{ identifier, opaque data }`, in no order that means anything;
//! what has a meaning is the *position* of each in the array, because a subset is a bit mask
//! over the positions of some set: position N is bit `1 << (N % 32)` of word N / 32 (V2-05).
//! Unknown properties keep their position.

use crate::cel_v2_03 as cel;
use crate::limits::Limits;
use crate::octets::{take_opaque, take_word};
use crate::reject::Reject;
use zerocopy::{BigEndian, FromBytes, U32};

/// The value of one property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Property {
    /// RBSIZ: the smallest posted receive, so the longest message the peer may Send, octets.
    ReceiveBufferSize(u32),
    /// BRS: which backward Calls are taken.
    BackwardRequests(BackwardRequests),
    /// Any other: carried, counted by position, and skipped.
    Unknown,
}

/// Which Calls in the backward direction are taken, and the order of it (V2-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(u32)]
pub enum BackwardRequests {
    /// None at all.
    None = cel::BRS_NONE,
    /// Those without chunks.
    #[default]
    Inline = cel::BRS_INLINE,
    /// All.
    General = cel::BRS_GENL,
}

impl BackwardRequests {
    /// Its `rpcrdma2_bkreqsup`.
    #[must_use]
    pub const fn code(self) -> u32 {
        self as u32
    }
}

impl Property {
    /// Reads the data of the property with this identifier. No data is the default value.
    ///
    /// # Errors
    ///
    /// [`Reject::PropertyValue`] for a known property with data that is no value of its type
    /// (V2-03), or an RBSIZ below 1024 octets (V2-21).
    pub fn decode(id: u32, data: &[u8]) -> Result<Property, Reject> {
        match id {
            cel::PROPERTY_RBSIZ => match word_or(data, cel::RBSIZ_DEFAULT)? {
                bytes if bytes >= cel::RBSIZ_LEAST => Ok(Property::ReceiveBufferSize(bytes)),
                _ => Err(Reject::PropertyValue),
            },
            cel::PROPERTY_BRS => match word_or(data, cel::BRS_INLINE)? {
                cel::BRS_NONE => Ok(Property::BackwardRequests(BackwardRequests::None)),
                cel::BRS_INLINE => Ok(Property::BackwardRequests(BackwardRequests::Inline)),
                cel::BRS_GENL => Ok(Property::BackwardRequests(BackwardRequests::General)),
                _ => Err(Reject::PropertyValue),
            },
            _ => Ok(Property::Unknown),
        }
    }

    /// The identifier and the data of a known property, as they go on the wire; `None` for
    /// [`Property::Unknown`].
    #[must_use]
    pub const fn encode(self) -> Option<(u32, [u8; 4])> {
        match self {
            Property::ReceiveBufferSize(bytes) => Some((cel::PROPERTY_RBSIZ, bytes.to_be_bytes())),
            Property::BackwardRequests(which) => {
                Some((cel::PROPERTY_BRS, which.code().to_be_bytes()))
            }
            Property::Unknown => None,
        }
    }
}

/// The one word that `data` is, or `default` where there is no data.
fn word_or(data: &[u8], default: u32) -> Result<u32, Reject> {
    match (data.is_empty(), take_word(data)) {
        (true, _) => Ok(default),
        (false, Some((word, []))) => Ok(word),
        _ => Err(Reject::PropertyValue),
    }
}

/// A checked property set.
#[derive(Clone, Copy, Debug)]
pub struct PropertySet<'m> {
    entries: &'m [u8],
    count: u32,
}

impl<'m> PropertySet<'m> {
    /// Properties in it.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// True when there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The properties by position: position, identifier, data.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, &'m [u8])> + use<'m> {
        let mut entries = self.entries;
        (0..self.count).map_while(move |position| {
            // Checked when the set was taken: cannot fail before the last.
            let (id, rest) = take_word(entries)?;
            let (data, rest) = take_opaque(rest)?;
            entries = rest;
            Some((position, id, data))
        })
    }

    /// The properties by position, their values read.
    pub fn values(&self) -> impl Iterator<Item = (u32, Property)> + use<'m> {
        // Checked when the set was taken: no known property has a bad value.
        self.iter().map(|(position, id, data)| {
            (
                position,
                Property::decode(id, data).unwrap_or(Property::Unknown),
            )
        })
    }

    /// Where the property with this identifier stands that counts: the last one (V2-15).
    #[must_use]
    pub fn last(&self, id: u32) -> Option<u32> {
        let matching = self.iter().filter(|(_, other, _)| *other == id);
        matching.last().map(|(position, _, _)| position)
    }
}

/// A checked property subset: a bit mask over the positions of a set.
#[derive(Clone, Copy, Debug)]
pub struct PropertySubset<'m> {
    words: &'m [U32<BigEndian>],
}

impl<'m> PropertySubset<'m> {
    /// True when `position` is in it. Words beyond the last are zero.
    #[must_use]
    pub fn contains(&self, position: u32) -> bool {
        let word = self.words.get((position / 32) as usize);
        word.is_some_and(|word| word.get() >> (position % 32) & 1 == 1)
    }

    /// The positions in it, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<'m> {
        (0_u32..)
            .step_by(32)
            .zip(self.words)
            .flat_map(|(first, word)| {
                let bits = word.get();
                (0..32)
                    .filter(move |bit| bits >> bit & 1 == 1)
                    .map(move |bit| first | bit)
            })
    }

    /// True when every position in it is one of a set of `count` properties (V2-05).
    #[must_use]
    pub fn within(&self, count: u32) -> bool {
        self.iter().all(|position| position < count)
    }
}

/// Takes a property set: every entry whole, none over the limits, every known value good.
pub(crate) fn take_set<'m>(
    octets: &'m [u8],
    limits: &Limits,
) -> Result<(PropertySet<'m>, &'m [u8]), Reject> {
    let (count, entries) = take_word(octets).ok_or(Reject::Truncated)?;
    if count > limits.properties {
        return Err(Reject::TooManyProperties);
    }
    let mut rest = entries;
    for _ in 0..count {
        let (id, after) = take_word(rest).ok_or(Reject::Truncated)?;
        let (data, after) = take_opaque(after).ok_or(Reject::Truncated)?;
        if data.len() > limits.property_bytes as usize {
            return Err(Reject::PropertyBytes);
        }
        Property::decode(id, data)?;
        rest = after;
    }
    Ok((PropertySet { entries, count }, rest))
}

/// Takes a property subset. Which positions it may name is not judged here.
pub(crate) fn take_subset(octets: &[u8]) -> Result<(PropertySubset<'_>, &[u8]), Reject> {
    let (count, rest) = take_word(octets).ok_or(Reject::Truncated)?;
    let (words, rest) = <[U32<BigEndian>]>::ref_from_prefix_with_elems(rest, count as usize)
        .map_err(|_| Reject::Truncated)?;
    Ok((PropertySubset { words }, rest))
}
