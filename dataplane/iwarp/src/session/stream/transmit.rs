//! What is sent next.

use super::{Counts, Stream};
use crate::ddp::order::WINDOW;
use crate::event::Event;
use crate::local::{Local, Memory};
use crate::lower::{Busy, Lower, Ppid, StreamId};
use crate::session::control::Message;
use crate::session::phase::Phase;

/// How a round of sending ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Nothing can be sent before something comes, is acknowledged or is posted.
    Idle,
    /// The layer below has no room.
    Busy,
    /// The budget is used up, and there is more.
    More,
}

/// Why a chunk was not taken.
enum Held {
    Busy,
    /// 32767 chunks were sent since all were known to have arrived (RFC 5043 section 10).
    Window,
}

/// The numbers of a stream's own chunks, apart from the rest so that an endpoint can be read
/// while they change.
struct Numbers<'a> {
    id: StreamId,
    ssn: &'a mut u16,
    unproven: &'a mut u16,
    counts: &'a mut Counts,
}

impl Numbers<'_> {
    /// Sends one chunk: its DDP-SSN and `len` octets that `fill` writes.
    #[inline]
    fn submit<L: Lower>(
        self,
        lower: &mut L,
        ppid: Ppid,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Held> {
        if *self.unproven >= WINDOW {
            return Err(Held::Window);
        }
        if len > lower.segment_bytes().octets() {
            // Everything is cut to size: the mistake is ours, and must not reach the wire.
            debug_assert!(false, "a segment of {len} octets");
            return Err(Held::Busy);
        }
        let ssn = self.ssn.to_be_bytes();
        let sent = lower.send(self.id, ppid, len.saturating_add(2), |out| {
            if let Some((number, rest)) = out.split_first_chunk_mut() {
                *number = ssn;
                fill(rest);
            }
        });
        sent.map_err(|Busy| Held::Busy)?;
        *self.ssn = self.ssn.wrapping_add(1);
        *self.unproven = self.unproven.wrapping_add(1);
        self.counts.chunks_out = self.counts.chunks_out.wrapping_add(1);
        Ok(())
    }
}

impl Stream {
    /// Sends up to `budget` chunks.
    pub(in crate::session) fn transmit<M: Memory, L: Lower>(
        &mut self,
        budget: u32,
        counts: &mut Counts,
        local: &mut Local<'_, M>,
        lower: &mut L,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Flow {
        for _ in 0..budget {
            let sent = if self.phase == Phase::Open && self.owes_nothing() {
                self.transmit_segment(counts, local, lower, told)
            } else {
                self.transmit_control(counts, lower)
            };
            match sent {
                Ok(true) => {}
                Ok(false) | Err(Held::Window) => return Flow::Idle,
                Err(Held::Busy) => return Flow::Busy,
            }
        }
        Flow::More
    }

    /// The next segment of an open session. False when there is none.
    #[inline]
    fn transmit_segment<M: Memory, L: Lower>(
        &mut self,
        counts: &mut Counts,
        local: &mut Local<'_, M>,
        lower: &mut L,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Result<bool, Held> {
        let Some(endpoint) = &mut self.endpoint else {
            return Ok(false);
        };
        if self.unproven >= WINDOW {
            return Ok(false);
        }
        let emission = match endpoint.next(local, lower.segment_bytes().octets()) {
            Ok(Some(emission)) => emission,
            Ok(None) => return Ok(false),
            Err(blame) => {
                self.breach(&blame, counts, told);
                return Ok(true);
            }
        };
        let numbers = Numbers {
            id: self.id,
            ssn: &mut self.ssn,
            unproven: &mut self.unproven,
            counts,
        };
        let memory = &*local.memory;
        let write = |out: &mut [u8]| endpoint.write_into(&emission, memory, out);
        numbers.submit(lower, Ppid::Segment, emission.segment_bytes(), write)?;
        let id = self.id;
        endpoint.sent(&emission, &mut |event| told(id, event));
        Ok(true)
    }

    /// What is to be said of the session itself. False when there is nothing, or it has to wait
    /// for what was said before it to arrive.
    fn transmit_control<L: Lower>(
        &mut self,
        counts: &mut Counts,
        lower: &mut L,
    ) -> Result<bool, Held> {
        if let Some(message) = self.owed.take() {
            if let Err(held) = self.submit_message(&message, counts, lower) {
                self.owed = Some(message);
                return Err(held);
            }
            self.unproved = message.is_followed();
            return Ok(true);
        }
        if self.unproved {
            return Ok(false);
        }
        if let Some(report) = self.report.take() {
            let sent =
                self.numbers(counts)
                    .submit(lower, Ppid::Segment, report.segment_bytes(), |out| {
                        report.write_into(out)
                    });
            if let Err(held) = sent {
                self.report = Some(report);
                return Err(held);
            }
            return Ok(true);
        }
        if self.terminate {
            self.submit_message(&Message::terminate(), counts, lower)?;
            self.terminate = false;
            return Ok(true);
        }
        Ok(false)
    }

    fn submit_message<L: Lower>(
        &mut self,
        message: &Message,
        counts: &mut Counts,
        lower: &mut L,
    ) -> Result<(), Held> {
        let write = |out: &mut [u8]| message.write_into(out);
        self.numbers(counts)
            .submit(lower, Ppid::Control, message.len(), write)
    }

    fn numbers<'a>(&'a mut self, counts: &'a mut Counts) -> Numbers<'a> {
        Numbers {
            id: self.id,
            ssn: &mut self.ssn,
            unproven: &mut self.unproven,
            counts,
        }
    }
}
