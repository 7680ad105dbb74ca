//! Two pairs of this machine, and what is seen at them.

use rpcrdma_fabric::connect::Fabric;
use rpcrdma_fabric::datagram::{
    AddressVector, Arrival, DatagramFabric, Datagrams, LinkChange, Membership, Memberships,
    Standing,
};
use rpcrdma_verbs::{ManagedDatagrams, ManagedWanted, Settings, VerbsFabric};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// A watchdog, not a measure: the machine may be emulated.
const PATIENCE: Duration = Duration::from_secs(20);

/// Says what was to be seen, and whether it was.
pub fn verdict(name: &str, right: bool, detail: &str) {
    let word = if right { "PASS" } else { "FAIL" };
    println!("{word} {name}: {detail}");
}

/// Has the network changed by whoever started this.
pub fn ask_for(command: &str) {
    println!("do {command}");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).expect("an answer");
}

/// One of the two.
pub struct Side {
    pub address: IpAddr,
    pub pair: ManagedDatagrams,
    /// What was said of groups and not asked for yet.
    standings: HashMap<IpAddr, Standing>,
}

/// Both, and their fabric.
pub struct Bed {
    pub near: Side,
    pub far: Side,
    pub fabric: VerbsFabric,
    /// The way to the group that both have joined.
    pub to_all: Option<AddressVector>,
}

impl Bed {
    pub fn new(near: IpAddr, far: IpAddr) -> Bed {
        let mut fabric = VerbsFabric::new(Settings::default()).expect("devices");
        let mut side = |address| {
            let wanted = ManagedWanted::at(SocketAddr::new(address, 0));
            let pair = fabric.open_managed(&wanted).expect("a queue pair");
            Side {
                address,
                pair,
                standings: HashMap::new(),
            }
        };
        let (near, far) = (side(near), side(far));
        Bed {
            near,
            far,
            fabric,
            to_all: None,
        }
    }

    /// To the group that both have joined.
    pub fn to_all(&self) -> AddressVector {
        self.to_all.expect("the first group is joined")
    }

    /// Whether the next that comes to the near side is what is sent to it now: whatever was sent
    /// before did not come.
    pub fn fence_to_near(&mut self) -> bool {
        let to = self.to_all();
        self.far.pair.send(b"fence", &to).expect("sent");
        self.near.next().is_some_and(|(found, _)| found == b"fence")
    }

    /// The same for the far side.
    pub fn fence_to_far(&mut self) -> bool {
        let to = self.to_all();
        self.near.pair.send(b"fence", &to).expect("sent");
        self.far.next().is_some_and(|(found, _)| found == b"fence")
    }

    /// Waits for a change of a device's link, others going by.
    pub fn await_change(&mut self, device: &str, change: LinkChange) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            while self.fabric.poll().is_some() {}
            while let Some((name, found)) = self.fabric.link_change() {
                if name.device == device && found == change {
                    return true;
                }
            }
            wait(self.fabric.descriptor().expect("it has one"));
        }
        false
    }
}

impl Side {
    /// Joins a group, and how to send to it.
    pub fn joined(&mut self, group: IpAddr, membership: Membership) -> AddressVector {
        self.pair.join(group, membership).expect("begun");
        self.standing_of(group).expect("joined")
    }

    /// What becomes of a group.
    pub fn standing_of(&mut self, group: IpAddr) -> Option<AddressVector> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            while let Some((found, standing)) = self.pair.standing() {
                self.standings.insert(found, standing);
            }
            match self.standings.remove(&group) {
                Some(Standing::Joined(to)) => return Some(to),
                Some(Standing::Failed(why)) => {
                    eprintln!("{why}");
                    return None;
                }
                None => wait(self.pair.descriptor()),
            }
        }
        None
    }

    /// The next datagram.
    pub fn next(&mut self) -> Option<(Vec<u8>, Arrival)> {
        next(&mut self.pair)
    }
}

/// The next datagram of any pair.
pub fn next<P: Datagrams>(pair: &mut P) -> Option<(Vec<u8>, Arrival)> {
    let deadline = Instant::now() + PATIENCE;
    let mut octets = Vec::new();
    while Instant::now() < deadline {
        if let Some(arrival) = pair.receive(&mut octets) {
            return Some((octets, arrival));
        }
        wait(pair.descriptor());
    }
    None
}

/// Until it is readable, or for a while.
pub fn wait(descriptor: BorrowedFd<'_>) {
    let mut watched = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    let a_while = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    // Interrupted: whoever waits looks, and waits again.
    let _ = poll(&mut watched, Some(&a_while));
}
