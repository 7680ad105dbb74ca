//! A peer that is asked for sessions, and answers in its own way.

use super::bed::{Bed, End, HERE, bed};
use super::fiend::{ACCEPT, CONTROL, Chunk, INITIATE, TERMINATE, control};
use rpcrdma_fabric::connect::{self, Fabric};
use rpcrdma_fabric::{Completion, Outcome, Port};
use rpcrdma_iwarp_sctp::Settings;
use rpcrdma_iwarp_sctp::stand_in::{Hub, Manner, Wire};
use rpcrdma_sctp::{AssociationId, Event, Llp, Reason};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const ENHANCED_INITIATE: u8 = 5;
const ENHANCED_ACCEPT: u8 = 6;

/// What came: on which association and stream.
type Heard = (AssociationId, u16, Chunk);

struct Host {
    wire: Wire,
    associations: usize,
    down: Vec<Reason>,
    heard: Vec<Heard>,
}

impl Host {
    fn new(hub: &Hub) -> Host {
        Host {
            wire: hub.wire(SocketAddr::new(HERE, 0)).expect("a wire"),
            associations: 0,
            down: Vec::new(),
            heard: Vec::new(),
        }
    }

    /// Answers each control message as `answer` says.
    fn turn(&mut self, answer: impl Fn(u8, &[u8]) -> Option<Chunk>) {
        let mut answers = Vec::new();
        let (heard, associations, down) = (&mut self.heard, &mut self.associations, &mut self.down);
        self.wire.turn(Instant::now(), &mut |event| match event {
            Event::Up { .. } => *associations += 1,
            Event::Down { reason, .. } => down.push(reason),
            Event::Message {
                association,
                stream,
                ppid,
                octets,
                ..
            } => {
                if ppid == CONTROL
                    && let Some(chunk) = answer(octets[3], &octets[4..])
                {
                    answers.push((association, stream, chunk));
                }
                heard.push((association, stream, (ppid, octets.to_vec())));
            }
            Event::Dry { .. } | Event::Writable { .. } => {}
        });
        for (association, stream, (ppid, octets)) in answers {
            let fill = |out: &mut [u8]| out.copy_from_slice(&octets);
            let sent = self
                .wire
                .send(association, stream, ppid, octets.len(), fill);
            sent.expect("taken");
        }
    }

    /// The function codes that came, and on which streams.
    fn functions(&self) -> Vec<(u16, u8)> {
        let controls = self
            .heard
            .iter()
            .filter(|(_, _, (ppid, _))| *ppid == CONTROL);
        controls
            .map(|(_, stream, (_, octets))| (*stream, octets[3]))
            .collect()
    }
}

fn scene(settings: &Settings) -> (Bed, Host, String) {
    let hub = Hub::new(Manner {
        streams: settings.streams,
        ..Manner::default()
    });
    let bed = bed(&hub, settings);
    let host = Host::new(&hub);
    let address = host.wire.address().to_string();
    (bed, host, address)
}

/// RFC 6581 section 9.3: a peer of RFC 5043 alone gets what it understands.
#[test]
fn a_peer_without_rfc_6581_is_asked_without_the_word() {
    let plain = |function: u8, _: &[u8]| match function {
        INITIATE => Some(control(0, ACCEPT, b"hello")),
        ACCEPT..=TERMINATE => None,
        _ => Some(control(0, TERMINATE, b"")),
    };
    let (mut bed, mut host, address) = scene(&Settings::default());
    for (stream, functions) in [(0, &[ENHANCED_INITIATE, INITIATE][..]), (1, &[INITIATE])] {
        let asking = bed.resolve(&address);
        bed.adopt(asking);
        bed.fabric.connect(asking, b"ask").expect("asked");
        let private_data = bed.until("the session", |bed| {
            host.turn(plain);
            let stands = connect::Event::Established {
                connection: asking,
                private_data: b"hello".to_vec(),
            };
            bed.take_event(&stands).then_some(b"hello")
        });
        assert_eq!(private_data, b"hello");
        let functions: Vec<_> = functions.iter().map(|&it| (stream, it)).collect();
        assert_eq!(host.functions(), functions);
        host.heard.clear();
    }
}

/// RFC 5043 section 6.2: a peer need not answer a Terminate. Its streams are not this side's to use
/// again, and when all of an association are gone, another association is made.
#[test]
fn streams_that_are_not_given_back_are_found_elsewhere() {
    let keeps = |function: u8, _: &[u8]| match function {
        ENHANCED_INITIATE => Some(control(0, ENHANCED_ACCEPT, &[0, 4, 0, 4])),
        _ => None,
    };
    let (mut bed, mut host, address) = scene(&Settings {
        streams: 2,
        idle: Duration::from_millis(10),
        ..Settings::default()
    });
    let connect = |bed: &mut Bed, host: &mut Host| {
        let asking = bed.resolve(&address);
        let end = bed.adopt(asking);
        bed.fabric.connect(asking, b"").expect("asked");
        let stands = connect::Event::Established {
            connection: asking,
            private_data: Vec::new(),
        };
        bed.until("the session", |bed| {
            host.turn(keeps);
            bed.take_event(&stands).then_some(())
        });
        end
    };
    // One that stays keeps the association.
    let stays = connect(&mut bed, &mut host);
    let leaves = connect(&mut bed, &mut host);
    let leave = |bed: &mut Bed, host: &mut Host, end: End| {
        bed.port.disconnect(end.pair);
        bed.until("the end", |bed| {
            host.turn(keeps);
            let is_it =
                |it: &Completion| it.token == end.token && it.outcome == Outcome::Disconnected;
            bed.completions.iter().any(is_it).then_some(())
        });
        bed.destroy(end);
    };
    leave(&mut bed, &mut host, leaves);
    assert_eq!(host.associations, 1);
    // No stream is left there.
    connect(&mut bed, &mut host);
    assert_eq!(host.associations, 2);
    assert_eq!(host.down, []);
    // The last session of the first association: then it is given up.
    leave(&mut bed, &mut host, stays);
    bed.until("the end of the association", |_| {
        host.turn(keeps);
        host.down.first().copied()
    });
    assert_eq!(host.down, [Reason::ShutDown]);
}
