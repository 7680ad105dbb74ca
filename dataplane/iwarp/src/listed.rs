//! Enumerations that know all their values.

/// Declares an enumeration with the list of its values, so that the two cannot differ; with codes
/// where it has a `repr`.
macro_rules! listed {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $value:ident $(= $code:literal)?,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vmeta])* $value $(= $code)?,)* }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$value,)*];
        }
    };
}

pub(crate) use listed;
