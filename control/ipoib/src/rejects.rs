//! How the reasons for a refusal are declared.

/// Declares `Reject` with its names, as metrics and logs have them; counted in a [`Tally`](rpcrdma_listed::Tally).
macro_rules! rejects {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        rpcrdma_listed::listed! {
            /// Why it was refused: what its sender got wrong. Each variant has one counter and one name.
            #[repr(u8)]
            pub Reject {
                $($(#[$doc])* $variant => $name,)*
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
