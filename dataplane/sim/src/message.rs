//! RPC messages as the simulation makes them, and what must arrive of them.

use crate::chance::Chance;
use rpcrdma_engine::{Io, MAX_RESULTS, Part, Span};
use rpcrdma_wire::{Direction, Xid};

/// One run of a message: a DDP-eligible data item, or what is around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its octets; those of an item without padding.
    pub octets: Vec<u8>,
    /// It may go by direct placement.
    pub item: bool,
}

/// An RPC message: its fields in order. What follows an item begins with the item's padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message(pub Vec<Field>);

/// Says where two runs of octets differ.
///
/// # Panics
///
/// When they do.
pub fn check_same(found: &[u8], wanted: &[u8], what: &str) {
    let differ = found.iter().zip(wanted).position(|(a, b)| a != b);
    assert!(
        differ.is_none() && found.len() == wanted.len(),
        "{what}: {} octets for {}, first difference at {differ:?}",
        found.len(),
        wanted.len()
    );
}

/// The padding behind `len` octets.
#[must_use]
pub fn padding(len: usize) -> usize {
    len.wrapping_neg() & 3
}

impl Message {
    /// A message whose first words are its xid and type, then `plain` octets, then each item
    /// followed by some octets more; `bare`: nothing follows the last item, not even padding.
    #[must_use]
    pub fn new(
        chance: &mut Chance,
        xid: Xid,
        direction: Direction,
        plain: u32,
        items: &[u32],
        bare: bool,
    ) -> Message {
        let mut head = xid.0.to_be_bytes().to_vec();
        head.extend(direction.code().to_be_bytes());
        head.extend(chance.octets(plain & !3));
        let mut fields = vec![plain_field(head)];
        for (place, &len) in items.iter().enumerate() {
            fields.push(Field {
                octets: chance.octets(len),
                item: true,
            });
            if bare && place + 1 == items.len() {
                break;
            }
            let mut rest = vec![0; padding(len as usize)];
            let more = chance.below(4) * 4;
            rest.extend(chance.octets(more));
            if !rest.is_empty() {
                fields.push(plain_field(rest));
            }
        }
        Message(fields)
    }

    /// The whole message as it would stand on TCP.
    #[must_use]
    pub fn whole(&self) -> Vec<u8> {
        self.without(&[]).0
    }

    /// The items in order.
    pub fn items(&self) -> impl Iterator<Item = &[u8]> {
        let items = self.0.iter().filter(|field| field.item);
        items.map(|field| field.octets.as_slice())
    }

    /// What is left when the n-th item goes to `rooms[n]`, where there is room at all: the
    /// body, and what goes to each room. An item goes without its padding, which is left out.
    #[must_use]
    pub fn without(&self, rooms: &[u32]) -> (Vec<u8>, Vec<Option<Vec<u8>>>) {
        let mut body = Vec::new();
        let mut placed: Vec<Option<Vec<u8>>> = Vec::new();
        let mut skip = 0;
        for (at, field) in self.0.iter().enumerate() {
            let last = at + 1 == self.0.len();
            if !field.item {
                body.extend(&field.octets[skip..]);
                skip = 0;
                continue;
            }
            let room = rooms.get(placed.len()).copied().unwrap_or(0);
            if room > 0 {
                placed.push(Some(field.octets.clone()));
                skip = padding(field.octets.len());
                continue;
            }
            placed.push(None);
            body.extend(&field.octets);
            if last {
                body.resize(body.len() + padding(field.octets.len()), 0);
            }
        }
        (body, placed)
    }

    /// Puts the message into memory of `io`: its parts, and the blocks they lie in. `None`
    /// when there is no memory for it.
    pub fn place<'m>(&self, io: &mut impl Io<'m>) -> Option<(Vec<Part>, Vec<Span>)> {
        let (mut parts, mut blocks) = (Vec::new(), Vec::new());
        for field in &self.0 {
            let len = u32::try_from(field.octets.len()).expect("a field");
            let Some(span) = io.reserve(len) else {
                blocks.into_iter().for_each(|block| io.release(block));
                return None;
            };
            io.fill(span, &field.octets);
            let item = field.item;
            parts.push(Part { span, item });
            blocks.push(span);
        }
        Some((parts, blocks))
    }
}

fn plain_field(octets: Vec<u8>) -> Field {
    Field {
        octets,
        item: false,
    }
}

/// One RPC of a run: what is called, what is answered.
#[derive(Clone, Debug)]
pub struct Rpc {
    /// The Call.
    pub call: Message,
    /// The Reply.
    pub reply: Message,
    /// Room for each result at first; zero asks for it inline.
    pub rooms: Vec<u32>,
    /// Room for a long Reply at first.
    pub reply_room: Option<u32>,
}

/// How large the RPCs of a run are, and how often they ask for too little room.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Octets around the items, at most.
    pub plain: u32,
    /// Octets of an item, at most.
    pub item: u32,
    /// Of a hundred RPCs, so many have no items and are short.
    pub short_percent: u32,
    /// Of a hundred rooms, so many are too small.
    pub small_percent: u32,
}

impl Rpc {
    /// Any RPC within `sizes`.
    #[must_use]
    pub fn any(chance: &mut Chance, xid: Xid, sizes: Sizes) -> Rpc {
        if chance.percent(sizes.short_percent) {
            return Rpc::short(chance, xid);
        }
        let lens = |chance: &mut Chance| -> Vec<u32> {
            let count = chance.pick(&[0, 0, 1, 1, 1, 2]);
            (0..count).map(|_| length(chance, sizes.item)).collect()
        };
        let (arguments, results) = (lens(chance), lens(chance));
        let mut message = |direction, items: &[u32]| {
            let plain = length(chance, sizes.plain);
            let bare = chance.one_in(3);
            Message::new(chance, xid, direction, plain, items, bare)
        };
        let call = message(Direction::Call, &arguments);
        let reply = message(Direction::Reply, &results);
        let mut room = |needed: u32| match () {
            () if chance.percent(sizes.small_percent) => chance.below(needed.max(1)),
            () if chance.one_in(2) => needed,
            () => needed + chance.below(100),
        };
        let mut rooms: Vec<u32> = results.iter().map(|&len| room(len)).collect();
        let body = u32::try_from(reply.without(&rooms).0.len()).expect("short enough");
        let reply_room = (body > 700).then(|| room(body)).filter(|&room| room > 0);
        match chance.below(8) {
            // Asked for inline; a Write chunk too few; one too many.
            0 => rooms.iter_mut().for_each(|room| *room = 0),
            1 => drop(rooms.pop()),
            2 if rooms.len() < MAX_RESULTS => rooms.push(100),
            _ => {}
        }
        Rpc {
            call,
            reply,
            rooms,
            reply_room,
        }
    }

    /// An RPC that needs no chunks.
    #[must_use]
    pub fn short(chance: &mut Chance, xid: Xid) -> Rpc {
        let mut message = |direction| {
            let plain = chance.below(60) * 4;
            Message::new(chance, xid, direction, plain, &[], false)
        };
        Rpc {
            call: message(Direction::Call),
            reply: message(Direction::Reply),
            rooms: Vec::new(),
            reply_room: None,
        }
    }
}

/// A length up to `most`: the small, the odd and the large ones all come up.
fn length(chance: &mut Chance, most: u32) -> u32 {
    let most = match chance.below(4) {
        0 => 16,
        1 => 200,
        _ => most,
    };
    chance.below(most + 1)
}
