//! A link that is made of values: stations, who hear each other's frames, and an SA that knows some paths.

use rpcrdma_ipoib::gid::{Gid, Guid, Lid};
use rpcrdma_ipoib::mad::Rate;
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::neighbour::{Bounds, Neighbours, Output, Route, Station};
use rpcrdma_ipoib::packet::{HardwareAddress, Packet, Udp, emit_udp};
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::time::Moment;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where the `n`th station is: its own port, and a queue pair of its number.
pub(crate) fn hardware(n: u8) -> HardwareAddress {
    let gid = Gid::of_port(0xFE80 << 48, Guid(0x10_0000 + u64::from(n)));
    HardwareAddress::datagrams(0x100 + u32::from(n), gid)
}

/// A path to a LID.
pub(crate) fn route(lid: u16) -> Route {
    Route {
        lid: Lid(lid),
        sl: 0,
        rate: Rate::GBPS_10,
        mtu: Mtu::M2048,
        t_class: 0,
        flow_label: 0,
        hop_limit: 0,
    }
}

/// The `n`th station's address.
pub(crate) fn address(v6: bool, n: u8) -> IpAddr {
    match v6 {
        true => std::net::Ipv6Addr::new(0xFE80, 0, 0, 0, 0x0202, 0xC903, 0x10, n.into()).into(),
        false => Ipv4Addr::new(10, 9, 0, n).into(),
    }
}

pub(crate) fn station(v6: bool, n: u8) -> Station {
    Station {
        hardware: hardware(n),
        ip: address(v6, n),
        p_key: PKey(0x8006),
    }
}

pub(crate) fn neighbours(v6: bool, n: u8) -> Neighbours {
    Neighbours::new(station(v6, n), Bounds::default())
}

/// A frame with a datagram between two stations.
pub(crate) fn datagram(v6: bool, from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    let socket = |n| SocketAddr::new(address(v6, n), 111);
    let mut frame = Vec::new();
    let sent = Udp {
        from: socket(from),
        to: socket(to),
        hop_limit: 64,
        payload,
    };
    assert!(emit_udp(&mut frame, &sent));
    frame
}

/// Everything that is to be done by now.
pub(crate) fn drain(neighbours: &mut Neighbours) -> Vec<Output> {
    std::iter::from_fn(|| neighbours.take()).collect()
}

/// Something that was seen on the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The station asked or told everybody.
    Everybody(u8),
    /// The station sent to one, at this LID: ARP or discovery.
    One(u8, u16),
    /// The station's datagram came to another.
    Datagram(u8, u8),
    /// The station asked the SA for the path to a GUID's port.
    Path(u8, u64),
    /// The station was told of another with its address.
    Conflict(u8),
    /// A frame of the station came to nobody.
    Nowhere(u8),
}

/// Stations on a link.
pub(crate) struct Link {
    pub(crate) stations: Vec<(u8, HardwareAddress, Neighbours)>,
    /// The ports that the SA knows no path to.
    pub(crate) unreachable: Vec<Gid>,
    pub(crate) now: Moment,
    /// Added to every LID: what a subnet manager that starts anew does.
    pub(crate) lid_base: u16,
}

impl Link {
    pub(crate) fn new(v6: bool, stations: &[u8]) -> Self {
        let stations = stations
            .iter()
            .map(|&n| (n, hardware(n), neighbours(v6, n)));
        Self {
            stations: stations.collect(),
            unreachable: Vec::new(),
            now: Moment(0),
            lid_base: 0,
        }
    }

    pub(crate) fn station(&mut self, n: u8) -> &mut Neighbours {
        let mut stations = self.stations.iter_mut();
        let (_, _, station) = stations.find(|(other, ..)| *other == n).expect("a station");
        station
    }

    /// Carries frames until nobody has anything to do; what was seen.
    pub(crate) fn settle(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        for turn in 0.. {
            assert!(turn < 1000, "they never come to rest: {seen:?}");
            let mut done = Vec::new();
            for (n, at, station) in &mut self.stations {
                done.extend(drain(station).into_iter().map(|output| (*n, *at, output)));
            }
            if done.is_empty() {
                break;
            }
            for (n, at, output) in done {
                seen.push(self.carry(n, at, output));
            }
        }
        seen
    }

    /// Lets time pass, and does what is due.
    pub(crate) fn wait(&mut self, ms: u64) -> Vec<Seen> {
        let until = self.now.after(ms);
        let mut seen = self.settle();
        loop {
            let wake = self
                .stations
                .iter()
                .filter_map(|(_, _, station)| station.wake())
                .min();
            let Some(wake) = wake.filter(|wake| *wake <= until) else {
                break;
            };
            self.now = self.now.max(wake);
            for (_, _, station) in &mut self.stations {
                station.pass(self.now);
            }
            seen.extend(self.settle());
        }
        self.now = until;
        seen
    }

    fn carry(&mut self, n: u8, at: HardwareAddress, output: Output) -> Seen {
        let now = self.now;
        match output {
            Output::Everybody { frame, .. } => {
                // The sender hears itself: so does a queue pair that is attached to the group.
                for (_, _, station) in &mut self.stations {
                    station.heard(now, &Packet::parse(&frame).unwrap(), Some(at));
                }
                Seen::Everybody(n)
            }
            Output::One { way, frame } => {
                let lid_base = self.lid_base;
                let mut stations = self.stations.iter_mut();
                let to = stations.find(|(m, it, _)| {
                    it.is_same(&way.hardware) && way.route.lid.0 == lid_base + u16::from(*m)
                });
                let Some((m, _, station)) = to else {
                    return Seen::Nowhere(n);
                };
                let packet = Packet::parse(&frame).unwrap();
                if matches!(packet, Packet::Udp(_)) {
                    return Seen::Datagram(n, *m);
                }
                station.heard(now, &packet, Some(at));
                Seen::One(n, way.route.lid.0)
            }
            Output::Path(asked) => {
                let (gid, own) = (asked.dgid.unwrap(), asked.sgid.unwrap());
                assert_eq!(own, at.gid);
                let end = self.stations.iter().find(|(_, it, _)| it.gid == gid);
                let end = end.filter(|_| !self.unreachable.contains(&gid));
                let found = end.map(|(m, ..)| route(self.lid_base + u16::from(*m)));
                self.station(n).routed(now, gid, found);
                Seen::Path(n, gid.guid().0)
            }
            Output::Conflict { .. } => Seen::Conflict(n),
        }
    }
}
