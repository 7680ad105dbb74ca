//! One UD queue pair of a node.

use super::mailbox::Mailbox;
use super::subnet::{Entry, Node, Subnet};
use crate::fabric::DEVICE;
use rpcrdma_fabric::datagram::{
    AddressVector, Arrival, DatagramCounts, Datagrams, Failure, FailureKind, Group, PairFacts,
    PairWanted, Unsent,
};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most datagrams that may wait for a pair.
const RECEIVES_MAX: u32 = 65_536;

/// A UD queue pair of the memory fabric. It sends at once, so it is never
/// [`Busy`](Unsent::Busy). Its node being dropped, it is [`Gone`](Unsent::Gone).
#[derive(Debug)]
pub struct MemoryDatagrams {
    subnet: Arc<Mutex<Subnet>>,
    mailbox: Arc<Mailbox>,
    facts: PairFacts,
    attached: usize,
}

impl MemoryDatagrams {
    pub(super) fn open(
        subnet: &Arc<Mutex<Subnet>>,
        node: Node,
        wanted: &PairWanted,
    ) -> Result<MemoryDatagrams, Failure> {
        if wanted.gid_index.is_some_and(|index| index != 0) {
            return Err(FailureKind::Absent.because("the memory fabric's links have one GID"));
        }
        let mailbox = Mailbox::new(wanted.receives.clamp(1, RECEIVES_MAX));
        let mailbox = Arc::new(mailbox.map_err(|error| {
            FailureKind::Exhausted.because(format!("no descriptor for a queue pair: {error}"))
        })?);
        let entry = Entry {
            node,
            p_key: wanted.p_key,
            q_key: wanted.q_key,
            mailbox: Arc::clone(&mailbox),
        };
        let mut books = lock(subnet);
        let link = books.link(node);
        let queue_pair = books.add_pair(entry)?;
        drop(books);
        Ok(MemoryDatagrams {
            subnet: Arc::clone(subnet),
            mailbox,
            facts: PairFacts {
                device: DEVICE.to_owned(),
                link: 1,
                queue_pair,
                p_key: wanted.p_key,
                q_key: wanted.q_key,
                gid: link.gids.first().copied().unwrap_or_default(),
                payload_bytes: link.mtu,
            },
            attached: 0,
        })
    }

    fn subnet(&self) -> MutexGuard<'_, Subnet> {
        lock(&self.subnet)
    }
}

pub(super) fn lock(subnet: &Mutex<Subnet>) -> MutexGuard<'_, Subnet> {
    subnet.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Datagrams for MemoryDatagrams {
    fn facts(&self) -> &PairFacts {
        &self.facts
    }

    fn attach(&mut self, group: Group) -> Result<(), Failure> {
        let new = self.subnet().attach(self.facts.queue_pair, group)?;
        self.attached += usize::from(new);
        Ok(())
    }

    fn detach(&mut self, group: Group) -> Result<(), Failure> {
        self.subnet().detach(self.facts.queue_pair, group)?;
        self.attached -= 1;
        Ok(())
    }

    fn attached(&self) -> usize {
        self.attached
    }

    fn send(&mut self, octets: &[u8], to: &AddressVector) -> Result<(), Unsent> {
        let sent = self.subnet().send(self.facts.queue_pair, octets, to);
        self.mailbox.count(|counts| match sent {
            Ok(()) => {
                counts.sent += 1;
                counts.sent_octets += octets.len() as u64;
            }
            Err(_) => counts.unsent += 1,
        });
        sent
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Arrival> {
        let (arrival, octets) = self.mailbox.take()?;
        into.clear();
        into.extend_from_slice(&octets);
        Some(arrival)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.mailbox.as_fd()
    }

    fn is_gone(&self) -> bool {
        !self.subnet().has_node_of(self.facts.queue_pair)
    }

    fn counts(&self) -> DatagramCounts {
        self.mailbox.counts()
    }
}

impl Drop for MemoryDatagrams {
    fn drop(&mut self) {
        self.subnet().remove_pair(self.facts.queue_pair);
    }
}
