//! The records of a GetTable's answer (IBA 15.3.3).

use super::{Attribute, Reject};
use std::marker::PhantomData;
use zerocopy::FromBytes;

/// The records of a table, in order. One that means nothing is an `Err`, and those behind it are still given.
#[derive(Clone, Debug)]
pub struct Table<'b, A> {
    data: &'b [u8],
    /// From one record to the next, in octets: no less than a record; zero where there is none.
    step: usize,
    record: PhantomData<A>,
}

impl<'b, A: Attribute> Table<'b, A> {
    pub(super) fn new(data: &'b [u8], step: usize) -> Result<Self, Reject> {
        // An SA that has nothing to tell may leave the offset zero: its data, if any, is padding.
        let data = if step == 0 { &[] } else { data };
        if !data.is_empty() && step < size_of::<A::Octets>() {
            return Err(Reject::AttributeOffset);
        }
        Ok(Self {
            data,
            step,
            record: PhantomData,
        })
    }

    /// Octets at the end that are the beginning of a record: more than none where a table was cut, of which nobody put the
    /// segments together.
    #[must_use]
    pub fn cut_bytes(&self) -> usize {
        let rest = self.data.len().checked_rem(self.step).unwrap_or(0);
        // The last record may leave out the padding between records.
        if rest >= size_of::<A::Octets>() {
            0
        } else {
            rest
        }
    }
}

impl<A: Attribute> Iterator for Table<'_, A> {
    type Item = Result<A, Reject>;

    fn next(&mut self) -> Option<Self::Item> {
        let (octets, _) = A::Octets::ref_from_prefix(self.data).ok()?;
        self.data = self.data.get(self.step..).unwrap_or(&[]);
        Some(A::of(octets))
    }
}
