//! SCTP that stands in for SCTP: associations within one process, for tests and for counting the
//! instructions of our own code.
//!
//! A [`Hub`] is a network, and makes [`Wire`]s, which are SCTP endpoints on it. Nothing is lost.
//! What is under way between two turns may be mixed up ([`Manner::seed`]), as unordered chunks may
//! be. A test can drive a wire itself, and be a peer that says what it likes.

mod wire;

pub use wire::Wire;

use crate::stack::Stack;
use rpcrdma_fabric::bell::Bell;
use rpcrdma_sctp::{AssociationId, Error};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What the wires of a hub do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Streams each way.
    pub streams: u16,
    /// The adaptation indication in INIT and INIT-ACK.
    pub indication: Option<u32>,
    /// Octets of the longest chunk.
    pub chunk_bytes: u32,
    /// Chunks of an association that may be under way.
    pub window: u32,
    /// Mixes up what is under way.
    pub seed: Option<u64>,
    /// Associations of a wire.
    pub associations: u32,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner {
            streams: 32,
            indication: Some(1),
            chunk_bytes: 1400,
            window: 256,
            seed: None,
            associations: 64,
        }
    }
}

/// What goes from one wire to another.
#[derive(Debug)]
enum Packet {
    Init {
        from: Arc<Mailbox>,
        asking: AssociationId,
        manner: Manner,
    },
    InitAck {
        to: AssociationId,
        from: AssociationId,
        manner: Manner,
        mailbox: Arc<Mailbox>,
    },
    Data {
        to: AssociationId,
        stream: u16,
        ppid: u32,
        octets: Vec<u8>,
    },
    Sack {
        to: AssociationId,
        chunks: u32,
    },
    Abort {
        to: AssociationId,
        reason: rpcrdma_sctp::Reason,
    },
    /// Nobody is there, or answers any more, whoever it was.
    Cut,
}

/// Where a wire's packets come.
#[derive(Debug)]
struct Mailbox {
    address: SocketAddr,
    packets: Mutex<VecDeque<Packet>>,
    rung: AtomicBool,
    bell: Bell,
}

impl Mailbox {
    fn put(&self, packet: Packet) {
        lock(&self.packets).push_back(packet);
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.bell.ring();
        }
    }

    /// What has come, for an empty list that takes its place.
    fn take(&self, packets: &mut VecDeque<Packet>) {
        if self.rung.swap(false, Ordering::AcqRel) {
            self.bell.hush();
        }
        std::mem::swap(packets, &mut lock(&self.packets));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Default)]
struct Addresses {
    heard: HashMap<SocketAddr, Vec<Weak<Mailbox>>>,
    last_port: u16,
    /// Ends of associations that are there.
    ends: Arc<AtomicUsize>,
    /// Memory of chunks that have arrived, for others: so that what allocates is not this.
    spare: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// A network. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Hub {
    addresses: Arc<Mutex<Addresses>>,
    manner: Manner,
    down: Arc<AtomicBool>,
}

impl Hub {
    /// A network of wires that behave like this.
    #[must_use]
    pub fn new(manner: Manner) -> Hub {
        Hub {
            addresses: Arc::default(),
            manner,
            down: Arc::default(),
        }
    }

    /// The same network, for wires of another manner.
    #[must_use]
    pub fn with(&self, manner: Manner) -> Hub {
        Hub {
            addresses: Arc::clone(&self.addresses),
            manner,
            down: Arc::clone(&self.down),
        }
    }

    /// Has the network say that its link is down, or up. Packets go all the same.
    pub fn say_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    /// A wire at an address; port zero is any.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn wire(&self, mut address: SocketAddr) -> io::Result<Wire> {
        let mut addresses = lock(&self.addresses);
        if address.port() == 0 {
            addresses.last_port += 1;
            address.set_port(addresses.last_port);
        }
        let mailbox = Arc::new(Mailbox {
            address,
            packets: Mutex::default(),
            rung: AtomicBool::new(false),
            bell: Bell::new()?,
        });
        let heard = addresses.heard.entry(address).or_default();
        heard.push(Arc::downgrade(&mailbox));
        drop(addresses);
        Ok(Wire::new(self.clone(), mailbox, self.manner))
    }

    /// Ends every association at once, with no word to anybody: the network is gone for a moment.
    pub fn cut(&self) {
        for mailbox in lock(&self.addresses).heard.values().flatten() {
            if let Some(mailbox) = mailbox.upgrade() {
                mailbox.put(Packet::Cut);
            }
        }
    }

    /// Ends of associations that are there.
    #[must_use]
    pub fn associations(&self) -> usize {
        lock(&self.addresses).ends.load(Ordering::Acquire)
    }

    fn ends(&self) -> Arc<AtomicUsize> {
        Arc::clone(&lock(&self.addresses).ends)
    }

    fn spare(&self) -> Arc<Mutex<Vec<Vec<u8>>>> {
        Arc::clone(&lock(&self.addresses).spare)
    }

    /// Who hears a peer at an address: of several, always the same one for the same peer.
    fn find(&self, address: SocketAddr, peer: SocketAddr) -> Option<Arc<Mailbox>> {
        let mut addresses = lock(&self.addresses);
        let heard = addresses.heard.get_mut(&address)?;
        heard.retain(|mailbox| mailbox.strong_count() > 0);
        let nth = usize::from(peer.port()) % heard.len().max(1);
        heard.get(nth)?.upgrade()
    }
}

impl Stack for Hub {
    type Llp = Wire;

    fn listen(&mut self, address: SocketAddr) -> Result<(Wire, SocketAddr), Error> {
        let wire = self.wire(address).map_err(os)?;
        let address = wire.address();
        Ok((wire, address))
    }

    fn depart(&mut self, to: SocketAddr) -> Result<Wire, Error> {
        self.wire(SocketAddr::new(to.ip(), 0)).map_err(os)
    }

    fn is_up(&mut self) -> bool {
        !self.down.load(Ordering::Relaxed)
    }
}

fn os(source: io::Error) -> Error {
    Error::Os {
        call: "eventfd",
        source,
    }
}
