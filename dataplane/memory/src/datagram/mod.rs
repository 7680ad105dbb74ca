//! Unreliable datagrams between the nodes of one process.
//!
//! Each [`MemoryFabric`] of a family of clones is a node with one link, [`LinkSettings`] of its own
//! and a LID; together they are one subnet. Its rules are those of a real one, as far as a queue
//! pair can tell (IBA 9.6, 10.9, 11.4): the length is checked at the sender, P_Key and Q_Key at each
//! receiver, and a datagram that is refused or finds a full queue is lost and counted there. What
//! is sent to a group reaches every queue pair that is attached to this very MGID and MLID; the
//! membership that the subnet's switches would ask for is the business of whoever attaches.
//!
//! The sender's thread delivers, under one lock: order is that of the calls, and nothing is lost
//! that is not counted.

mod mailbox;
mod pair;
mod settings;
mod subnet;
#[cfg(test)]
mod tests;

pub use pair::MemoryDatagrams;
pub use settings::LinkSettings;

pub(crate) use subnet::{Node, Subnet};

use crate::fabric::{DEVICE, MemoryFabric};
use rpcrdma_fabric::datagram::{
    DatagramFabric, Failure, FailureKind, Link, LinkChange, LinkName, PairWanted,
};

impl MemoryFabric {
    /// Gives this node's link other settings. What changes by that is told as [`LinkChange`]s.
    pub fn set_link(&self, settings: LinkSettings) {
        self.subnet().set_link(self.node(), settings);
    }

    /// Gives this node another LID, as a subnet manager may.
    pub fn move_link(&self) {
        self.subnet().change_lid(self.node());
    }

    /// Tells this node of a change that it would not notice otherwise: that the subnet manager asks
    /// for everything to be registered again, or has moved.
    pub fn tell_link(&self, change: LinkChange) {
        self.subnet().tell(self.node(), change);
    }
}

impl DatagramFabric for MemoryFabric {
    type Pair = MemoryDatagrams;

    fn link(&self, device: Option<&str>, number: u8) -> Result<Link, Failure> {
        check(device, number)?;
        Ok(self.subnet().link(self.node()))
    }

    fn open_pair(&mut self, wanted: &PairWanted) -> Result<MemoryDatagrams, Failure> {
        check(wanted.device.as_deref(), wanted.link)?;
        MemoryDatagrams::open(self.shared_subnet(), self.node(), wanted)
    }

    fn link_change(&mut self) -> Option<(LinkName, LinkChange)> {
        let change = self.subnet().next_change(self.node())?;
        let name = LinkName {
            device: DEVICE.to_owned(),
            number: 1,
        };
        Some((name, change))
    }
}

fn check(device: Option<&str>, number: u8) -> Result<(), Failure> {
    match device {
        Some(name) if name != DEVICE => Err(FailureKind::Absent.because(format!(
            "no device {name:?}: the memory fabric's is called {DEVICE:?}"
        ))),
        _ if number != 1 => Err(FailureKind::Absent.because(format!(
            "no link {number}: the memory fabric's device has one"
        ))),
        _ => Ok(()),
    }
}
