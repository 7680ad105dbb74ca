//! The ports there are, and whose they are.

use super::hub::Hub;
use crate::llp::Error;
use dpdk_sys::Eal;
use rpcrdma_ether::{Mac, Station};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a port is opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPlan {
    /// Its name in DPDK: `net_memif0`, or its PCI address.
    pub name: String,
    /// Its address, and the prefix of its neighbours': `10.9.0.1/24`.
    pub address: ipnet::IpNet,
    /// Who knows the way to everybody else.
    pub gateway: Option<IpAddr>,
    /// Octets of the longest IP packet.
    pub mtu: u16,
    /// Buffers for frames: 2^n - 1 wastes the least memory.
    pub frames: u32,
}

impl PortPlan {
    /// Octets of EAL's memory that its buffers take.
    #[must_use]
    pub fn pool_bytes(&self) -> u64 {
        dpdk_sys::pool_bytes(self.mtu, self.frames)
    }
}

/// A port that is open.
#[derive(Clone)]
pub struct EtherPort {
    hub: Arc<Mutex<Hub>>,
    station: Station,
    name: Arc<str>,
}

impl fmt::Debug for EtherPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtherPort")
            .field("name", &self.name)
            .field("station", &self.station)
            .finish_non_exhaustive()
    }
}

impl EtherPort {
    /// Opens a port.
    ///
    /// # Errors
    ///
    /// [`Error::Port`], in one line: there is none of this name, its driver refuses, or there can
    /// be no such station.
    pub fn open(eal: &'static Eal, plan: &PortPlan) -> Result<EtherPort, Error> {
        let name = &plan.name;
        let port = eal
            .port(name, plan.mtu, plan.frames)
            .map_err(|fault| Error::Port(format!("port {name}: {fault}")))?;
        let station = Station {
            mac: mac_of(port.mac()),
            address: plan.address,
            gateway: plan.gateway,
            mtu: plan.mtu,
        };
        let hub = Hub::new(port, station);
        let hub = hub.map_err(|unfit| Error::Port(format!("port {name}: {unfit}")))?;
        Ok(EtherPort {
            hub: Arc::new(Mutex::new(hub)),
            station,
            name: name.as_str().into(),
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its driver's name.
    #[must_use]
    pub fn driver(&self) -> String {
        self.wait().driver()
    }

    /// Who it is on its link.
    #[must_use]
    pub fn station(&self) -> &Station {
        &self.station
    }

    /// Somebody is at the other end of its cable. For control: it may keep the lcore's frames
    /// waiting for a moment.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.wait().is_up()
    }

    /// The hub, where it is free.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Hub>> {
        self.hub.try_lock().ok()
    }

    /// The hub, for what may wait: making and dropping endpoints, looking at counters.
    pub(super) fn wait(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A port's address; a random one that is nobody's (IEEE 802, locally administered) where its driver
/// gives it none, as net_ring does.
fn mac_of(given: [u8; 6]) -> Mac {
    if given != [0; 6] {
        return Mac(given);
    }
    let [a, b, c, d, e, ..] = RandomState::new().hash_one(given).to_le_bytes();
    Mac([2, a, b, c, d, e])
}

/// Ports, one for each lcore, in the order of EAL's workers.
#[derive(Clone, Debug)]
pub struct Ports(Arc<[EtherPort]>);

impl Ports {
    /// These; at least one.
    ///
    /// # Errors
    ///
    /// [`Error::Port`]: there is none.
    pub fn new(ports: Vec<EtherPort>) -> Result<Ports, Error> {
        if ports.is_empty() {
            return Err(Error::Port("there is no port".to_owned()));
        }
        Ok(Ports(ports.into()))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &EtherPort> {
        self.0.iter()
    }

    /// Somebody is at the other end of every cable.
    #[must_use]
    pub fn are_up(&self) -> bool {
        self.iter().all(EtherPort::is_up)
    }

    /// That of the lcore that asks; the first, for threads that are none of EAL's workers.
    pub(super) fn here(&self) -> Option<&EtherPort> {
        let worker = dpdk_sys::current().and_then(|lcore| lcore.checked_sub(1));
        let index = worker.map_or(0, |index| index as usize);
        self.0.get(index)
    }

    /// Whether somebody can be heard at an address; with port 0, whether anything can go from it.
    /// Everywhere of IPv6 is everywhere to those that hear.
    pub(super) fn has(&self, address: SocketAddr) -> bool {
        let ip = address.ip();
        let all = ip.is_ipv6() && address.port() != 0;
        let fits = |port: &EtherPort| {
            let own = port.station.ip();
            own == ip || (ip.is_unspecified() && (all || own.is_ipv4() == ip.is_ipv4()))
        };
        self.0.iter().any(fits)
    }
}
