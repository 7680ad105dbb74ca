//! A device as it has to be used: what is attached is not attached again, and nothing is done with a queue pair that is not
//! there.

use rpcrdma_ipoib::gid::Lid;
use rpcrdma_ipoib::mad::{AttributeId, Mad, McMemberTemplate, Method, TABLE_BYTES, Tid};
use rpcrdma_ipoib::node::{
    AddressVector, Attachment, GroupStatus, LinkId, MULTICAST_QPN, Node, Opening,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(crate) struct Device {
    queues: BTreeMap<LinkId, Opening>,
    /// Leaves that were on their way.
    said: BTreeSet<Tid>,
    pub(crate) attached: BTreeSet<Attachment>,
}

impl Device {
    pub(crate) fn open(&mut self, opening: &Opening, refuse: bool) -> Result<u32, i32> {
        assert!(!self.queues.contains_key(&opening.link), "two queue pairs");
        if refuse {
            return Err(12);
        }
        self.queues.insert(opening.link, *opening);
        Ok(0x48 + u32::from(opening.link.0))
    }

    pub(crate) fn close(&mut self, link: LinkId) {
        assert!(self.queues.remove(&link).is_some(), "no queue pair");
        self.attached.retain(|it| it.link != link);
    }

    pub(crate) fn attach(&mut self, to: Attachment, refuse: bool) -> Result<(), i32> {
        assert!(self.queues.contains_key(&to.link), "no queue pair");
        let group = |it: &Attachment| (it.link, it.mgid) == (to.link, to.mgid);
        assert!(!self.attached.iter().any(group), "attached twice: {to:?}");
        assert!(to.mlid.is_multicast() && to.mgid.is_multicast());
        if refuse {
            return Err(12);
        }
        self.attached.insert(to);
        Ok(())
    }

    pub(crate) fn detach(&mut self, from: Attachment) -> Result<(), i32> {
        assert!(self.attached.remove(&from), "not attached: {from:?}");
        Ok(())
    }

    /// The join comes before the attachment.
    pub(crate) fn check_member(&self, node: &Node, to: &Attachment) {
        let of = |it: &GroupStatus| (it.link, it.mgid) == (to.link, to.mgid);
        let group = node.groups().find(of).expect("a group that is known");
        assert!(group.held.receives(), "attached before joined: {group:?}");
    }

    /// The detachment comes before the leave: of who is to receive no more.
    pub(crate) fn watch(&mut self, node: &Node, bytes: &[u8]) {
        let mad = Mad::parse(bytes, TABLE_BYTES).expect("a datagram");
        if (mad.method, mad.attribute) != (Method::Delete, AttributeId::MC_MEMBER_RECORD) {
            return;
        }
        // what was decided is said again later, whatever is wanted by then
        if !self.said.insert(mad.tid) {
            return;
        }
        let asked: McMemberTemplate = mad.template().expect("a leave");
        let mgid = asked.mgid.expect("a group");
        let attached = self.attached.iter().filter(|it| it.mgid == mgid);
        for it in attached {
            let of = |group: &GroupStatus| (group.link, group.mgid) == (it.link, it.mgid);
            let group = node.groups().find(of).expect("a group that is known");
            let link = node.link_status(it.link).expect("a link");
            let stays = group.held.receives()
                || group.addresses > 0
                || group.routed
                || link.broadcast == Some(mgid);
            assert!(stays, "left before detached: {group:?}");
        }
    }

    /// A frame goes to a group, by a queue pair with the group's Q_Key.
    pub(crate) fn send(&self, link: LinkId, to: &AddressVector) {
        let queue = self.queues.get(&link).expect("a queue pair");
        assert_eq!(to.q_key, queue.q_key);
        assert_eq!(to.qpn, MULTICAST_QPN);
        assert!(to.gid.is_multicast() && to.lid.is_multicast() && to.lid != Lid(0));
    }
}
