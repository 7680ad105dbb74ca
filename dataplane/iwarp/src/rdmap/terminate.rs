//! The Terminate header (RFC 5040 section 4.8).
//!
//! ```text
//!   layer 4 | type 4 | code 8 | M D R | zero 13      and if D (M goes with it):
//!   segment length 16, DDP header 112 or 144         and if R:
//!   Read Request header 224
//! ```

use super::control::{Opcode, QUEUE_TERMINATE};
use super::request::READ_REQUEST_BYTES;
use crate::ddp::{TAGGED_BYTES, UNTAGGED_BYTES, Untagged};
use crate::reject::Code;

/// Octets of the longest Terminate, as the length of a message.
pub(crate) const TERMINATE_LEN: u32 = 52;
/// Octets of the longest Terminate.
pub const TERMINATE_BYTES: usize = TERMINATE_LEN as usize;

const _: () = assert!(TERMINATE_BYTES == 4 + 2 + UNTAGGED_BYTES + READ_REQUEST_BYTES);

const LENGTH_VALID: u8 = 0x80;
const DDP_HEADER: u8 = 0x40;
const RDMAP_HEADER: u8 = 0x20;

/// The segment that a Terminate complains of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Culprit {
    /// The first octets of the segment.
    pub(crate) header: [u8; UNTAGGED_BYTES],
    /// Its length in octets.
    pub(crate) segment_bytes: u16,
}

impl Culprit {
    /// A segment that is here, whole or not.
    pub(crate) fn of(segment: &[u8]) -> Culprit {
        let mut header = [0; UNTAGGED_BYTES];
        // A tagged header and no payload is shorter than the array.
        for (to, from) in header.iter_mut().zip(segment) {
            *to = *from;
        }
        Culprit {
            header,
            // A chunk is never longer; if one were, its length is the least to be told of it.
            segment_bytes: u16::try_from(segment.len()).unwrap_or(u16::MAX),
        }
    }

    /// The header alone.
    fn header(&self) -> &[u8] {
        let [control, ..] = self.header;
        if control & 0x80 == 0 {
            return &self.header;
        }
        self.header
            .first_chunk::<TAGGED_BYTES>()
            .map_or(&self.header, |tagged| tagged)
    }
}

/// What a peer's Terminate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terminate {
    /// Layer, type and code.
    pub code: Code,
    /// It complains of a Read Request, whose header came with it.
    pub of_request: bool,
}

impl Terminate {
    /// Reads one. What follows the control field is for people, and not needed: `None` only when
    /// the control field is not whole.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<Terminate> {
        let [layer_and_type, error_code, bits, _] = *octets.first_chunk()?;
        Some(Terminate {
            code: Code {
                layer: layer_and_type >> 4,
                error_type: layer_and_type & 0xF,
                error_code,
            },
            of_request: bits & RDMAP_HEADER != 0,
        })
    }
}

/// A Terminate to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    octets: [u8; TERMINATE_BYTES],
    len: usize,
}

impl Report {
    /// With as much of the culprit as figure 10 wants shown.
    pub(crate) fn new(
        code: Code,
        culprit: Option<Culprit>,
        request: Option<[u8; READ_REQUEST_BYTES]>,
    ) -> Report {
        let culprit = culprit.filter(|_| code.shows_segment());
        let request = request.filter(|_| code.shows_request());
        let mut report = Report {
            octets: [0; TERMINATE_BYTES],
            len: 0,
        };
        let segment = culprit.map_or(0, |_| LENGTH_VALID | DDP_HEADER);
        let bits = segment | request.map_or(0, |_| RDMAP_HEADER);
        report.put(&[
            code.layer.wrapping_shl(4) | (code.error_type & 0xF),
            code.error_code,
            bits,
            0,
        ]);
        if let Some(culprit) = &culprit {
            report.put(&culprit.segment_bytes.to_be_bytes());
            report.put(culprit.header());
        }
        if let Some(request) = &request {
            report.put(request);
        }
        report
    }

    fn put(&mut self, octets: &[u8]) {
        let end = self.len.saturating_add(octets.len());
        if let Some(place) = self.octets.get_mut(self.len..end) {
            place.copy_from_slice(octets);
            self.len = end;
        }
    }

    pub(crate) fn octets(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or_default()
    }

    /// Octets of the one segment that it is.
    pub(crate) fn segment_bytes(&self) -> usize {
        UNTAGGED_BYTES.saturating_add(self.len)
    }

    /// Writes that segment into `out`, which is as long.
    pub(crate) fn write_into(&self, out: &mut [u8]) {
        let header = Untagged {
            last: true,
            ulp: Opcode::Terminate.control(),
            ulp_word: 0,
            queue: QUEUE_TERMINATE,
            msn: 1,
            mo: 0,
        };
        if let Some(payload) = header.emit(out) {
            for (to, from) in payload.iter_mut().zip(self.octets()) {
                *to = *from;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reject::{Answer, Reject};

    fn culprit(tagged: bool) -> Culprit {
        let mut header = [0xEE; UNTAGGED_BYTES];
        header[0] = if tagged { 0xC1 } else { 0x41 };
        Culprit {
            header,
            segment_bytes: 0x0123,
        }
    }

    fn code(reject: Reject) -> Code {
        match reject.answer() {
            Answer::Terminate(code) => code,
            other => panic!("{reject:?}: {other:?}"),
        }
    }

    /// Figure 10, row by row.
    #[test]
    fn section_4_8_figure_10() {
        let request = Some([0x77; READ_REQUEST_BYTES]);
        let report = |code, tagged| Report::new(code, Some(culprit(tagged)), request);
        let len = |reject, tagged| report(code(reject), tagged).octets().len();
        // Remote protection: all of it.
        assert_eq!(len(Reject::SourceBounds, false), 4 + 2 + 18 + 28);
        // Remote operation: no RDMA header.
        assert_eq!(len(Reject::Opcode, true), 4 + 2 + 14);
        // DDP: no RDMA header.
        assert_eq!(len(Reject::StagInvalid, true), 4 + 2 + 14);
        assert_eq!(len(Reject::MsnRange, false), 4 + 2 + 18);
        // The layer below: neither.
        assert_eq!(len(Reject::TooFewReads, false), 4);
        // Local catastrophic: neither.
        let local = Code {
            layer: 0,
            error_type: 0,
            error_code: 0,
        };
        assert_eq!(report(local, false).octets(), [0; 4]);
    }

    #[test]
    fn section_4_8_what_is_said_is_heard() {
        for &reject in Reject::ALL {
            let Answer::Terminate(code) = reject.answer() else {
                continue;
            };
            let request = Some([0; READ_REQUEST_BYTES]);
            let report = Report::new(code, Some(culprit(false)), request);
            let heard = Terminate::parse(report.octets()).unwrap();
            assert_eq!(heard.code, code);
            assert_eq!(heard.of_request, code.shows_request());
            for short in 0..4 {
                assert_eq!(Terminate::parse(&report.octets()[..short]), None);
            }
        }
    }
}
