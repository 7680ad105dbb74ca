//! What is declared once and can be gone through: enumerations that know all their values (phases and
//! events of state machines, reasons for a refusal), and counters that know their names.
//!
//! A table of a state machine is printed whole, a counter is kept for each reason and shown by its
//! name, a code is looked up. All of that goes wrong in silence where the list of values and the
//! enumeration are written apart, so [`listed!`] makes both of one, and [`counters!`] does so for
//! structures of counters, their names and their help. It promises that the list has
//! every value once, in order, and that an index is a place in that list, also where the values have
//! codes of their own. It never allocates, but for a [`Tally`] when that is made.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod counters;
mod tally;

pub use tally::Tally;

/// A step that this code must never take, or that cannot come here: a state machine has none for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Illegal;

/// An enumeration of plain values, counted from zero.
pub trait Listed: Copy + 'static {
    /// Every value, in order.
    const ALL: &'static [Self];

    /// Its place in [`Listed::ALL`].
    fn index(self) -> usize;

    /// What it is called.
    fn name(self) -> &'static str;
}

/// Declares an enumeration with the list of its values, an index and a name for each, all of which
/// `Listed` has too. A value may have a name of its own, for metrics and logs, or a code:
///
/// ```
/// rpcrdma_listed::listed! {
///     /// Why it was refused.
///     pub Reject {
///         /// It ends too soon.
///         Short => "short",
///         /// Its version is not known here.
///         Version,
///     }
/// }
/// rpcrdma_listed::listed! {
///     /// What a message is.
///     #[repr(u8)]
///     pub Opcode {
///         /// A Send.
///         Send = 3,
///         /// A Terminate.
///         Terminate = 7,
///     }
/// }
/// assert_eq!(Reject::ALL, [Reject::Short, Reject::Version]);
/// assert_eq!((Reject::Short.name(), Reject::Version.name()), ("short", "Version"));
/// assert_eq!((Opcode::Terminate as u8, Opcode::Terminate.index()), (7, 1));
/// ```
#[macro_export]
macro_rules! listed {
    ($(#[$meta:meta])* $visible:vis $name:ident {
        $($(#[$vmeta:meta])* $value:ident $(= $code:literal)? $(=> $called:literal)?,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visible enum $name { $($(#[$vmeta])* $value $(= $code)?,)* }

        #[allow(dead_code, reason = "not every enumeration has a use for all of them")]
        impl $name {
            /// Every value, in order.
            $visible const ALL: &'static [Self] = &[$(Self::$value,)*];
            /// How many there are, and so how many counters.
            $visible const COUNT: usize = Self::ALL.len();

            /// A dense index below [`Self::COUNT`], for a table of counters.
            #[inline]
            #[must_use]
            $visible const fn index(self) -> usize {
                enum Place { $($value,)* }
                match self { $(Self::$value => Place::$value as usize,)* }
            }

            /// Its name: in metrics and logs where it has one for that, else as in this source.
            #[must_use]
            $visible const fn name(self) -> &'static str {
                match self { $(Self::$value => $crate::listed!(@name $value $($called)?),)* }
            }
        }

        impl $crate::Listed for $name {
            const ALL: &'static [Self] = Self::ALL;

            #[inline]
            fn index(self) -> usize {
                self.index()
            }

            fn name(self) -> &'static str {
                self.name()
            }
        }
    };
    (@name $value:ident) => { stringify!($value) };
    (@name $value:ident $called:literal) => { $called };
}

#[cfg(test)]
mod tests {
    use super::*;

    listed! {
        /// Codes with gaps, from above.
        #[repr(u16)]
        Code {
            /// The first.
            Nine = 9,
            /// The second.
            Two = 2 => "two",
            /// The third.
            Seven = 7,
        }
    }

    #[test]
    fn an_index_is_a_place_whatever_the_codes() {
        for (place, code) in Code::ALL.iter().enumerate() {
            assert_eq!(code.index(), place);
            assert_eq!(Listed::index(*code), place);
        }
        assert_eq!(Code::COUNT, 3);
        assert_eq!(Code::Seven as u16, 7);
    }

    #[test]
    fn names_are_their_own_or_those_of_the_source() {
        let names = Code::ALL.iter().map(|code| Listed::name(*code));
        assert!(names.eq(["Nine", "two", "Seven"]));
    }
}
