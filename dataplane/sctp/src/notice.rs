//! Notifications, read from their octets (RFC 6458 section 6.1). The library and the kernel have
//! the same structures and different numbers.

use crate::llp::{AbortCause, Reason};
use usrsctp_sys::types as sys;

/// The numbers of one implementation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    pub(crate) association: u16,
    pub(crate) shutdown: u16,
    pub(crate) adaptation: u16,
    pub(crate) torn: u16,
    pub(crate) dry: u16,
    /// `SCTP_COMM_UP`; lost, restarted, shut down and not begun follow it.
    pub(crate) up: u16,
}

/// libusrsctp's.
pub(crate) const USRSCTP: Dialect = Dialect {
    association: sys::SCTP_ASSOC_CHANGE,
    shutdown: sys::SCTP_SHUTDOWN_EVENT,
    adaptation: sys::SCTP_ADAPTATION_INDICATION,
    torn: sys::SCTP_PARTIAL_DELIVERY_EVENT,
    dry: sys::SCTP_SENDER_DRY_EVENT,
    up: sys::SCTP_COMM_UP,
};

/// The Linux kernel's (`linux/sctp.h`, `sctp_sn_type` and `sctp_sac_state`).
pub(crate) const LINUX: Dialect = Dialect {
    association: 0x8001,
    shutdown: 0x8005,
    torn: 0x8006,
    adaptation: 0x8007,
    dry: 0x8009,
    up: 0,
};

/// What a notification says, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The association is there.
    Up {
        /// What the library calls it.
        number: u32,
        inbound: u16,
        outbound: u16,
    },
    /// The peer's adaptation.
    Adaptation(u32),
    /// The peer shuts down.
    Closing,
    /// It is over.
    Down(Reason),
    /// It began anew, under the same number.
    Restarted { number: u32 },
    /// Everything sent has been acknowledged.
    Dry,
    /// Part of a message was told of, and the rest will not come.
    Torn,
    /// Nothing of interest.
    Other,
}

/// Octets of `sctp_assoc_change`; what follows is the peer's ABORT.
const CHANGE: usize = size_of::<sys::sctp_assoc_change>();

impl Dialect {
    /// Reads a notification; one that is cut short is of no interest.
    pub(crate) fn parse(&self, octets: &[u8]) -> Notice {
        match short(octets, 0) {
            Some(kind) if kind == self.association => self.change(octets).unwrap_or(Notice::Other),
            Some(kind) if kind == self.adaptation => {
                long(octets, 8).map_or(Notice::Other, Notice::Adaptation)
            }
            Some(kind) if kind == self.shutdown => Notice::Closing,
            Some(kind) if kind == self.dry => Notice::Dry,
            Some(kind) if kind == self.torn => Notice::Torn,
            _ => Notice::Other,
        }
    }

    fn change(&self, octets: &[u8]) -> Option<Notice> {
        let number = long(octets, 16)?;
        let abort = octets.get(CHANGE..).filter(|abort| !abort.is_empty());
        Some(match short(octets, 8)?.wrapping_sub(self.up) {
            0 => Notice::Up {
                number,
                outbound: short(octets, 12)?,
                inbound: short(octets, 14)?,
            },
            1 => Notice::Down(abort.map_or(Reason::Unreachable, aborted)),
            2 => Notice::Restarted { number },
            3 => Notice::Down(Reason::ShutDown),
            4 => Notice::Down(Reason::Refused),
            _ => Notice::Other,
        })
    }
}

/// An ABORT of the peer's: behind its header of four octets are its causes, if it gives any.
fn aborted(chunk: &[u8]) -> Reason {
    let first = chunk.get(4..).and_then(<[u8]>::first_chunk);
    Reason::AbortedByPeer(AbortCause(
        first.map_or(0, |code| u16::from_be_bytes(*code)),
    ))
}

/// A 16-bit field in the host's order.
fn short(octets: &[u8], at: usize) -> Option<u16> {
    let field = octets.get(at..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*field))
}

/// A 32-bit field in the host's order.
fn long(octets: &[u8], at: usize) -> Option<u32> {
    let field = octets.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*field))
}

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(sys::sctp_assoc_change, sac_state) == 8);
    assert!(offset_of!(sys::sctp_assoc_change, sac_outbound_streams) == 12);
    assert!(offset_of!(sys::sctp_assoc_change, sac_inbound_streams) == 14);
    assert!(offset_of!(sys::sctp_assoc_change, sac_assoc_id) == 16);
    assert!(sys::SCTP_CANT_STR_ASSOC == sys::SCTP_COMM_UP + 4);
    assert!(sys::SCTP_COMM_LOST == sys::SCTP_COMM_UP + 1);
    assert!(sys::SCTP_RESTART == sys::SCTP_COMM_UP + 2);
    assert!(sys::SCTP_SHUTDOWN_COMP == sys::SCTP_COMM_UP + 3);
    assert!(offset_of!(sys::sctp_adaptation_event, sai_adaptation_ind) == 8);
};

#[cfg(test)]
mod tests {
    use super::*;

    fn change(state: u16, tail: &[u8]) -> Vec<u8> {
        let mut octets = Vec::new();
        for field in [sys::SCTP_ASSOC_CHANGE, 0, 20, 0, state, 0, 7, 9] {
            octets.extend_from_slice(&u16::to_ne_bytes(field));
        }
        octets.extend_from_slice(&3_u32.to_ne_bytes());
        octets.extend_from_slice(tail);
        octets
    }

    #[test]
    fn every_change_of_an_association() {
        let up = Notice::Up {
            number: 3,
            inbound: 9,
            outbound: 7,
        };
        assert_eq!(USRSCTP.parse(&change(1, &[])), up);
        let lost = |tail: &[u8]| USRSCTP.parse(&change(2, tail));
        assert_eq!(lost(&[]), Notice::Down(Reason::Unreachable));
        let aborted = |cause| Notice::Down(Reason::AbortedByPeer(AbortCause(cause)));
        assert_eq!(lost(&[6, 0, 0, 4]), aborted(0));
        assert_eq!(lost(&[6, 0, 0, 8, 0, 12, 0, 4]), aborted(12));
        assert_eq!(
            USRSCTP.parse(&change(3, &[])),
            Notice::Restarted { number: 3 }
        );
        assert_eq!(
            USRSCTP.parse(&change(4, &[])),
            Notice::Down(Reason::ShutDown)
        );
        assert_eq!(
            USRSCTP.parse(&change(5, &[])),
            Notice::Down(Reason::Refused)
        );
    }

    #[test]
    fn what_is_cut_short_says_nothing() {
        let whole = change(1, &[]);
        for len in 0..whole.len() {
            assert_eq!(USRSCTP.parse(&whole[..len]), Notice::Other, "{len} octets");
        }
    }

    /// Whatever comes, cut anywhere: only the kinds that are known say something.
    #[test]
    fn any_kind_of_any_length() {
        for dialect in [USRSCTP, LINUX] {
            let known = [
                dialect.association,
                dialect.shutdown,
                dialect.adaptation,
                dialect.torn,
                dialect.dry,
            ];
            for kind in 0..=u16::MAX {
                let mut octets = [0xA5; 24];
                octets[..2].copy_from_slice(&kind.to_ne_bytes());
                for len in 0..=octets.len() {
                    let says = dialect.parse(&octets[..len]) != Notice::Other;
                    assert!(
                        !says || (len >= 2 && known.contains(&kind)),
                        "{kind}, {len}"
                    );
                }
            }
            for state in 0..=u16::MAX {
                let mut octets = change(state, &[1; 4]);
                octets[..2].copy_from_slice(&dialect.association.to_ne_bytes());
                let says = dialect.parse(&octets) != Notice::Other;
                let known = (dialect.up..dialect.up + 5).contains(&state);
                assert_eq!(says, known, "state {state}");
            }
        }
    }
}
