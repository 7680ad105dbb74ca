//! How the reasons for a refusal are declared: once, so that enum, list, names and counters cannot differ.

/// Declares `Reject` with its names, as metrics and logs have them; counted in a [`Tally`](crate::listed::Tally).
macro_rules! rejects {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why it was refused: what its sender got wrong. Each variant has one counter and one name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Reject {
            $($(#[$doc])* $variant,)*
        }

        impl Reject {
            /// Every variant, in the order of [`Reject::index`].
            pub const ALL: &'static [Reject] = &[$(Reject::$variant,)*];
            /// How many variants there are, and so how many counters.
            pub const COUNT: usize = Reject::ALL.len();

            /// Its name in metrics and logs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Reject::$variant => $name,)*
                }
            }

            /// A dense index below [`Reject::COUNT`], for a table of counters.
            #[must_use]
            pub const fn index(self) -> usize {
                self as usize
            }
        }

        impl $crate::listed::Listed for Reject {
            const ALL: &'static [Self] = Self::ALL;

            fn index(self) -> usize {
                self.index()
            }
        }

        impl std::fmt::Display for Reject {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

pub(crate) use rejects;
