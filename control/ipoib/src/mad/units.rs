//! Quantities of six bits, and how a request compares them (IBA 15.2.5.16 and 15.2.5.17).

use super::Reject;

/// How a request compares its value of MTU, rate or packet lifetime with that of a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Selector {
    /// Greater than the value.
    Greater,
    /// Less than the value.
    Less,
    /// Exactly the value.
    Exactly,
    /// The best that there is, whatever the value: the largest MTU or rate, the smallest lifetime.
    Best,
}

impl Selector {
    /// The two bits before a value's six.
    pub(super) const fn of_octet(octet: u8) -> Self {
        match octet >> 6 {
            0 => Self::Greater,
            1 => Self::Less,
            2 => Self::Exactly,
            _ => Self::Best,
        }
    }

    /// An octet with a value of six bits.
    pub(super) const fn octet(self, value: u8) -> u8 {
        let bits = match self {
            Self::Greater => 0x00,
            Self::Less => 0x40,
            Self::Exactly => 0x80,
            Self::Best => 0xC0,
        };
        bits | six(value)
    }
}

/// The selector that a request names, by the bits of selector and value in its mask.
pub(super) const fn selected(
    mask: u64,
    [selector, value]: [u64; 2],
    octet: u8,
) -> Result<Option<Selector>, Reject> {
    match (mask & selector != 0, mask & value != 0) {
        (true, true) => Ok(Some(Selector::of_octet(octet))),
        (false, false) => Ok(None),
        _ => Err(Reject::Selector),
    }
}

/// The low six bits.
pub(super) const fn six(octet: u8) -> u8 {
    octet & 0x3F
}

/// The rate of a path or a group: a code of six bits, which are not in order of speed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rate(u8);

impl Rate {
    /// 2.5 Gb/s: one lane of the first generation.
    pub const GBPS_2_5: Self = Self(2);
    /// 10 Gb/s.
    pub const GBPS_10: Self = Self(3);

    /// Of a code's low six bits.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        Self(six(code))
    }

    /// The code on the wire, which is that of an address handle's static rate too.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// In Mb/s, as the generations of lanes are called; `None` of a code that has no meaning yet.
    #[must_use]
    pub const fn mbps(self) -> Option<u32> {
        Some(match self.0 {
            2 => 2_500,
            3 => 10_000,
            4 => 30_000,
            5 => 5_000,
            6 => 20_000,
            7 => 40_000,
            8 => 60_000,
            9 => 80_000,
            10 => 120_000,
            11 => 14_000,
            12 => 56_000,
            13 => 112_000,
            14 => 168_000,
            15 => 25_000,
            16 => 100_000,
            17 => 200_000,
            18 => 300_000,
            19 => 28_000,
            20 => 50_000,
            21 => 400_000,
            22 => 600_000,
            23 => 800_000,
            24 => 1_200_000,
            _ => return None,
        })
    }
}

/// How long a packet may be on its way: a code of six bits, 4.096 us times two to its power.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PacketLife(u8);

impl PacketLife {
    /// Of a code's low six bits.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        Self(six(code))
    }

    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_keeps_to_its_two_bits() {
        for octet in 0..=u8::MAX {
            assert_eq!(Selector::of_octet(octet).octet(octet), octet);
        }
    }

    #[test]
    fn codes_are_six_bits() {
        assert_eq!(Rate::from_code(0x83), Rate::GBPS_10);
        assert_eq!(PacketLife::from_code(0x92).code(), 0x12);
        assert_eq!(Rate::GBPS_2_5.mbps(), Some(2_500));
    }
}
