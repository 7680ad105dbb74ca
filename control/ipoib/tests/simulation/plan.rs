//! What a run does to its nodes, drawn from its seed.

use rpcrdma_ipoib::sa::Chance;

/// How bad the network of management datagrams is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// Datagrams lost, of a hundred.
    pub(crate) lost: u64,
    /// Datagrams that come twice, of a hundred.
    pub(crate) twice: u64,
    /// The longest way of one, ms; each takes its own time, so they overtake each other.
    pub(crate) delay_ms: u64,
    /// Requests answered as busy, of a hundred.
    pub(crate) busy: u64,
    /// Attachments and queue pairs that the device refuses, of a hundred.
    pub(crate) refused: u64,
}

impl Weather {
    /// Nothing is lost or late.
    pub(crate) const FAIR: Self = Self {
        lost: 0,
        twice: 0,
        delay_ms: 5,
        busy: 0,
        refused: 0,
    };

    /// Drawn: fair, or bad in several ways at once.
    pub(crate) fn draw(chance: &mut Chance) -> Self {
        let mut some = |most| {
            if chance.below(2) == 0 {
                0
            } else {
                chance.below(most)
            }
        };
        Self {
            lost: some(40),
            twice: some(60),
            delay_ms: 2 + some(LONGEST_DELAY_MS),
            busy: some(30),
            refused: some(30),
        }
    }
}

/// No datagram is longer on its way than this.
pub(crate) const LONGEST_DELAY_MS: u64 = 400;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// A node joins an address.
    Join,
    /// A node leaves one.
    Leave,
    /// A node sends to an address, a member or not.
    Send,
    /// The subnet manager restarts with everything forgotten, and tells nobody.
    Restart,
    /// The same, and every port is told to register anew.
    RestartTold,
    /// Another subnet manager takes over, elsewhere.
    Failover,
    /// The subnet manager says nothing for a while.
    Pause,
    /// A port goes down, and comes back later.
    Flap,
    /// A port gets another LID.
    Readdress,
    /// A port is taken out of a partition, and put back later.
    Expel,
    /// Reports come in large numbers.
    Storm,
    /// A group that is nobody's is joined by a stranger, or left by it.
    Stranger,
}

impl Act {
    const ALL: [Self; 12] = [
        Self::Join,
        Self::Leave,
        Self::Send,
        Self::Restart,
        Self::RestartTold,
        Self::Failover,
        Self::Pause,
        Self::Flap,
        Self::Readdress,
        Self::Expel,
        Self::Storm,
        Self::Stranger,
    ];

    /// Drawn: mostly what users do.
    pub(crate) fn draw(chance: &mut Chance) -> Self {
        let everyday = [Self::Join, Self::Leave, Self::Send, Self::Stranger];
        if chance.below(4) > 0 {
            everyday[chance.below(4) as usize]
        } else {
            Self::ALL[chance.below(Self::ALL.len() as u64) as usize]
        }
    }
}
