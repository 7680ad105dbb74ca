//! What upper layers post: receives, Sends, Writes and Reads, and what has to come of each.

use super::{End2, Expected, SLOT, Window, World};
use crate::support::*;
use rpcrdma_fabric::{Access, Segment, Span, WorkId};
use rpcrdma_iwarp::{Phase, Scope, Stag, StreamId};

impl World {
    /// Whether both ends are in the same session of a stream: then each can know what the other
    /// has told it.
    fn talks(&self, stream: usize) -> bool {
        let id = StreamId(stream as u16);
        let open = |end: &End2| {
            let phase = end.side.association.phase(id);
            matches!(phase, Some(Phase::Open | Phase::Accepting))
        };
        self.ends.iter().all(open)
    }

    pub(super) fn post_receive(&mut self, at: usize, stream: usize) {
        let id = self.number();
        let len = 400 + self.below(600) as u32;
        let end = &mut self.ends[at];
        let Some(memory) = end.slot(len) else { return };
        let endpoint = end
            .side
            .association
            .endpoint(StreamId(stream as u16))
            .unwrap();
        if endpoint.post_receive(memory, WorkId(id)).is_err() {
            end.give_back(memory);
            return;
        }
        end.ledger.receive(StreamId(stream as u16), id);
        end.sessions[stream].receives.insert(id, memory);
        if self.talks(stream) {
            self.ends[1 - at].sessions[stream].credits += 1;
        }
    }

    pub(super) fn send(&mut self, at: usize, stream: usize) {
        if self.ends[at].sessions[stream].credits == 0 || !self.talks(stream) {
            return;
        }
        let id = self.number();
        let pieces: Vec<Span> = (0..self.below(4))
            .map(|_| span(self.below(30_000) as u64, self.below(100) as u32))
            .collect();
        let solicited = self.below(2) == 0;
        let windows = self.ends[1 - at].sessions[stream].windows.len();
        let window = (windows > 0 && self.below(2) == 0).then(|| self.below(windows));
        let other = &mut self.ends[1 - at].sessions[stream];
        let window = window.map(|which| other.windows[which].clone());
        let stag = window.as_ref().map(|it| Stag(it.segment.handle.0));
        let end = &mut self.ends[at];
        let endpoint = end
            .side
            .association
            .endpoint(StreamId(stream as u16))
            .unwrap();
        if endpoint.send(&pieces, stag, solicited, WorkId(id)).is_err() {
            return;
        }
        end.ledger.work(StreamId(stream as u16), id);
        end.sessions[stream].credits -= 1;
        let octets = pieces
            .iter()
            .flat_map(|it| end.side.ram.at(*it).to_vec())
            .collect();
        let other = &mut self.ends[1 - at].sessions[stream];
        if let Some(window) = &window {
            other.windows.retain(|it| it.segment != window.segment);
            other.leaving.push(window.memory);
        }
        other.expected.push_back(Expected {
            octets,
            solicited,
            window: window.map(|it| (it.segment.handle.0, it)),
        });
    }

    pub(super) fn expose(&mut self, at: usize, stream: usize) {
        let end = &mut self.ends[at];
        let owner = end.sessions[stream].owner;
        let Some(memory) = end.slot(SLOT) else { return };
        let side = &mut end.side;
        let opened = side
            .stags
            .open(party(owner), Scope::Stream, memory, Access::Write);
        let Some(segment) = opened else {
            end.give_back(memory);
            return;
        };
        let model = side.ram.at(memory).to_vec();
        end.sessions[stream].windows.push(Window {
            segment,
            memory,
            model,
        });
    }

    pub(super) fn write(&mut self, at: usize, stream: usize) {
        let windows = self.ends[1 - at].sessions[stream].windows.len();
        if windows == 0 || !self.talks(stream) {
            return;
        }
        let (which, id) = (self.below(windows), self.number());
        let into = self.below(SLOT as usize);
        let len = self.below(SLOT as usize - into + 1) as u32;
        let from = span(self.below(30_000) as u64, len);
        let mut to = self.ends[1 - at].sessions[stream].windows[which].segment;
        to.offset += into as u64;
        to.length -= into as u32;
        let end = &mut self.ends[at];
        let endpoint = end
            .side
            .association
            .endpoint(StreamId(stream as u16))
            .unwrap();
        if endpoint.write(from, to, WorkId(id)).is_err() {
            return;
        }
        end.ledger.work(StreamId(stream as u16), id);
        let octets = end.side.ram.at(from).to_vec();
        let window = &mut self.ends[1 - at].sessions[stream].windows[which];
        // Two Writes to one octet may be placed in either order (RFC 5040 section 5.5, rule 3):
        // the first to come is a window's only one.
        window.model[into..into + len as usize].copy_from_slice(&octets);
        let window = window.clone();
        let other = &mut self.ends[1 - at].sessions[stream];
        other.windows.retain(|it| it.segment != window.segment);
        self.invalidate(at, stream, window);
    }

    /// Sends a message that invalidates a window that was written; without room for it the window
    /// stays as it is to the session's end.
    fn invalidate(&mut self, at: usize, stream: usize, window: Window) {
        let id = self.number();
        let (end, memory) = (&mut self.ends[at], window.memory);
        let stag = Some(Stag(window.segment.handle.0));
        let credits = &mut end.sessions[stream].credits;
        let endpoint = end
            .side
            .association
            .endpoint(StreamId(stream as u16))
            .unwrap();
        let sent = *credits > 0 && endpoint.send(&[], stag, true, WorkId(id)).is_ok();
        let mut expected = None;
        if sent {
            *credits -= 1;
            end.ledger.work(StreamId(stream as u16), id);
            expected = Some(Expected {
                octets: Vec::new(),
                solicited: true,
                window: Some((window.segment.handle.0, window)),
            });
        }
        let other = &mut self.ends[1 - at].sessions[stream];
        other.leaving.push(memory);
        other.expected.extend(expected);
    }

    pub(super) fn read(&mut self, at: usize, stream: usize) {
        let Some(source) = self.ends[1 - at].sessions[stream].source else {
            return;
        };
        if !self.talks(stream) {
            return;
        }
        let id = self.number();
        let length = self.below(SLOT as usize + 1) as u32;
        let from = self.below(30_000) as u64;
        let wanted = self.ends[1 - at].side.ram.at(span(from, length)).to_vec();
        let end = &mut self.ends[at];
        let Some(into) = end.slot(length) else { return };
        let endpoint = end
            .side
            .association
            .endpoint(StreamId(stream as u16))
            .unwrap();
        let from = Segment {
            length,
            offset: source.offset + from,
            ..source
        };
        if endpoint.read(into, from, WorkId(id)).is_err() {
            end.give_back(into);
            return;
        }
        end.ledger.work(StreamId(stream as u16), id);
        end.sessions[stream].reads.insert(id, (into, wanted));
    }
}
