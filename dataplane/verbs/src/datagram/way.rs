//! Address handles: ways to receivers, as a device wants to know them before it sends.
//!
//! Making one is a call of the kernel's on most devices, so they are kept. On Ethernet the kernel
//! puts the receiver's hardware address into it, which may be another one later: there a handle is
//! made anew after a while.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use crate::error::Fault;
use crate::object::{Device, note_destroyed};
use crate::port::Raw;
use rdma_core_sys as rdma;
use rpcrdma_fabric::datagram::{AddressVector, GidOctets, MULTICAST_QUEUE_PAIR, is_multicast};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The LIDs of multicast groups begin here.
const MULTICAST_LIDS: u16 = 0xC000;

/// The part of an address vector that a handle is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Way {
    lid: u16,
    gid: Option<GidOctets>,
    service_level: u8,
    traffic_class: u8,
    flow_label: u32,
    hop_limit: u8,
    rate: u8,
}

impl Way {
    /// The way that an address vector describes; `None` for one that cannot be.
    pub(super) fn of(to: &AddressVector, ethernet: bool) -> Option<Way> {
        let fits = to.service_level < 16
            && to.flow_label < 1 << 20
            && to.queue_pair <= MULTICAST_QUEUE_PAIR;
        let group = to.gid.is_some_and(is_multicast);
        let to_all = to.queue_pair == MULTICAST_QUEUE_PAIR;
        let placed = if ethernet {
            to.gid.is_some()
        } else if to_all {
            to.lid >= MULTICAST_LIDS && to.lid != u16::MAX
        } else {
            (1..MULTICAST_LIDS).contains(&to.lid)
        };
        (fits && placed && group == to_all).then_some(Way {
            lid: if ethernet { 0 } else { to.lid },
            gid: to.gid,
            service_level: to.service_level,
            traffic_class: to.traffic_class,
            flow_label: to.flow_label,
            hop_limit: to.hop_limit,
            rate: to.rate,
        })
    }

    /// Its receiver has to be asked for its hardware address, where nobody knows it: the kernel
    /// waits for that.
    pub(super) fn may_wait(&self, ethernet: bool) -> bool {
        ethernet && !self.gid.is_some_and(is_multicast)
    }
}

/// Where ways begin: a GID of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) link: u8,
    pub(super) gid_index: u8,
}

/// A handle of the device's.
#[derive(Debug)]
pub(super) struct AddressHandle {
    raw: Raw<rdma::ibv_ah>,
    device: Arc<Device>,
}

impl AddressHandle {
    /// May wait for a receiver to answer: [`Way::may_wait`].
    pub(super) fn new(
        device: &Arc<Device>,
        origin: Origin,
        way: &Way,
    ) -> Result<AddressHandle, Fault> {
        let mut attributes = attributes(origin, way);
        let verbs = &device.library().verbs;
        // SAFETY: the domain lives as long as the device, and the attributes through the call.
        let raw = unsafe { verbs.ibv_create_ah(device.domain().0, &raw mut attributes) };
        if raw.is_null() {
            return Err(Fault::last("ibv_create_ah"));
        }
        Ok(AddressHandle {
            raw: Raw(raw),
            device: Arc::clone(device),
        })
    }

    /// For posting, as long as this lives.
    pub(super) fn raw(&self) -> *mut rdma::ibv_ah {
        self.raw.0
    }
}

impl Drop for AddressHandle {
    fn drop(&mut self) {
        let verbs = &self.device.library().verbs;
        // SAFETY: made here, destroyed once, and after what was sent by it, which keeps this.
        let returned = unsafe { verbs.ibv_destroy_ah(self.raw.0) };
        note_destroyed("ibv_destroy_ah", returned);
    }
}

fn attributes(origin: Origin, way: &Way) -> rdma::ibv_ah_attr {
    let mut attributes = rdma::ibv_ah_attr {
        dlid: way.lid,
        sl: way.service_level,
        static_rate: way.rate,
        port_num: origin.link,
        is_global: u8::from(way.gid.is_some()),
        ..rdma::ibv_ah_attr::default()
    };
    if let Some(gid) = way.gid {
        attributes.grh = rdma::ibv_global_route {
            dgid: rdma::ibv_gid { raw: gid },
            flow_label: way.flow_label,
            sgid_index: origin.gid_index,
            hop_limit: way.hop_limit,
            traffic_class: way.traffic_class,
        };
    }
    attributes
}

/// Handles that are kept, the least used going first when there are too many.
#[derive(Debug)]
pub(super) struct Kept<T> {
    handles: HashMap<Way, Entry<T>>,
    most: usize,
    /// How long a handle is good.
    age: Option<Duration>,
    uses: u64,
}

#[derive(Debug)]
struct Entry<T> {
    handle: Arc<T>,
    made: Instant,
    used: u64,
}

impl<T> Kept<T> {
    pub(super) fn new(most: usize, age: Option<Duration>) -> Kept<T> {
        Kept {
            handles: HashMap::new(),
            most,
            age,
            uses: 0,
        }
    }

    /// The handle of a way, if it is kept and good.
    pub(super) fn find(&mut self, way: &Way, now: Instant) -> Option<Arc<T>> {
        let entry = self.handles.get_mut(way)?;
        if self
            .age
            .is_some_and(|age| now.duration_since(entry.made) > age)
        {
            self.handles.remove(way);
            return None;
        }
        self.uses += 1;
        entry.used = self.uses;
        Some(Arc::clone(&entry.handle))
    }

    /// Keeps one.
    pub(super) fn keep(&mut self, way: Way, handle: T, now: Instant) -> Arc<T> {
        if self.handles.len() >= self.most && !self.handles.contains_key(&way) {
            let least = self.handles.iter().min_by_key(|(_, entry)| entry.used);
            let least = least.map(|(way, _)| *way);
            least.and_then(|way| self.handles.remove(&way));
        }
        self.uses += 1;
        let handle = Arc::new(handle);
        let entry = Entry {
            handle: Arc::clone(&handle),
            made: now,
            used: self.uses,
        };
        self.handles.insert(way, entry);
        handle
    }

    /// Keeps none any more.
    pub(super) fn clear(&mut self) {
        self.handles.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_fabric::datagram::Group;
    use std::net::Ipv6Addr;

    fn gid(text: &str) -> GidOctets {
        let ip: Ipv6Addr = text.parse().expect(text);
        ip.octets()
    }

    fn group() -> AddressVector {
        let mgid = gid("ff12:401b:ffff::1");
        AddressVector::of_group(Group { mgid, mlid: 0xC001 }, 0x0b1b)
    }

    fn way(n: u16) -> Way {
        let to = AddressVector {
            lid: 0xC000 + n,
            ..group()
        };
        Way::of(&to, false).expect("a way")
    }

    #[test]
    fn an_address_that_cannot_be_has_no_way() {
        let one = AddressVector {
            gid: None,
            lid: 7,
            queue_pair: 18,
            ..group()
        };
        assert!(Way::of(&one, false).is_some(), "on the subnet");
        assert!(Way::of(&one, true).is_none(), "no GID on Ethernet");
        assert!(Way::of(&group(), false).is_some());
        for wrong in [
            AddressVector {
                gid: None,
                ..group()
            },
            AddressVector { lid: 7, ..group() },
            AddressVector {
                lid: 0xFFFF,
                ..group()
            },
            AddressVector {
                queue_pair: 18,
                ..group()
            },
            AddressVector {
                service_level: 16,
                ..group()
            },
            AddressVector {
                flow_label: 1 << 20,
                ..group()
            },
            AddressVector { lid: 0, ..one },
            AddressVector {
                queue_pair: MULTICAST_QUEUE_PAIR,
                ..one
            },
            AddressVector {
                queue_pair: 1 << 24,
                ..one
            },
        ] {
            assert!(Way::of(&wrong, false).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn only_one_receiver_on_ethernet_is_waited_for() {
        let one = AddressVector {
            gid: Some(gid("::ffff:192.0.2.1")),
            lid: 7,
            queue_pair: 18,
            ..group()
        };
        let waits =
            |to: &AddressVector, ethernet| Way::of(to, ethernet).map(|way| way.may_wait(ethernet));
        assert_eq!(waits(&one, true), Some(true));
        assert_eq!(waits(&one, false), Some(false));
        assert_eq!(waits(&group(), true), Some(false));
    }

    #[test]
    fn attributes_are_those_of_the_way() {
        let to = AddressVector {
            traffic_class: 3,
            flow_label: 0x12345,
            hop_limit: 9,
            rate: 7,
            service_level: 2,
            ..group()
        };
        let origin = Origin {
            link: 2,
            gid_index: 5,
        };
        let made = attributes(origin, &Way::of(&to, false).expect("a way"));
        assert_eq!((made.dlid, made.sl, made.static_rate), (0xC001, 2, 7));
        assert_eq!((made.port_num, made.is_global), (2, 1));
        let grh = made.grh;
        // SAFETY: every form of this union may be read as octets.
        assert_eq!(Some(unsafe { grh.dgid.raw }), to.gid);
        assert_eq!((grh.flow_label, grh.sgid_index), (0x12345, 5));
        assert_eq!((grh.hop_limit, grh.traffic_class), (9, 3));
    }

    #[test]
    fn the_least_used_goes_first() {
        let now = Instant::now();
        let mut kept = Kept::new(2, None);
        kept.keep(way(1), 1, now);
        kept.keep(way(2), 2, now);
        assert_eq!(kept.find(&way(1), now).as_deref(), Some(&1));
        kept.keep(way(3), 3, now);
        assert_eq!(kept.find(&way(2), now), None);
        assert_eq!(kept.find(&way(1), now).as_deref(), Some(&1));
        assert_eq!(kept.find(&way(3), now).as_deref(), Some(&3));
        kept.keep(way(3), 4, now);
        assert_eq!(
            kept.find(&way(1), now).as_deref(),
            Some(&1),
            "there was room"
        );
        kept.clear();
        assert_eq!(kept.find(&way(1), now), None);
    }

    #[test]
    fn a_handle_is_good_for_its_age() {
        let made = Instant::now();
        let mut kept = Kept::new(2, Some(Duration::from_secs(30)));
        kept.keep(way(1), 1, made);
        let after = |seconds| made + Duration::from_secs(seconds);
        assert!(kept.find(&way(1), after(30)).is_some());
        assert!(kept.find(&way(1), after(31)).is_none());
        assert!(
            kept.find(&way(1), after(1)).is_none(),
            "it is not kept any more"
        );
    }
}
