//! How many Reads may be outstanding: the IRD/ORD word (RFC 6581 section 9).
//!
//! ```text
//!   |A|B|   IRD, 14 bits   |C|D|   ORD, 14 bits   |
//! ```
//!
//! The side that asks says what it can answer (IRD) and what it would like to ask for (ORD). The
//! side that accepts says the same of itself, its IRD for the other's ORD and the reverse. 0x3FFF
//! means that the upper layers see to it themselves; then each side keeps what it has.
//!
//! The flags ask for a first message of length zero from the side that asked, where the
//! applications are peers and the accepting one would otherwise have to wait. This side never
//! asks for it. When it is asked it names the two that cost it no receive: a Write and a Read.

use crate::reject::Reject;

/// "Not negotiated".
const UNNEGOTIATED: u16 = 0x3FFF;

/// How many Reads one end answers, and asks for, at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Depths {
    /// Inbound read queue depth: Reads of the peer's that are being answered.
    pub ird: u16,
    /// Outbound read queue depth: Reads asked of the peer.
    pub ord: u16,
}

impl Depths {
    /// The most of either that can be said.
    pub const MOST: u16 = UNNEGOTIATED - 1;

    /// What an end with room for this keeps to where nothing was said: it asks for one Read at a
    /// time, which a peer that answers any can take, and answers as many as it can.
    #[must_use]
    pub(crate) fn unsaid(self) -> Depths {
        Depths {
            ird: self.ird,
            ord: self.ord.min(1),
        }
    }
}

/// The word as it stands in the private data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// IRD and ORD of its sender, 14 bits each.
    pub depths: Depths,
    /// Flag A: the applications are peers, not client and server.
    pub peers: bool,
    /// Flag B: the first message may be a Send of length zero.
    pub send: bool,
    /// Flag C: or a Write of length zero.
    pub write: bool,
    /// Flag D: or a Read of length zero.
    pub read: bool,
}

const HIGH: u16 = 0x8000;
const LOW: u16 = 0x4000;

impl Word {
    /// Reads the word. B, C and D mean nothing without A.
    #[must_use]
    pub fn parse([i, r, o, d]: [u8; 4]) -> Word {
        let (first, second) = (u16::from_be_bytes([i, r]), u16::from_be_bytes([o, d]));
        let peers = first & HIGH != 0;
        Word {
            depths: Depths {
                ird: first & UNNEGOTIATED,
                ord: second & UNNEGOTIATED,
            },
            peers,
            send: peers && first & LOW != 0,
            write: peers && second & HIGH != 0,
            read: peers && second & LOW != 0,
        }
    }

    /// Its octets.
    #[must_use]
    pub fn octets(self) -> [u8; 4] {
        let bit = |flag: bool, bit: u16| if flag { bit } else { 0 };
        let first = bit(self.peers, HIGH) | bit(self.send, LOW) | self.depths.ird & UNNEGOTIATED;
        let second = bit(self.write, HIGH) | bit(self.read, LOW) | self.depths.ord & UNNEGOTIATED;
        let ([i, r], [o, d]) = (first.to_be_bytes(), second.to_be_bytes());
        [i, r, o, d]
    }

    /// What a side with room for `own` offers when it asks for a session.
    #[must_use]
    pub fn offer(own: Depths) -> Word {
        Word {
            depths: own.clamped(),
            ..Word::default()
        }
    }

    /// What the accepting side, with room for `own`, answers, and what it keeps to.
    #[must_use]
    pub fn answer(self, own: Depths) -> (Word, Depths) {
        let own = own.clamped();
        let offered = self.depths;
        // One more than nothing where the peer may begin with a Read of length zero.
        let wanted = offered.ord.max(u16::from(self.read));
        let (ird, said_ird) = match offered.ord {
            UNNEGOTIATED => (own.ird, UNNEGOTIATED),
            _ => (own.ird.min(wanted), own.ird.min(wanted)),
        };
        let (ord, said_ord) = match offered.ird {
            UNNEGOTIATED => (own.ord, UNNEGOTIATED),
            theirs => (own.ord.min(theirs), own.ord.min(theirs)),
        };
        let said = Word {
            depths: Depths {
                ird: said_ird,
                ord: said_ord,
            },
            peers: self.peers,
            send: false,
            write: self.peers,
            read: self.peers && ird > 0,
        };
        (said, Depths { ird, ord })
    }

    /// What the side that asked, and offered `own`, keeps to after this answer.
    ///
    /// # Errors
    ///
    /// [`Reject::TooFewReads`] when the other side means to ask for more at once than was offered.
    pub fn settle(self, own: Depths) -> Result<Depths, Reject> {
        let own = own.clamped();
        let answered = self.depths;
        if answered.ord != UNNEGOTIATED && answered.ord > own.ird {
            return Err(Reject::TooFewReads);
        }
        let ord = match answered.ird {
            UNNEGOTIATED => own.ord,
            theirs => own.ord.min(theirs),
        };
        Ok(Depths { ird: own.ird, ord })
    }
}

impl Depths {
    fn clamped(self) -> Depths {
        Depths {
            ird: self.ird.min(Depths::MOST),
            ord: self.ord.min(Depths::MOST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depths(ird: u16, ord: u16) -> Depths {
        Depths { ird, ord }
    }

    #[test]
    fn section_9_layout() {
        let word = Word {
            depths: depths(0x0102, 0x2304),
            peers: true,
            send: false,
            write: true,
            read: false,
        };
        assert_eq!(word.octets(), [0x81, 0x02, 0xA3, 0x04]);
        assert_eq!(Word::parse([0x81, 0x02, 0xA3, 0x04]), word);
        // B, C and D without A.
        assert_eq!(Word::parse([0x40, 1, 0xC0, 2]), Word::offer(depths(1, 2)));
    }

    #[test]
    fn section_9_1_each_asks_for_no_more_than_the_other_answers() {
        for (mine, yours) in [((16, 16), (4, 64)), ((0, 8), (8, 0)), ((1, 1), (1, 1))] {
            let (mine, yours) = (depths(mine.0, mine.1), depths(yours.0, yours.1));
            let (said, theirs) = Word::offer(mine).answer(yours);
            let ours = Word::parse(said.octets()).settle(mine).unwrap();
            assert!(ours.ord <= theirs.ird && theirs.ord <= ours.ird);
            assert!(theirs.ird <= yours.ird && theirs.ord <= yours.ord);
            assert!(ours.ird <= mine.ird && ours.ord <= mine.ord);
        }
    }

    #[test]
    fn section_9_1_not_negotiated_leaves_all_as_it_is() {
        let word = Word::parse([0x3F, 0xFF, 0x3F, 0xFF]);
        let (said, kept) = word.answer(depths(5, 6));
        assert_eq!((said.depths, kept), (depths(0x3FFF, 0x3FFF), depths(5, 6)));
        assert_eq!(said.settle(depths(7, 8)), Ok(depths(7, 8)));
        // Nobody says it by having room for that many.
        assert_eq!(
            Word::offer(depths(0x3FFF, 0xFFFF)).depths,
            depths(0x3FFE, 0x3FFE)
        );
    }

    #[test]
    fn section_9_1_an_answer_that_asks_for_too_much() {
        let said = Word::offer(depths(8, 9));
        assert_eq!(said.settle(depths(8, 4)), Err(Reject::TooFewReads));
        assert_eq!(said.settle(depths(9, 4)), Ok(depths(9, 4)));
    }

    #[test]
    fn section_9_2_peers_may_begin_with_a_write_or_a_read() {
        let asked = Word {
            peers: true,
            read: true,
            ..Word::offer(depths(3, 0))
        };
        let (said, kept) = asked.answer(depths(4, 4));
        assert!(said.peers && said.write && said.read && !said.send);
        assert_eq!(kept, depths(1, 3));
        let (said, _) = Word::offer(depths(3, 0)).answer(depths(4, 4));
        assert!(!said.peers && !said.write && !said.read);
    }
}
