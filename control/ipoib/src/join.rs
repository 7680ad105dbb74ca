//! The kinds of membership in a group (link sections 9 and 10, IBA 15.2.5.17).

/// A set of kinds of membership: the JoinState field of an MCMemberRecord. What is joined adds up at the SA, so exactly what was joined has to
/// be left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct JoinState(u8);

impl JoinState {
    /// None.
    pub const NONE: Self = Self(0);
    /// Sends and receives, and keeps the group alive.
    pub const FULL: Self = Self(1);
    /// Sends and receives; the group ends without regard to it.
    pub const NON: Self = Self(2);
    /// Sends; the group ends without regard to it.
    pub const SEND_ONLY_NON: Self = Self(4);
    /// Sends, and keeps the group alive; where the SA offers it.
    pub const SEND_ONLY_FULL: Self = Self(8);

    /// Of the field's low four bits.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0xF)
    }

    /// The field's four bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This without the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// What is in both.
    #[must_use]
    pub const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// One kind alone, of several; none of none.
    #[must_use]
    pub const fn first(self) -> Self {
        Self(self.0 & self.0.wrapping_neg())
    }

    /// All of the other is in this.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Nothing.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The group does not end before it is left.
    #[must_use]
    pub const fn keeps_alive(self) -> bool {
        self.0 & (Self::FULL.0 | Self::SEND_ONLY_FULL.0) != 0
    }

    /// Packets of the group come to the port.
    #[must_use]
    pub const fn receives(self) -> bool {
        self.0 & (Self::FULL.0 | Self::NON.0) != 0
    }
}
