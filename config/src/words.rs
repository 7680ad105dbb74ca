//! Values that are one of a few words.

use crate::link::Subnet;
use crate::plan::{Backward, Expose, Hugepages, Log, Packets, SourcePort};

/// A value that is one of a few words.
pub(crate) trait Word: Copy + PartialEq + 'static {
    /// The words and what they mean; never empty.
    const WORDS: &'static [(&'static str, Self)];

    /// The words alone.
    fn names() -> Vec<&'static str> {
        Self::WORDS.iter().map(|(name, _)| *name).collect()
    }

    /// What a word means.
    fn of(text: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, value)| *value)
    }

    /// The word for a value.
    fn name(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(name, _)| name)
    }
}

/// `runtime.idle`, without the time that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleWord {
    Spin,
    Adaptive,
}

impl Word for IdleWord {
    const WORDS: &'static [(&'static str, Self)] =
        &[("spin", IdleWord::Spin), ("adaptive", IdleWord::Adaptive)];
}

impl Word for Log {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("error", Log::Error),
        ("warn", Log::Warn),
        ("info", Log::Info),
        ("debug", Log::Debug),
    ];
}

impl Word for Hugepages {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("try", Hugepages::Try),
        ("require", Hugepages::Require),
        ("off", Hugepages::Off),
    ];
}

impl Word for SourcePort {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("any", SourcePort::Any),
        ("privileged", SourcePort::Privileged),
    ];
}

impl Word for Expose {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", Expose::Auto),
        ("window", Expose::Window),
        ("region", Expose::Region),
        ("arena", Expose::Arena),
    ];
}

impl Word for Subnet {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("memory", Subnet::Memory),
        ("infiniband", Subnet::Infiniband),
        ("ethernet", Subnet::Ethernet),
    ];
}

impl Word for Packets {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("udp", Packets::Udp),
        ("native", Packets::Native),
        ("dpdk", Packets::Dpdk),
    ];
}

impl Word for Backward {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("none", Backward::None),
        ("inline", Backward::Inline),
        ("general", Backward::General),
    ];
}
