//! Two pairs of this machine, and what is seen at them.

use rpcrdma_fabric::connect::Fabric;
use rpcrdma_fabric::datagram::{
    AddressVector, Arrival, DatagramFabric, Datagrams, Group, LinkChange, Membership, Memberships,
    Standing, Unsent,
};
use rpcrdma_verbs::{ManagedDatagrams, ManagedWanted, Settings, VerbsFabric};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// A watchdog, not a measure: the machine may be emulated.
const PATIENCE: Duration = Duration::from_secs(20);

/// Says what was to be seen, and whether it was.
pub(crate) fn verdict(name: &str, right: bool, detail: &str) {
    let word = if right { "PASS" } else { "FAIL" };
    println!("{word} {name}: {detail}");
}

/// Has the network changed by whoever started this.
pub(crate) fn ask_for(command: &str) {
    println!("do {command}");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).expect("an answer");
}

/// The same, while fabrics are looked after: what is asked for needs it.
pub(crate) fn ask_for_with(fabrics: &mut [VerbsFabric; 2], command: &str) {
    println!("do {command}");
    let stdin = std::io::stdin();
    let mut is_answered = false;
    while !is_answered {
        for fabric in &mut *fabrics {
            while fabric.poll().is_some() {}
        }
        let [one, other] = &*fabrics;
        let [one, other] = [one, other].map(|it| it.descriptor().expect("it has one"));
        is_answered = wait(&[stdin.as_fd(), one, other])[0];
    }
    stdin.read_line(&mut String::new()).expect("an answer");
}

/// One of the two.
pub(crate) struct Side {
    pub(crate) address: SocketAddr,
    pub(crate) pair: ManagedDatagrams,
    /// What was said of groups, and what came, and was not asked for yet.
    standings: HashMap<IpAddr, Standing>,
    inbox: VecDeque<(Vec<u8>, Arrival)>,
}

impl Side {
    fn look(&mut self) {
        while let Some((group, standing)) = self.pair.standing() {
            self.standings.insert(group, standing);
        }
        drain(&mut self.pair, &mut self.inbox);
    }
}

/// Which of the two.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Near,
    Far,
}

/// Both, and their fabric.
pub(crate) struct Bed {
    pub(crate) near: Side,
    pub(crate) far: Side,
    pub(crate) fabric: VerbsFabric,
    /// Another one on the same devices, to which all is told, too.
    pub(crate) other: VerbsFabric,
    /// The way to the group that both have joined.
    pub(crate) to_all: AddressVector,
}

impl Bed {
    pub(crate) fn new(near: SocketAddr, far: SocketAddr, group: IpAddr) -> Bed {
        let mut fabric = VerbsFabric::new(Settings::default()).expect("devices");
        let mut side = |address| {
            let wanted = ManagedWanted::at(address);
            Side {
                address,
                pair: fabric.open_managed(&wanted).expect("a queue pair"),
                standings: HashMap::new(),
                inbox: VecDeque::new(),
            }
        };
        let (near, far) = (side(near), side(far));
        let nowhere = Group {
            mgid: [0; 16],
            mlid: 0,
        };
        let mut bed = Bed {
            near,
            far,
            fabric,
            other: VerbsFabric::new(Settings::default()).expect("devices"),
            to_all: AddressVector::of_group(nowhere, 0),
        };
        let ways = [End::Near, End::Far].map(|end| bed.joined(end, group, Membership::Full));
        verdict("joined", ways[0] == ways[1], &format!("{:x?}", ways[0]));
        [bed.to_all, _] = ways;
        bed
    }

    pub(crate) fn side(&mut self, end: End) -> &mut Side {
        match end {
            End::Near => &mut self.near,
            End::Far => &mut self.far,
        }
    }

    /// Sends from one end, and what comes of it.
    pub(crate) fn send(
        &mut self,
        end: End,
        octets: &[u8],
        to: &AddressVector,
    ) -> Result<(), Unsent> {
        self.side(end).pair.send(octets, to)
    }

    /// The same, until it is not busy any more.
    pub(crate) fn send_when_ready(
        &mut self,
        end: End,
        octets: &[u8],
        to: &AddressVector,
    ) -> Result<(), Unsent> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let sent = self.send(end, octets, to);
            if sent != Err(Unsent::Busy) || Instant::now() >= deadline {
                return sent;
            }
            self.look();
            wait(&[self.side(end).pair.descriptor()]);
        }
    }

    /// What there is at either end, as a control thread would look: whatever goes on there by itself
    /// does so only then.
    fn look(&mut self) {
        self.near.look();
        self.far.look();
    }

    /// Until `found` finds something at an end; none when it took too long.
    fn until<T>(&mut self, end: End, found: impl Fn(&mut Side) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.look();
            let seen = found(self.side(end));
            if seen.is_some() || Instant::now() >= deadline {
                return seen;
            }
            wait(&[self.near.pair.descriptor(), self.far.pair.descriptor()]);
        }
    }

    /// The next datagram that comes to an end.
    pub(crate) fn next(&mut self, end: End) -> Option<(Vec<u8>, Arrival)> {
        self.until(end, |side| side.inbox.pop_front())
    }

    /// Joins a group, and how to send to it.
    pub(crate) fn joined(
        &mut self,
        end: End,
        group: IpAddr,
        membership: Membership,
    ) -> AddressVector {
        self.side(end).pair.join(group, membership).expect("begun");
        self.standing_of(end, group).expect("joined")
    }

    /// What becomes of a group that is being joined.
    pub(crate) fn standing_of(&mut self, end: End, group: IpAddr) -> Option<AddressVector> {
        match self.until(end, |side| side.standings.remove(&group))? {
            Standing::Joined(to) => Some(to),
            Standing::Failed(why) => {
                eprintln!("{why}");
                None
            }
        }
    }

    /// Whether the next that comes to an end is what the other sends to it now: whatever was sent
    /// before did not come.
    pub(crate) fn fence(&mut self, end: End) -> bool {
        let other = match end {
            End::Near => End::Far,
            End::Far => End::Near,
        };
        let to = self.to_all;
        self.send(other, b"fence", &to).is_ok()
            && self.next(end).is_some_and(|(found, _)| found == b"fence")
    }

    /// Waits until both fabrics are told of a change of the links of these devices, others going by.
    pub(crate) fn await_change(&mut self, devices: &[&str], change: LinkChange) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let mut left = [devices.to_vec(), devices.to_vec()];
        while left.iter().any(|left| !left.is_empty()) && Instant::now() < deadline {
            for (fabric, left) in [&mut self.fabric, &mut self.other]
                .into_iter()
                .zip(&mut left)
            {
                while fabric.poll().is_some() {}
                while let Some((name, found)) = fabric.link_change() {
                    left.retain(|device| name.device != *device || found != change);
                }
            }
            wait(&[&self.fabric, &self.other].map(|it| it.descriptor().expect("it has one")));
        }
        left.iter().all(Vec::is_empty)
    }

    /// Datagrams between two other pairs: sends from the one, the next of the other.
    pub(crate) fn pass<P: Datagrams>(
        &self,
        from: &mut P,
        to: &mut P,
        octets: &[u8],
        way: &AddressVector,
    ) -> Option<(Vec<u8>, Arrival)> {
        from.send(octets, way).expect("sent");
        let (mut unasked, mut came) = (VecDeque::new(), VecDeque::new());
        let deadline = Instant::now() + PATIENCE;
        while came.is_empty() && Instant::now() < deadline {
            drain(from, &mut unasked);
            drain(to, &mut came);
            if came.is_empty() {
                wait(&[from.descriptor(), to.descriptor()]);
            }
        }
        came.pop_front()
    }
}

fn drain<P: Datagrams>(pair: &mut P, into: &mut VecDeque<(Vec<u8>, Arrival)>) {
    let mut octets = Vec::new();
    while let Some(arrival) = pair.receive(&mut octets) {
        into.push_back((octets.clone(), arrival));
    }
}

/// Until one of them is readable, or for a while; which of them are.
pub(crate) fn wait<const N: usize>(descriptors: &[BorrowedFd<'_>; N]) -> [bool; N] {
    let mut watched = descriptors.map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN));
    let a_while = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    // Interrupted: whoever waits looks, and waits again.
    let _ = poll(&mut watched, Some(&a_while));
    watched.map(|it| !it.revents().is_empty())
}
