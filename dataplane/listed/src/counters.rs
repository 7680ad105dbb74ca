//! Structures of counters.

/// Declares a structure of counters with a name for each and what it counts, which is its
/// documentation. Counters are plain numbers that are added to by their owner. What cannot be counted
/// by one number comes behind `with`; such a structure has no `add`.
///
/// ```
/// rpcrdma_listed::counters! {
///     /// What a door has seen.
///     #[derive(Copy)]
///     pub Doings {
///         /// Times it was opened.
///         opened,
///         /// Times somebody knocked.
///         knocks,
///     }
/// }
/// let mut sum = Doings { opened: 1, knocks: 2 };
/// sum.add(&Doings { opened: 3, ..Doings::default() });
/// let named: Vec<_> = sum.named().collect();
/// assert_eq!(named[0], ("opened", "Times it was opened.", 4));
/// ```
#[macro_export]
macro_rules! counters {
    ($(#[$meta:meta])* $visible:vis $counters:ident {
        $($(#[doc = $doc:literal])* $name:ident,)*
    }) => {
        $crate::counters! {
            $(#[$meta])* $visible $counters { $($(#[doc = $doc])* $name,)* } with {}
        }

        impl $counters {
            /// Adds the counters of another one.
            $visible const fn add(&mut self, other: &Self) {
                $(self.$name = self.$name.saturating_add(other.$name);)*
            }
        }
    };
    ($(#[$meta:meta])* $visible:vis $counters:ident {
        $($(#[doc = $doc:literal])* $name:ident,)*
    } with {
        $($(#[$other_meta:meta])* $other:ident: $of:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        $visible struct $counters {
            $($(#[doc = $doc])* $visible $name: u64,)*
            $($(#[$other_meta])* $visible $other: $of,)*
        }

        impl $counters {
            /// Every plain counter with its name and what it counts, in order.
            $visible fn named(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + use<> {
                [$((stringify!($name), concat!($($doc),*).trim_ascii_start(), self.$name),)*]
                    .into_iter()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    counters! {
        /// What befell it.
        Lots {
            /// Times that it was
            /// good.
            good,
            /// Times that it was bad.
            bad,
        } with {
            /// The last word.
            last: &'static str,
        }
    }

    counters! {
        /// The same, and no more.
        #[derive(Copy)]
        Few {
            /// Good ones.
            good,
        }
    }

    #[test]
    fn names_follow_the_fields() {
        let (good, bad) = (3, u64::MAX);
        let lots = Lots {
            good,
            bad,
            last: "that",
        };
        let named: Vec<_> = lots.named().collect();
        let expected = [
            ("good", "Times that it was good.", 3),
            ("bad", "Times that it was bad.", u64::MAX),
        ];
        assert_eq!(named, expected);
        assert_eq!(lots.last, "that");
    }

    #[test]
    fn a_sum_stops_at_its_end() {
        let mut sum = Few { good: 1 };
        sum.add(&Few { good: 2 });
        assert_eq!(sum.named().next(), Some(("good", "Good ones.", 3)));
        sum.add(&Few { good: u64::MAX });
        assert_eq!(sum.good, u64::MAX);
    }
}
