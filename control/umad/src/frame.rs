//! A MAD with the kernel's header before it (`struct ib_user_mad`), as it is handed to and fro.

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// A MAD of one piece (IBA 13.4.2).
pub(crate) const MAD_OCTETS: usize = 256;
/// The longest message of several MADs that is taken.
pub(crate) const LONGEST_OCTETS: usize = rpcrdma_ipoib::mad::TABLE_BYTES;
const WORD: usize = size_of::<u64>();

/// `struct ib_user_mad`. Plain numbers are in host order.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) agent_id: u32,
    /// 0, or the errno of what was sent before.
    pub(crate) status: u32,
    pub(crate) timeout_ms: u32,
    pub(crate) retries: u32,
    /// Of header and MAD.
    pub(crate) length: u32,
    pub(crate) qpn: U32,
    pub(crate) q_key: U32,
    pub(crate) lid: U16,
    pub(crate) sl: u8,
    pub(crate) path_bits: u8,
    pub(crate) grh_present: u8,
    pub(crate) gid_index: u8,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    pub(crate) gid: [u8; 16],
    pub(crate) flow_label: U32,
    pub(crate) p_key_index: u16,
    pub(crate) reserved: [u8; 6],
}

const HEADER: usize = size_of::<Header>();

/// Room for a header and a MAD, and how much of it is used.
#[derive(Debug)]
pub(crate) struct Frame {
    /// In words, since C reads numbers of 32 bits there.
    words: Vec<u64>,
    mad_octets: usize,
}

impl Frame {
    /// Room for a message of so many octets.
    pub(crate) fn with_room(octets: usize) -> Self {
        Self {
            words: vec![0; (HEADER + octets).div_ceil(WORD)],
            mad_octets: 0,
        }
    }

    /// A MAD to send: cut at [`LONGEST_OCTETS`].
    pub(crate) fn of(header: Header, mad: &[u8]) -> Self {
        let mad = &mad[..mad.len().min(LONGEST_OCTETS)];
        let mut frame = Self::with_room(mad.len());
        *frame.header_mut() = header;
        frame.mad_octets = mad.len();
        frame.mad_mut().copy_from_slice(mad);
        frame
    }

    /// Octets of a MAD that there is room for.
    pub(crate) fn room(&self) -> usize {
        self.words.len() * WORD - HEADER
    }

    /// For what arrives next.
    pub(crate) fn clear(&mut self) {
        self.mad_octets = 0;
        *self.header_mut() = Header::new_zeroed();
    }

    /// A MAD of so many octets has been put here.
    pub(crate) fn arrived(&mut self, octets: usize) {
        self.mad_octets = octets.min(self.room());
    }

    /// Makes room for a longer message; false when it is longer than any that is taken, or fits already.
    pub(crate) fn grow(&mut self, octets: usize) -> bool {
        let fits = octets <= self.room();
        if fits || octets > LONGEST_OCTETS {
            return false;
        }
        self.words.resize((HEADER + octets).div_ceil(WORD), 0);
        true
    }

    pub(crate) fn header(&self) -> &Header {
        let (header, _) = Header::ref_from_prefix(self.words.as_bytes())
            .expect("there is room for a header, and words are aligned for it");
        header
    }

    pub(crate) fn header_mut(&mut self) -> &mut Header {
        let (header, _) = Header::mut_from_prefix(self.words.as_mut_bytes())
            .expect("there is room for a header, and words are aligned for it");
        header
    }

    /// The MAD.
    pub(crate) fn mad(&self) -> &[u8] {
        &self.words.as_bytes()[HEADER..HEADER + self.mad_octets]
    }

    pub(crate) fn mad_mut(&mut self) -> &mut [u8] {
        &mut self.words.as_mut_bytes()[HEADER..HEADER + self.mad_octets]
    }

    /// Where C finds it.
    pub(crate) fn start(&mut self) -> *mut libc::c_void {
        self.words.as_mut_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_to_the_longest_message_and_not_beyond() {
        let mut frame = Frame::with_room(MAD_OCTETS);
        assert_eq!(frame.room(), MAD_OCTETS);
        assert!(!frame.grow(MAD_OCTETS), "there was room for it");
        assert!(frame.grow(LONGEST_OCTETS));
        assert!(frame.room() >= LONGEST_OCTETS);
        assert!(!frame.grow(LONGEST_OCTETS + frame.room()));
    }

    #[test]
    fn what_is_sent_is_what_was_given() {
        let mut header = Header::new_zeroed();
        header.lid = 7.into();
        let frame = Frame::of(header, &[1, 2, 3]);
        assert_eq!(frame.mad(), [1, 2, 3]);
        assert_eq!(frame.header().lid.get(), 7);
    }
}
