//! A relay of datagrams that loses, delays, reorders and duplicates, from a seed.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// What a relay does, each in datagrams of a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lost: u32,
    pub delayed: u32,
    pub doubled: u32,
}

/// Stands between one client and one server.
pub struct Relay {
    /// Where the client sends to.
    front: UdpSocket,
    /// Where the server sends to.
    back: UdpSocket,
    client: Option<SocketAddr>,
    server: SocketAddr,
    faults: Faults,
    seed: u64,
    waiting: BTreeMap<(Instant, u64), (bool, Vec<u8>)>,
    serial: u64,
    /// Nothing passes.
    pub cut: bool,
    /// Each datagram that came, from the client or not.
    pub seen: Vec<(bool, Vec<u8>)>,
    pub keeps: bool,
}

impl Relay {
    pub fn new(server: SocketAddr, faults: Faults, seed: u64) -> Relay {
        let bound = || {
            let socket = UdpSocket::bind(super::loopback()).expect("a socket");
            socket.set_nonblocking(true).expect("a socket");
            socket
        };
        Relay {
            front: bound(),
            back: bound(),
            client: None,
            server,
            faults,
            seed,
            waiting: BTreeMap::new(),
            serial: 0,
            cut: false,
            seen: Vec::new(),
            keeps: false,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.front.local_addr().expect("bound")
    }

    fn draw(&mut self) -> u32 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.seed >> 33) % 1000) as u32
    }

    /// Passes on what there is, as the faults have it.
    pub fn turn(&mut self, now: Instant) {
        let mut room = vec![0; 65_536];
        while let Ok((len, from)) = self.front.recv_from(&mut room) {
            self.client = Some(from);
            self.take(true, &room[..len], now);
        }
        while let Ok((len, _)) = self.back.recv_from(&mut room) {
            self.take(false, &room[..len], now);
        }
        while let Some(entry) = self.waiting.first_entry()
            && entry.key().0 <= now
        {
            let (from_client, octets) = entry.remove();
            self.pass(from_client, &octets);
        }
    }

    fn take(&mut self, from_client: bool, octets: &[u8], now: Instant) {
        if self.keeps {
            self.seen.push((from_client, octets.to_vec()));
        }
        if self.cut || self.draw() < self.faults.lost {
            return;
        }
        let copies = if self.draw() < self.faults.doubled {
            2
        } else {
            1
        };
        for _ in 0..copies {
            if self.draw() < self.faults.delayed {
                let due = now + Duration::from_micros(u64::from(self.draw()) * 5);
                self.serial += 1;
                self.waiting
                    .insert((due, self.serial), (from_client, octets.to_vec()));
            } else {
                self.pass(from_client, octets);
            }
        }
    }

    fn pass(&self, from_client: bool, octets: &[u8]) {
        // A socket without room loses it too.
        let _ = if from_client {
            self.back.send_to(octets, self.server)
        } else {
            let client = self.client.expect("the client spoke first");
            self.front.send_to(octets, client)
        };
    }
}
