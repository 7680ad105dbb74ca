//! The way to a neighbour: its hardware address, and the path to its port.

use crate::gid::Lid;
use crate::mad::{Path, Rate};
use crate::mtu::Mtu;
use crate::node::AddressVector;
use crate::packet::HardwareAddress;
use crate::qkey::QKey;

/// What a PathRecord says of the way to a port (RFC 4391 section 9.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Where packets go: the port's, or a router's.
    pub lid: Lid,
    /// Service level.
    pub sl: u8,
    /// The slowest link on the way.
    pub rate: Rate,
    /// The largest payload on the way.
    pub mtu: Mtu,
    /// Traffic class of the global route header.
    pub t_class: u8,
    /// Flow label of it.
    pub flow_label: u32,
    /// Hop limit of it: more than one where the path leaves the subnet.
    pub hop_limit: u8,
}

impl Route {
    /// The route of a path, from its beginning to its end.
    #[must_use]
    pub const fn of(path: &Path) -> Self {
        Self {
            lid: path.dlid,
            sl: path.sl,
            rate: path.rate,
            mtu: path.mtu,
            t_class: path.t_class,
            flow_label: path.flow_label,
            hop_limit: path.hop_limit,
        }
    }
}

/// All that is needed to send a datagram to a neighbour but the link's own queue key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// Its queue pair and its port.
    pub hardware: HardwareAddress,
    /// The path to its port.
    pub route: Route,
}

impl Way {
    /// The address vector, with the queue key that is the same on all of a link (RFC 4391 section 9.1.2).
    #[must_use]
    pub const fn vector(&self, q_key: QKey) -> AddressVector {
        AddressVector {
            lid: self.route.lid,
            gid: self.hardware.gid,
            qpn: self.hardware.qpn,
            q_key,
            sl: self.route.sl,
            t_class: self.route.t_class,
            flow_label: self.route.flow_label,
            hop_limit: self.route.hop_limit,
            rate: self.route.rate.code(),
        }
    }
}
