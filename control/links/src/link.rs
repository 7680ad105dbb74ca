//! One configured link: its one or two IPs, and its lease.

use crate::host::Host;
use rpcrdma_config::link::{Ipv4, Link as Plan, Subnet};
use rpcrdma_dhcp::client::{Client, Settings};
use rpcrdma_dhcp::message::ClientIdentifier;
use rpcrdma_ipoib::gid::Guid;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::node::LinkId;
use rpcrdma_ipoib::trouble::Refusal;
use std::net::IpAddr;
use std::time::Instant;
use tracing::{info, warn};

/// A link.
pub(crate) struct Link {
    pub(crate) plan: Plan,
    /// Its port, by place.
    pub(crate) port: usize,
    /// Its IPs: at most one of each family.
    pub(crate) halves: Vec<IpOf>,
    /// The client for its IPv4 address.
    pub(crate) dhcp: Option<Client>,
}

/// One IP of a link.
pub(crate) struct IpOf {
    pub(crate) family: Family,
    /// What its port knows it by.
    pub(crate) id: LinkId,
    pub(crate) host: Host,
    pub(crate) up: bool,
    /// Why it is not: on Ethernet. On InfiniBand the node knows.
    pub(crate) error: Option<&'static str>,
    /// Why the last attempt to bring it up failed, and whether the log has that already.
    pub(crate) failed: Option<(Refusal, bool)>,
    /// The log has that its address is somebody else's.
    pub(crate) taken: bool,
}

impl IpOf {
    pub(crate) fn new(family: Family, id: LinkId) -> Self {
        Self {
            family,
            id,
            host: Host::default(),
            up: false,
            error: None,
            failed: None,
            taken: false,
        }
    }

    /// An attempt to bring it up has failed, for a reason that the log is to have: each once, however often it is met, until
    /// it is up. Of links that start together one may look for the broadcast group before another has created it, so that
    /// reason is said when it is met twice.
    pub(crate) fn is_to_be_said(&mut self, why: Refusal) -> bool {
        let before = self.failed.filter(|(before, _)| *before == why);
        let said = before.is_some_and(|(_, said)| said);
        let now = before.is_some() || why != Refusal::NoBroadcastGroup;
        self.failed = Some((why, said || now));
        now && !said
    }
}

impl Link {
    pub(crate) fn new(plan: Plan, port: usize) -> Self {
        Self {
            plan,
            port,
            halves: Vec::new(),
            dhcp: None,
        }
    }

    /// The IPs that it is to have.
    pub(crate) fn families(plan: &Plan) -> Vec<Family> {
        let v4 = (plan.ipv4 != Ipv4::Off).then_some(Family::V4);
        // On Ethernet the address is the operating system's, one of the two IPs.
        let v6 = (plan.ipv6 && plan.subnet != Subnet::Ethernet).then_some(Family::V6);
        v4.into_iter().chain(v6).collect()
    }

    /// The half of an address's family.
    pub(crate) fn half_of(&self, address: IpAddr) -> Option<&IpOf> {
        let family = family_of(address);
        self.halves.iter().find(|half| half.family == family)
    }

    /// The client for its IPv4 address, made when the port's GUID is known.
    pub(crate) fn lease(&mut self, guid: Guid, now: Instant) -> &mut Client {
        let p_key = self.plan.p_key;
        self.dhcp.get_or_insert_with(|| {
            let identifier = ClientIdentifier::new(guid.0, p_key);
            Client::new(identifier, Settings::default(), now)
        })
    }

    /// On Ethernet all of it is up or down with its port, and this is why it is down.
    pub(crate) fn stands(&mut self, trouble: Option<&'static str>) {
        for half in &mut self.halves {
            half.up = trouble.is_none();
            if std::mem::replace(&mut half.error, trouble) == trouble {
                continue;
            }
            let (name, family) = (&self.plan.name, half.family);
            match trouble {
                None => info!("link {name}: {family:?}: up"),
                Some(why) => warn!("link {name}: {family:?}: down: {why}"),
            }
        }
    }

    /// All addresses in use.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let hosts = self.halves.iter().map(|half| &half.host);
        hosts.flat_map(|host| host.addresses().iter().copied())
    }
}

pub(crate) const fn family_of(address: IpAddr) -> Family {
    match address {
        IpAddr::V4(_) => Family::V4,
        IpAddr::V6(_) => Family::V6,
    }
}
