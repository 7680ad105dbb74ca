//! What a port counts about its device, besides what its user counts of each completion.

/// Declares [`PortCounts`] once: the fields, and their names in the same order.
macro_rules! counts {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// What became of the work of one port since it was opened. Zero where the fabric does not
        /// count it.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct PortCounts {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl PortCounts {
            /// Every counter with its name and what it counts.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($name), concat!($($doc),*).trim_ascii_start(), self.$name),)*]
                    .into_iter()
            }
        }
    };
}

counts! {
    /// Completions that named a queue pair that is no more, dropped.
    stale,
    /// Requests that the peer's device refused access for.
    remote_access,
    /// Messages that the peer did not take.
    remote_invalid,
    /// Requests or messages longer than their memory.
    local_length,
    /// Requests refused for memory or a window of our own.
    local_protection,
    /// Messages that met no receive for too long.
    not_ready,
    /// Requests that the transport gave up.
    transport,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_fields() {
        let counts = PortCounts {
            stale: 1,
            transport: 7,
            ..PortCounts::default()
        };
        let named: Vec<_> = counts.named().collect();
        assert_eq!((named[0].0, named[0].2), ("stale", 1));
        assert_eq!(named.last().map(|it| (it.0, it.2)), Some(("transport", 7)));
        assert!(named.iter().all(|(_, help, _)| help.ends_with('.')));
    }
}
