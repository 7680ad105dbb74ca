//! What the SA made of a request (IBA 13.4.7 and 15.4.3).

/// The status of a MAD, as words of 16 bits in host order: the upper octet is the SA's, the lower one of every class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// 0x0000: done.
    Ok,
    /// 0x0001: busy, try again.
    Busy,
    /// 0x0002: to be asked elsewhere.
    Redirect,
    /// 0x0004: the class or its version is not known there.
    BadVersion,
    /// 0x0008: the method is not known there.
    BadMethod,
    /// 0x000C: the method is not known for the attribute.
    BadAttribute,
    /// 0x001C: a value in the attribute or its modifier is none.
    BadValue,
    /// 0x0100: no resources, try again.
    NoResources,
    /// 0x0200: the request is invalid.
    RequestInvalid,
    /// 0x0300: there are no such records.
    NoRecords,
    /// 0x0400: a Get that more than one record answers.
    TooManyRecords,
    /// 0x0500: a GID in the request is invalid.
    InvalidGid,
    /// 0x0600: components are missing that were needed.
    InsufficientComponents,
    /// 0x0700: the request is denied.
    RequestDenied,
    /// 0x0800: another priority is suggested.
    PrioritySuggested,
    /// Any other word.
    Other(u16),
}

impl Status {
    /// The words that have names.
    pub const NAMED: [Self; 15] = [
        Self::Ok,
        Self::Busy,
        Self::Redirect,
        Self::BadVersion,
        Self::BadMethod,
        Self::BadAttribute,
        Self::BadValue,
        Self::NoResources,
        Self::RequestInvalid,
        Self::NoRecords,
        Self::TooManyRecords,
        Self::InvalidGid,
        Self::InsufficientComponents,
        Self::RequestDenied,
        Self::PrioritySuggested,
    ];

    /// Of a word.
    #[must_use]
    pub const fn of_word(word: u16) -> Self {
        match word {
            0x0000 => Self::Ok,
            0x0001 => Self::Busy,
            0x0002 => Self::Redirect,
            0x0004 => Self::BadVersion,
            0x0008 => Self::BadMethod,
            0x000C => Self::BadAttribute,
            0x001C => Self::BadValue,
            0x0100 => Self::NoResources,
            0x0200 => Self::RequestInvalid,
            0x0300 => Self::NoRecords,
            0x0400 => Self::TooManyRecords,
            0x0500 => Self::InvalidGid,
            0x0600 => Self::InsufficientComponents,
            0x0700 => Self::RequestDenied,
            0x0800 => Self::PrioritySuggested,
            other => Self::Other(other),
        }
    }

    /// The word.
    #[must_use]
    pub const fn word(self) -> u16 {
        match self {
            Self::Ok => 0x0000,
            Self::Busy => 0x0001,
            Self::Redirect => 0x0002,
            Self::BadVersion => 0x0004,
            Self::BadMethod => 0x0008,
            Self::BadAttribute => 0x000C,
            Self::BadValue => 0x001C,
            Self::NoResources => 0x0100,
            Self::RequestInvalid => 0x0200,
            Self::NoRecords => 0x0300,
            Self::TooManyRecords => 0x0400,
            Self::InvalidGid => 0x0500,
            Self::InsufficientComponents => 0x0600,
            Self::RequestDenied => 0x0700,
            Self::PrioritySuggested => 0x0800,
            Self::Other(word) => word,
        }
    }

    /// The same request may fare better later: a reason to back off and not to give up.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::Busy | Self::NoResources)
    }

    /// In a few words, for logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Busy => "busy",
            Self::Redirect => "redirected",
            Self::BadVersion => "class version not supported",
            Self::BadMethod => "method not supported",
            Self::BadAttribute => "method not supported for the attribute",
            Self::BadValue => "invalid value",
            Self::NoResources => "no resources",
            Self::RequestInvalid => "request invalid",
            Self::NoRecords => "no records",
            Self::TooManyRecords => "too many records",
            Self::InvalidGid => "invalid GID",
            Self::InsufficientComponents => "insufficient components",
            Self::RequestDenied => "request denied",
            Self::PrioritySuggested => "another priority suggested",
            Self::Other(_) => "unknown status",
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:#06x})", self.name(), self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_comes_back() {
        for word in 0..=u16::MAX {
            assert_eq!(Status::of_word(word).word(), word);
        }
        for status in Status::NAMED {
            assert_eq!(Status::of_word(status.word()), status);
            assert_ne!(status.name(), Status::Other(0).name());
        }
    }
}
