//! A peer that speaks correct SCTP, and above it what the test likes.

use crate::bed::{Bed, End, HERE, bed};
use rpcrdma_fabric::connect::Fabric;
use rpcrdma_iwarp::ddp::{self, Header, Tagged, Untagged};
use rpcrdma_iwarp::session::ADAPTATION_DDP;
use rpcrdma_iwarp::{Stag, Terminate};
use rpcrdma_iwarp_sctp::Settings;
use rpcrdma_iwarp_sctp::stand_in::{Hub, Manner, Wire};
use rpcrdma_sctp::{AssociationId, Event, Llp, Reason};
use std::net::SocketAddr;
use std::time::Instant;

pub(crate) const SEGMENT: u32 = 16;
pub(crate) const CONTROL: u32 = 17;

pub(crate) const INITIATE: u8 = 1;
pub(crate) const ACCEPT: u8 = 2;
pub(crate) const TERMINATE: u8 = 4;

/// A chunk: protocol identifier and octets.
pub(crate) type Chunk = (u32, Vec<u8>);

/// A control message.
pub(crate) fn control(ssn: u16, function: u8, data: &[u8]) -> Chunk {
    let [high, low] = ssn.to_be_bytes();
    (CONTROL, [&[high, low, 0, function], data].concat())
}

/// A segment, with its header.
pub(crate) fn segment(ssn: u16, header: Header, payload: &[u8]) -> Chunk {
    let mut octets = vec![0; 2 + ddp::UNTAGGED_BYTES + payload.len()];
    octets[..2].copy_from_slice(&ssn.to_be_bytes());
    let rest = match header {
        Header::Tagged(header) => header.emit(&mut octets[2..]),
        Header::Untagged(header) => header.emit(&mut octets[2..]),
    };
    let rest = rest.expect("room");
    rest[..payload.len()].copy_from_slice(payload);
    let spare = rest.len() - payload.len();
    octets.truncate(octets.len() - spare);
    (SEGMENT, octets)
}

/// The header of an untagged segment, whole in itself.
pub(crate) fn untagged(opcode: u8, queue: u32, msn: u32) -> Untagged {
    Untagged {
        last: true,
        ulp: 0x40 | opcode,
        ulp_word: 0,
        queue,
        msn,
        mo: 0,
    }
}

/// The header of an RDMA Write's segment.
pub(crate) fn write(stag: u32, to: u64) -> Header {
    Header::Tagged(Tagged {
        last: true,
        ulp: 0x40,
        stag: Stag(stag),
        to,
    })
}

/// The peer.
pub(crate) struct Fiend {
    pub(crate) wire: Wire,
    association: AssociationId,
    pub(crate) heard: Vec<(u16, Chunk)>,
    pub(crate) down: Option<Reason>,
}

impl Fiend {
    /// Associated with a listener.
    pub(crate) fn new(hub: &Hub, to: SocketAddr) -> Fiend {
        let mut wire = hub.wire(SocketAddr::new(HERE, 0)).expect("a wire");
        let association = wire.associate(to, Instant::now()).expect("an association");
        Fiend {
            wire,
            association,
            heard: Vec::new(),
            down: None,
        }
    }

    pub(crate) fn turn(&mut self) {
        let (heard, down) = (&mut self.heard, &mut self.down);
        self.wire.turn(Instant::now(), &mut |event| match event {
            Event::Message {
                stream,
                ppid,
                octets,
                ..
            } => heard.push((stream, (ppid, octets.to_vec()))),
            Event::Down { reason, .. } => *down = Some(reason),
            _ => {}
        });
    }

    pub(crate) fn say(&mut self, stream: u16, (ppid, octets): &Chunk) {
        let copy = |out: &mut [u8]| out.copy_from_slice(octets);
        let sent = self
            .wire
            .send(self.association, stream, *ppid, octets.len(), copy);
        sent.expect("taken");
    }

    /// The function codes of what came on a stream.
    pub(crate) fn controls(&self, stream: u16) -> Vec<u8> {
        let of_it = self.heard.iter().filter(|(on, _)| *on == stream);
        let controls = of_it.filter(|(_, (ppid, _))| *ppid == CONTROL);
        controls.map(|(_, (_, octets))| octets[3]).collect()
    }

    /// What RDMAP's Terminate on a stream said, if there was one: layer, type, code.
    pub(crate) fn blamed(&self, stream: u16) -> Option<(u8, u8, u8)> {
        let of_it = self.heard.iter().filter(|(on, _)| *on == stream);
        let mut segments = of_it.filter(|(_, (ppid, _))| *ppid == SEGMENT);
        segments.find_map(|(_, (_, octets))| {
            let (header, payload) = ddp::parse(&octets[2..]).expect("ours are right");
            let of_queue_2 = matches!(header, Header::Untagged(header) if header.queue == 2);
            let said = of_queue_2.then(|| Terminate::parse(payload).expect("whole"))?;
            let code = said.code;
            Some((code.layer, code.error_type, code.error_code))
        })
    }
}

/// A port with a listener, an honest connection, and a fiend.
pub(crate) struct Scene {
    pub(crate) bed: Bed,
    pub(crate) honest: (End, End),
    pub(crate) fiend: Fiend,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        Scene::with(Manner {
            chunk_bytes: 70_000,
            ..Manner::default()
        })
    }

    /// The fiend's SCTP is of this manner.
    pub(crate) fn with(manner: Manner) -> Scene {
        assert_eq!(Manner::default().indication, Some(ADAPTATION_DDP));
        let hub = Hub::new(Manner::default());
        let mut bed = bed(&hub, &Settings::default());
        let listener = bed.fabric.listen(&bed.anywhere()).expect("a listener");
        let address = bed.fabric.address(listener).expect("it listens");
        let honest = bed.connection_to(&address);
        let fiend = Fiend::new(&hub.with(manner), address.parse().expect("an address"));
        Scene { bed, honest, fiend }
    }

    /// Turns both until there is something.
    pub(crate) fn until<T>(
        &mut self,
        what: &str,
        mut done: impl FnMut(&mut Bed, &mut Fiend) -> Option<T>,
    ) -> T {
        let Scene { bed, fiend, .. } = self;
        bed.until(what, |bed| {
            fiend.turn();
            done(bed, fiend)
        })
    }

    /// A few turns of both, in which nothing is waited for.
    pub(crate) fn turn(&mut self) {
        for _ in 0..4 {
            self.bed.look();
            self.fiend.turn();
        }
    }

    /// A session of the fiend's on stream 0, accepted.
    pub(crate) fn session(&mut self) -> End {
        self.turn();
        self.fiend.say(0, &control(0, INITIATE, b""));
        let (asked, _) = self.bed.request();
        let end = self.bed.adopt(asked);
        self.bed.fabric.accept(asked, b"").expect("taken");
        self.until("the Accept", |_, fiend| {
            (fiend.controls(0) == [ACCEPT]).then_some(())
        });
        end
    }

    /// Others go on.
    pub(crate) fn check_honest(&mut self) {
        let (a, b) = self.honest;
        self.bed.send(a, b);
        self.bed.send(b, a);
    }
}
