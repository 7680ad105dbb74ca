//! What a fiend says: octets that mean nothing, messages it has heard or said before, and
//! messages of every procedure that are good, or nearly.

use super::Fiend;
use crate::chance::Chance;
use crate::link::Link;
use crate::message::Message;
use rpcrdma_engine::Access;
use rpcrdma_wire::emit::{emit_connprop, emit_optional, emit_reqprop, emit_resprop, emit_updprop};
use rpcrdma_wire::{
    Body, Direction, Emitter, ErrorBody, Handle, Limits, Procedure, Segment, Version, Xid,
    emit_error, parse,
};

impl Fiend {
    fn any_xid(&self, chance: &mut Chance) -> Xid {
        let recent = &self.heard[self.heard.len().saturating_sub(8)..];
        match (recent.is_empty(), chance.below(4)) {
            (false, 0..3) => recent[chance.index(recent.len())].xid,
            (_, 3) => Xid(chance.word()),
            _ => Xid(chance.below(6)),
        }
    }

    pub(super) fn compose(&mut self, link: &mut Link<'_>, chance: &mut Chance) -> Vec<u8> {
        let mut message = match chance.below(10) {
            0 => {
                let len = chance.below(120);
                chance.octets(len)
            }
            1 if !self.said.is_empty() => self.said[chance.index(self.said.len())].clone(),
            2 if !self.heard.is_empty() => {
                self.heard[chance.index(self.heard.len())].octets.clone()
            }
            3 => self.error(chance),
            4 => self.property(chance),
            5 | 6 => self.reply(chance),
            _ => {
                let honest = chance.one_in(2);
                self.call(link, chance, honest)
            }
        };
        if chance.one_in(4) {
            mutate(&mut message, chance);
        }
        message
    }

    fn version(&self, chance: &mut Chance) -> Version {
        match chance.one_in(40) {
            true => chance.pick(&[Version::One, Version::Two]),
            false => self.manners.version,
        }
    }

    pub(super) fn error(&self, chance: &mut Chance) -> Vec<u8> {
        let (first, second) = (chance.below(4), chance.below(4));
        let version = self.version(chance);
        let codes = if version == Version::One { 2 } else { 6 };
        let body = match chance.below(codes) {
            0 => ErrorBody::Version {
                low: first,
                high: second,
            },
            1 => ErrorBody::Chunk,
            2 => ErrorBody::ReplyResource {
                segment: first,
                length: chance.word(),
            },
            3 => ErrorBody::InvalProc,
            4 => ErrorBody::InvalOption,
            _ => ErrorBody::System,
        };
        let vers = if chance.one_in(20) {
            chance.word()
        } else {
            version.code()
        };
        emitted(|buf| emit_error(buf, vers, self.any_xid(chance), chance.below(9), body))
    }

    pub(super) fn property(&self, chance: &mut Chance) -> Vec<u8> {
        let (xid, credits) = (self.any_xid(chance), chance.below(9));
        let mut data = Vec::new();
        for _ in 0..chance.below(4) {
            let id = chance.below(4);
            let value = match id {
                1 => chance.pick(&[1024, 1500, 4096, 9000, 100, u32::MAX]),
                2 => chance.below(4),
                _ => chance.word(),
            };
            data.push((id, value.to_be_bytes()));
        }
        let set = || data.iter().map(|(id, data)| (*id, data.as_slice()));
        let words = [chance.below(8), chance.below(8)];
        emitted(|buf| match chance.below(5) {
            0 => emit_connprop(buf, xid, credits, set(), [words[0]]),
            1 => emit_reqprop(buf, xid, credits, set()),
            2 => emit_resprop(buf, xid, credits, [words[0]], [words[1]], set()),
            3 => emit_updprop(buf, xid, credits, set()),
            _ => emit_optional(buf, xid, credits, Direction::Call, words[0], b"option"),
        })
    }

    fn credits(chance: &mut Chance) -> u32 {
        chance.pick(&[0, 1, 4, 1 << 20, u32::MAX])
    }

    /// A Call; an honest one is good, but for its place in the conversation.
    pub(super) fn call(
        &mut self,
        link: &mut Link<'_>,
        chance: &mut Chance,
        honest: bool,
    ) -> Vec<u8> {
        self.owed += 1;
        let xid = match !honest && chance.one_in(3) {
            true => Xid(chance.below(6)),
            false => Xid(chance.word()),
        };
        let version = self.version(chance);
        let plain = chance.below(300);
        let message = Message::new(chance, xid, Direction::Call, plain, &[], false).whole();
        let long = chance.one_in(5);
        let zero = long.then(|| self.position_zero(link, chance, &message, honest));
        let reads = self.reads(chance, honest);
        let rooms: Vec<Vec<Segment>> = (0..chance.pick(&[0, 0, 1, 3]))
            .map(|_| self.chunk(chance, honest))
            .collect();
        let reply = chance.one_in(3).then(|| self.chunk(chance, honest));
        let handles = rooms.iter().chain(&reply).flatten();
        let named = handles.map(|segment| segment.handle).next();
        emitted(|buf| {
            let mut header = Emitter::new(buf);
            let procedure = match long {
                true => Procedure::NoMsg,
                false => Procedure::Msg,
            };
            header.start(version, xid, Self::credits(chance), procedure);
            header.direction(Direction::Call, named.filter(|_| chance.one_in(2)));
            if let Some(segment) = zero {
                header.read(0, segment);
            }
            for (position, segment) in reads {
                header.read(position, segment);
            }
            header.end_reads();
            for room in rooms {
                header.write_chunk(room.into_iter());
            }
            header.end_writes();
            header.reply_chunk(reply.map(Vec::into_iter));
            append(header.finish(), buf, if long { &[] } else { &message })
        })
    }

    /// Where an honest long Call lies, or nearly.
    fn position_zero(
        &self,
        link: &mut Link<'_>,
        chance: &mut Chance,
        message: &[u8],
        honest: bool,
    ) -> Segment {
        let segment = self.segment(chance, Access::Read, honest);
        let length = u32::try_from(message.len()).expect("short");
        let segment = Segment { length, ..segment };
        let device = &mut link.ends[self.end];
        if let Some(span) = device.exposures.reach(segment, Access::Read) {
            device.memory.octets_mut(span).copy_from_slice(message);
        }
        segment
    }

    /// Read chunks one behind the other; those of a liar anywhere.
    fn reads(&self, chance: &mut Chance, honest: bool) -> Vec<(u32, Segment)> {
        let mut end = 0;
        let mut reads = Vec::new();
        for _ in 0..chance.pick(&[0, 0, 1, 2]) {
            let segment = self.segment(chance, Access::Read, honest);
            let position = match honest {
                true => end + 4,
                false => chance.below(12) * 8,
            };
            end = (position + segment.length).next_multiple_of(4);
            reads.push((position, segment));
        }
        reads
    }

    fn chunk(&self, chance: &mut Chance, honest: bool) -> Vec<Segment> {
        let count = chance.below(4);
        (0..count)
            .map(|_| self.segment(chance, Access::Write, honest))
            .collect()
    }

    fn segment(&self, chance: &mut Chance, access: Access, honest: bool) -> Segment {
        let fit = |(_, other): &&(Segment, Access)| *other == access;
        let own: Vec<Segment> = self.own.iter().filter(fit).map(|own| own.0).collect();
        if own.is_empty() || !honest && chance.one_in(4) {
            return Segment {
                handle: Handle(chance.word()),
                length: if honest { 0 } else { chance.below(5000) },
                offset: u64::from(chance.word()),
            };
        }
        let segment = own[chance.index(own.len())];
        let length = chance.below(segment.length + 1);
        Segment { length, ..segment }
    }

    /// A Reply to some Call, its lists those of the Call or nearly.
    pub(super) fn reply(&self, chance: &mut Chance) -> Vec<u8> {
        let Some(heard) = self.heard.last() else {
            return self.error(chance);
        };
        let heard = match chance.one_in(2) {
            true => heard,
            false => &self.heard[chance.index(self.heard.len())],
        };
        let Ok(call) = parse(&heard.octets, &Limits::default()) else {
            return Vec::new();
        };
        let (Body::Msg(lists) | Body::NoMsg(lists)) = call.body else {
            return self.error(chance);
        };
        let plain = chance.below(60);
        let message = Message::new(chance, call.xid, Direction::Reply, plain, &[], false).whole();
        let wrong = chance.one_in(3);
        let long = lists.reply.is_some() && chance.one_in(2);
        let written = |segment: Segment, chance: &mut Chance| match (wrong, chance.below(3)) {
            (true, 0) => Segment {
                length: segment.length.wrapping_add(chance.below(3)),
                ..segment
            },
            (_, 1) => Segment {
                length: 0,
                ..segment
            },
            _ => segment,
        };
        emitted(|buf| {
            let mut header = Emitter::new(buf);
            let procedure = if long {
                Procedure::NoMsg
            } else {
                Procedure::Msg
            };
            header.start(call.version, call.xid, Self::credits(chance), procedure);
            header.direction(Direction::Reply, None);
            header.end_reads();
            for chunk in lists.writes.iter() {
                let segments: Vec<Segment> = chunk
                    .iter()
                    .map(|raw| written(raw.value(), chance))
                    .collect();
                if !(wrong && chance.one_in(3)) {
                    header.write_chunk(segments.into_iter());
                }
            }
            header.end_writes();
            let reply = lists.reply.map(|chunk| {
                let segments: Vec<Segment> = chunk
                    .iter()
                    .map(|raw| written(raw.value(), chance))
                    .collect();
                segments.into_iter()
            });
            header.reply_chunk(reply);
            append(header.finish(), buf, if long { &[] } else { &message })
        })
    }
}

fn emitted(emit: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let mut buf = vec![0; 4096];
    let len = emit(&mut buf).expect("room for any message");
    buf.truncate(len);
    buf
}

/// Puts a payload behind a header.
fn append(header_bytes: Option<usize>, buf: &mut [u8], payload: &[u8]) -> Option<usize> {
    let at = header_bytes?;
    buf[at..at + payload.len()].copy_from_slice(payload);
    Some(at + payload.len())
}

fn mutate(message: &mut Vec<u8>, chance: &mut Chance) {
    if message.is_empty() {
        return;
    }
    match chance.below(4) {
        0 => message.truncate(chance.index(message.len())),
        1 => {
            let more = chance.below(40);
            message.extend(chance.octets(more));
        }
        // The words in front matter most.
        _ => {
            let words = message.len().div_ceil(4).min(24);
            let at = chance.index(words) * 4 + 3;
            if let Some(octet) = message.get_mut(at) {
                *octet = octet.wrapping_add(chance.pick(&[1, 2, 0xff, 0x80]));
            }
        }
    }
}
