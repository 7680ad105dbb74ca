//! A peer that keeps no rule: it sends arbitrary, almost valid and valid messages, answers Calls
//! wrongly, twice or never, and reads and writes whatever it was ever told of.

mod compose;

use crate::chance::Chance;
use crate::link::{Desk, Link};
use rpcrdma_engine::{Access, Io, Octets, Span, WorkId};
use rpcrdma_wire::{Body, Direction, Handle, Limits, Segment, Version, Xid, parse};

const BUFFER_BYTES: u32 = 16 << 10;
const RECEIVES: usize = 8;

/// What the fiend remembers of a message it got.
struct Heard {
    octets: Vec<u8>,
    xid: Xid,
    segments: Vec<(Segment, Access)>,
}

/// The peer of an engine under attack.
pub struct Fiend {
    end: usize,
    heard: Vec<Heard>,
    said: Vec<Vec<u8>>,
    own: Vec<(Segment, Access)>,
    memory: Vec<Span>,
    next: u64,
    manners: Manners,
    /// Calls that nothing was heard of.
    owed: u32,
}

/// How a fiend passes for a peer.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    /// Of a hundred things it does, so many are what a good peer might do.
    pub percent: u32,
    /// The version it speaks, mostly.
    pub version: Version,
    /// Calls that it may have in flight.
    pub credits: u32,
}

impl Fiend {
    /// A fiend at one end of a link.
    #[must_use]
    pub fn new(end: usize, manners: Manners) -> Fiend {
        Fiend {
            end,
            manners,
            owed: 0,
            heard: Vec::new(),
            said: Vec::new(),
            own: Vec::new(),
            memory: Vec::new(),
            next: 0,
        }
    }

    /// Posts receives and exposes some memory.
    pub fn settle_in(&mut self, link: &mut Link<'_>) {
        let desk = &mut link.desk(self.end);
        for _ in 0..RECEIVES {
            self.post(desk);
        }
    }

    fn post(&mut self, desk: &mut Desk<'_, '_>) {
        if let Some(span) = desk.reserve(BUFFER_BYTES) {
            self.next += 1;
            if desk.post_receive(span, WorkId(self.next)).is_err() {
                desk.release(span);
            }
        }
    }

    /// Looks at a message that came, or gives back a receive that was flushed.
    pub fn hear(&mut self, link: &mut Link<'_>) {
        let Some(arrival) = link.ends[self.end].arrived.pop_front() else {
            return;
        };
        let desk = &mut link.desk(self.end);
        if let Ok((len, _)) = arrival.result {
            let octets = desk.octets(arrival.span.first(len)).to_vec();
            self.remember(octets);
        }
        desk.release(arrival.span);
        if arrival.result.is_ok() {
            self.post(desk);
        }
    }

    fn remember(&mut self, octets: Vec<u8>) {
        let Ok(header) = parse(&octets, &Limits::default()) else {
            panic!("an engine sent what its own parser refuses: {octets:02x?}");
        };
        let mut segments = Vec::new();
        if let Body::Msg(lists) | Body::NoMsg(lists) = &header.body {
            segments.extend(lists.reads.iter().map(|r| (r.target(), Access::Read)));
            let rooms = lists.writes.iter().chain(lists.reply).flatten();
            segments.extend(rooms.map(|segment| (segment.value(), Access::Write)));
        }
        if matches!(header.body, Body::Msg(_) | Body::NoMsg(_)) {
            self.manners.version = header.version;
        }
        if !matches!(header.body, Body::Msg(lists) | Body::NoMsg(lists) if lists.direction == Direction::Call)
        {
            self.owed = self.owed.saturating_sub(1);
        }
        let xid = header.xid;
        self.heard.push(Heard {
            octets,
            xid,
            segments,
        });
    }

    /// Does one bad thing.
    pub fn act(&mut self, link: &mut Link<'_>, chance: &mut Chance) {
        if self.own.len() < 8 {
            self.expose_some(link, chance);
        }
        if chance.percent(self.manners.percent) {
            return self.behave(link, chance);
        }
        match chance.below(12) {
            0 => self.trespass(link, chance),
            1 => self.end_exposure(link, chance),
            _ => {
                let message = self.compose(link, chance);
                let invalidate = self.invalidate(chance);
                self.send(link, &message, invalidate);
                self.said.push(message);
            }
        }
    }

    /// Does what a good peer might do: a Call within the grant, a Reply or an error for what it
    /// was asked.
    fn behave(&mut self, link: &mut Link<'_>, chance: &mut Chance) {
        let message = match chance.below(8) {
            0 => self.error(chance),
            1 if self.manners.version == Version::Two => self.property(chance),
            2..5 => self.reply(chance),
            _ if self.owed < self.manners.credits => self.call(link, chance, true),
            _ => return,
        };
        self.send(link, &message, None);
        self.said.push(message);
    }

    fn send(&mut self, link: &mut Link<'_>, message: &[u8], invalidate: Option<Handle>) {
        self.next += 1;
        let id = WorkId(self.next);
        let desk = &mut link.desk(self.end);
        // Where there is no room it waits for its next turn.
        let _ = desk.send(&[Octets::Bytes(message)], invalidate, id);
    }

    fn expose_some(&mut self, link: &mut Link<'_>, chance: &mut Chance) {
        let desk = &mut link.desk(self.end);
        let Some(span) = desk.reserve(4000) else {
            return;
        };
        let access = chance.pick(&[Access::Read, Access::Write]);
        match desk.expose(span, access) {
            Ok(segment) => {
                self.own.push((segment, access));
                self.memory.push(span);
            }
            Err(_) => desk.release(span),
        }
    }

    /// Takes memory away that the engine may be reading or writing.
    fn end_exposure(&mut self, link: &mut Link<'_>, chance: &mut Chance) {
        if self.own.is_empty() || !chance.one_in(8) {
            return;
        }
        let place = chance.index(self.own.len());
        let (segment, _) = self.own.swap_remove(place);
        self.next += 1;
        let id = WorkId(self.next);
        // The engine may have invalidated it.
        if link.ends[self.end].exposures.is_live(segment.handle) {
            let _ = link.desk(self.end).retire(segment.handle, id);
        }
    }

    /// Reads or writes what it was once told of, or never.
    fn trespass(&mut self, link: &mut Link<'_>, chance: &mut Chance) {
        let told: Vec<(Segment, Access)> = self
            .heard
            .iter()
            .flat_map(|heard| heard.segments.clone())
            .collect();
        if told.is_empty() {
            return;
        }
        let (segment, access) = chance.pick(&told[told.len().saturating_sub(6)..]);
        let access = if chance.one_in(20) {
            Access::Write
        } else {
            access
        };
        let length = chance.below(segment.length.min(2000) + 1);
        let part = Segment { length, ..segment };
        let desk = &mut link.desk(self.end);
        let Some(span) = desk.reserve(length) else {
            return;
        };
        self.memory.push(span);
        self.next += 1;
        let id = WorkId(self.next);
        let _ = match access {
            Access::Read => desk.read(span, part, id),
            Access::Write => desk.write(span, part, id),
        };
    }

    /// A handle to invalidate: mostly none, sometimes one of the last Call, sometimes any.
    fn invalidate(&self, chance: &mut Chance) -> Option<Handle> {
        if !chance.one_in(6) {
            return None;
        }
        let handles: Vec<Handle> = self
            .heard
            .iter()
            .flat_map(|heard| heard.segments.iter().map(|(segment, _)| segment.handle))
            .collect();
        (!handles.is_empty()).then(|| handles[chance.index(handles.len())])
    }

    /// Gives back all it has, once its queue pair is in error and everything has been flushed.
    pub fn clean_up(&mut self, link: &mut Link<'_>) {
        while !link.ends[self.end].arrived.is_empty() {
            self.hear(link);
        }
        link.ends[self.end].finished.clear();
        link.ends[self.end].exposures.forget();
        let desk = &mut link.desk(self.end);
        self.memory.drain(..).for_each(|span| desk.release(span));
    }
}
