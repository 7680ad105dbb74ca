//! Frames between the nodes, and the addresses that they are about: two nodes are given the same one.
//!
//! Frames are neither lost nor late: a question that nobody hears finds no address. But a queue pair hears a group only while it
//! is attached, and its port up, and both come and go.

use crate::world::{NODES, Post, World};
use rpcrdma_ipoib::address::Phase;
use rpcrdma_ipoib::node::{AddressNews, AddressVector, LinkId, Origin};
use rpcrdma_ipoib::packet::link_local;
use std::net::{IpAddr, Ipv4Addr};

/// What both of the [`TWINS`] are to have.
pub(crate) const TWIN: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
/// The nodes that are given the same address of IPv4.
pub(crate) const TWINS: [usize; 2] = [0, 1];
/// The link of IPv4, and that of IPv6.
pub(crate) const V4: LinkId = LinkId(0);
pub(crate) const V6: LinkId = LinkId(1);
/// Who has no twin.
pub(crate) const SINGLE: usize = NODES - 1;
/// A frame is on its way no longer than that.
const WAY_MS: u64 = 5;

impl World {
    /// Gives every node its addresses.
    pub(crate) fn number(&mut self) {
        for at in 0..NODES {
            let v4 = match TWINS.contains(&at) {
                true => TWIN,
                false => Ipv4Addr::new(10, 0, 0, 3).into(),
            };
            let seat = &mut self.seats[at];
            let v6 = link_local(seat.gid.guid()).into();
            for (link, address) in [(V4, v4), (V6, v6)] {
                let set = seat.node.set_address(self.now, link, Some(address));
                set.expect("an address");
            }
        }
    }

    /// Takes a frame to every queue pair that hears the group, the sender's own among them.
    pub(crate) fn carry(&mut self, from: usize, link: LinkId, to: &AddressVector, bytes: &[u8]) {
        let sender = &self.seats[from];
        if !sender.up {
            return;
        }
        let origin = Origin {
            lid: sender.lid,
            gid: Some(sender.gid),
            group: Some(to.gid),
            qpn: 0x48 + u32::from(link.0),
        };
        for at in 0..NODES {
            let way = self.chance.below(WAY_MS);
            self.post(way, Post::Frame(at, link, origin, bytes.to_vec()));
        }
    }

    pub(crate) fn arrive(&mut self, at: usize, link: LinkId, from: &Origin, bytes: &[u8]) {
        let now = self.now;
        let seat = &mut self.seats[at];
        let mut attached = seat.device.attached.iter();
        let hears = attached.any(|it| (it.link, Some(it.mgid)) == (link, from.group));
        if seat.up && hears {
            let _ = seat.node.frame_came(now, link, from, bytes);
        }
    }

    /// Nobody is ever told that his address is somebody else's who has no twin.
    pub(crate) fn watch_news(&self, at: usize, ip: IpAddr, news: AddressNews) {
        let taken = matches!(news, AddressNews::Taken { .. });
        let twin = TWINS.contains(&at) && ip == TWIN;
        assert!(twin || !taken, "node {at}: {ip}: {news:?}");
    }

    pub(crate) fn phase(&self, at: usize, link: LinkId) -> Phase {
        let link = self.seats[at].node.link_status(link).expect("a link");
        link.address.expect("an address").1
    }

    /// A question from a node's address: whoever uses it too hears it.
    pub(crate) fn ask_around(&mut self, at: usize) {
        let nobody = Ipv4Addr::new(10, 0, 0, 200).into();
        let sent = self.seats[at].node.send(self.now, V4, nobody, vec![0; 64]);
        sent.expect("a host");
        self.drain(at);
    }
}
