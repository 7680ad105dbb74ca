//! A relay of datagrams that loses, delays, reorders and duplicates, from a seed.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Clients at once; what others send is lost.
const WAYS: usize = 64;

/// What a relay does, each in datagrams of a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lost: u32,
    /// Those are held back for up to five milliseconds, so that later ones overtake them.
    pub delayed: u32,
    pub doubled: u32,
}

/// What a relay did: datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// That came.
    pub seen: u64,
    pub lost: u64,
    /// Copies that were held back.
    pub delayed: u64,
    pub doubled: u64,
}

/// One client, and the socket by which the server knows it.
struct Way {
    client: SocketAddr,
    back: UdpSocket,
}

/// A datagram's way: whose, and where to.
#[derive(Clone, Copy)]
struct Course {
    way: usize,
    from_client: bool,
}

/// Stands between clients and one server.
pub struct Relay {
    /// Where clients send to.
    front: UdpSocket,
    ways: Vec<Way>,
    server: SocketAddr,
    faults: Faults,
    seed: u64,
    waiting: BTreeMap<(Instant, u64), (Course, Vec<u8>)>,
    serial: u64,
    counts: Counts,
    room: Box<[u8]>,
    /// Nothing passes.
    pub cut: bool,
    /// Each datagram that came, from a client or not.
    pub seen: Vec<(bool, Vec<u8>)>,
    pub keeps: bool,
}

impl Relay {
    /// One at a free port of the loopback.
    pub fn new(server: SocketAddr, faults: Faults, seed: u64) -> Relay {
        Relay::at(near(server), server, faults, seed).expect("a socket")
    }

    pub fn at(
        here: SocketAddr,
        server: SocketAddr,
        faults: Faults,
        seed: u64,
    ) -> io::Result<Relay> {
        Ok(Relay {
            front: bound(here)?,
            ways: Vec::new(),
            server,
            faults,
            seed,
            waiting: BTreeMap::new(),
            serial: 0,
            counts: Counts::default(),
            room: vec![0; 65_536].into_boxed_slice(),
            cut: false,
            seen: Vec::new(),
            keeps: false,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.front.local_addr().expect("bound")
    }

    /// Where datagrams come in, as of now.
    pub fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        std::iter::once(&self.front).chain(self.ways.iter().map(|way| &way.back))
    }

    /// When the next of those held back goes on.
    pub fn due(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// Does other things from now on; what it did with those before.
    pub fn change(&mut self, faults: Faults) -> Counts {
        self.faults = faults;
        std::mem::take(&mut self.counts)
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
        let mut room = std::mem::take(&mut self.room);
        while let Ok((len, from)) = self.front.recv_from(&mut room) {
            if let Some(way) = self.way_of(from) {
                let from_client = true;
                self.take(Course { way, from_client }, &room[..len], now);
            }
        }
        for way in 0..self.ways.len() {
            while let Ok((len, _)) = self.ways[way].back.recv_from(&mut room) {
                let from_client = false;
                self.take(Course { way, from_client }, &room[..len], now);
            }
        }
        self.room = room;
        while let Some(entry) = self.waiting.first_entry()
            && entry.key().0 <= now
        {
            let (course, octets) = entry.remove();
            self.pass(course, &octets);
        }
    }

    fn way_of(&mut self, client: SocketAddr) -> Option<usize> {
        let known = self.ways.iter().position(|way| way.client == client);
        if known.is_some() || self.ways.len() == WAYS {
            return known;
        }
        let back = bound(near(self.server)).ok()?;
        self.ways.push(Way { client, back });
        Some(self.ways.len() - 1)
    }

    fn take(&mut self, course: Course, octets: &[u8], now: Instant) {
        if self.keeps {
            self.seen.push((course.from_client, octets.to_vec()));
        }
        self.counts.seen += 1;
        if self.cut || self.draw() < self.faults.lost {
            self.counts.lost += 1;
            return;
        }
        let mut copies = 1;
        if self.draw() < self.faults.doubled {
            self.counts.doubled += 1;
            copies = 2;
        }
        for _ in 0..copies {
            if self.draw() < self.faults.delayed {
                self.counts.delayed += 1;
                let due = now + Duration::from_micros(u64::from(self.draw()) * 5);
                self.serial += 1;
                let key = (due, self.serial);
                self.waiting.insert(key, (course, octets.to_vec()));
            } else {
                self.pass(course, octets);
            }
        }
    }

    fn pass(&self, course: Course, octets: &[u8]) {
        let way = &self.ways[course.way];
        // A socket without room loses it too.
        let _ = if course.from_client {
            way.back.send_to(octets, self.server)
        } else {
            self.front.send_to(octets, way.client)
        };
    }
}

/// A free port of the loopback of that family.
fn near(other: SocketAddr) -> SocketAddr {
    match other {
        SocketAddr::V4(_) => (Ipv4Addr::LOCALHOST, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::LOCALHOST, 0).into(),
    }
}

/// A socket with room for what a window of SCTP has in flight, where the system allows that much.
fn bound(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(at)?;
    socket.set_nonblocking(true)?;
    let options = socket2::SockRef::from(&socket);
    options.set_recv_buffer_size(8 << 20)?;
    options.set_send_buffer_size(8 << 20)?;
    Ok(socket)
}
