//! Associations of several peers behind one UDP address: those of a host whose kernel carries all its SCTP
//! in UDP from one port, or behind a translator of addresses. Their SCTP ports tell them apart.

mod support;

use rpcrdma_sctp::{AssociationId, Llp, Settings, Usrsctp};
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use support::{End, Told, is_absent, loopback};

/// Time that nothing on a loopback takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Gives all clients the one address of `outside`.
struct Masquerade {
    inside: UdpSocket,
    outside: UdpSocket,
    server: SocketAddr,
    /// By SCTP port.
    clients: BTreeMap<u16, SocketAddr>,
    /// Two clients have chosen one port: nobody could tell them apart.
    ambiguous: bool,
}

impl Masquerade {
    fn before(server: SocketAddr) -> Masquerade {
        let bound = || {
            let socket = UdpSocket::bind(loopback()).expect("a socket");
            socket.set_nonblocking(true).expect("a socket");
            socket
        };
        Masquerade {
            inside: bound(),
            outside: bound(),
            server,
            clients: BTreeMap::new(),
            ambiguous: false,
        }
    }

    fn turn(&mut self) {
        let mut room = vec![0; 65_536];
        while let Ok((len, from)) = self.inside.recv_from(&mut room) {
            let port = u16::from_be_bytes([room[0], room[1]]);
            self.ambiguous |= *self.clients.entry(port).or_insert(from) != from;
            self.outside
                .send_to(&room[..len], self.server)
                .expect("room");
        }
        while let Ok((len, _)) = self.outside.recv_from(&mut room) {
            let port = u16::from_be_bytes([room[2], room[3]]);
            if let Some(client) = self.clients.get(&port) {
                self.inside.send_to(&room[..len], client).expect("room");
            }
        }
    }
}

/// A server and two clients behind one address.
struct Scene {
    server: End<Usrsctp>,
    clients: [End<Usrsctp>; 2],
    masquerade: Masquerade,
}

impl Scene {
    fn new() -> Scene {
        let end = || Usrsctp::connector(loopback(), Settings::default()).expect("a connector");
        let server = Usrsctp::listen(loopback(), Settings::default()).expect("a listener");
        Scene {
            masquerade: Masquerade::before(server.local_address()),
            server: End::new(server),
            clients: [End::new(end()), End::new(end())],
        }
    }

    fn until(&mut self, so: impl Fn(&Scene) -> bool) {
        let start = Instant::now();
        while !so(self) && !self.masquerade.ambiguous {
            let now = Instant::now();
            assert!(now - start < PATIENCE, "it never came to be");
            self.server.turn(now);
            self.masquerade.turn();
            self.clients.iter_mut().for_each(|client| client.turn(now));
        }
    }

    /// Whose messages the server had, as those of which association.
    fn heard(&self) -> Vec<(AssociationId, Vec<u8>)> {
        let messages = self.server.told.iter().filter_map(|told| match told {
            Told::Message {
                association,
                octets,
                ..
            } => Some((*association, octets.clone())),
            _ => None,
        });
        messages.collect()
    }
}

/// False where the clients happen to have the same port: they choose it by chance.
fn tells_them_apart() -> bool {
    let mut scene = Scene::new();
    let to = scene.masquerade.inside.local_addr().expect("bound");
    let ids: Vec<AssociationId> = scene
        .clients
        .iter_mut()
        .map(|client| client.llp.associate(to, Instant::now()).expect("asked for"))
        .collect();
    scene.until(|scene| scene.clients.iter().all(|client| client.up().is_some()));
    for (client, name) in [(0, b"one"), (1, b"two")] {
        scene.clients[client].put(ids[client], 0, name);
    }
    scene.until(|scene| scene.heard().len() == 2);
    if scene.masquerade.ambiguous {
        return false;
    }
    let heard = scene.heard();
    assert_ne!(heard[0].0, heard[1].0, "two peers, two associations");

    // One goes, and the other does not notice.
    scene.clients[0].llp.abort(ids[0]);
    scene.until(|scene| scene.server.down().is_some());
    scene.clients[1].put(ids[1], 0, b"still");
    scene.until(|scene| scene.heard().len() == 3);
    let heard = scene.heard();
    let of = |name: &[u8]| heard.iter().find(|it| it.1 == name).map(|it| it.0);
    assert_eq!(of(b"two"), of(b"still"));
    assert_eq!(scene.clients[1].down(), None);
    true
}

#[test]
fn peers_behind_one_address_are_told_apart() {
    if is_absent() {
        return;
    }
    assert!((0..3).any(|_| tells_them_apart()));
}
