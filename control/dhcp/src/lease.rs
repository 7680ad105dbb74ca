//! A lease and its times (RFC 2131 section 4.4.5).

use ipnet::Ipv4Net;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// What a server gave, as far as it is of use: datagrams go to the link's own nodes, and how long they may be the broadcast group
/// says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The address, and how much of it names the network (option 1; 32 where there was none).
    pub address: Ipv4Net,
    /// Who gave it: the server identifier.
    pub server: Ipv4Addr,
    /// T1, T2 and the end; `None`: for ever.
    pub times: Option<Times>,
}

/// When a lease is to be renewed, to be asked for again of anybody, and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// T1.
    pub renew: Instant,
    /// T2.
    pub rebind: Instant,
    /// The end.
    pub end: Instant,
}

/// The lease time that means for ever.
pub const FOR_EVER: u32 = u32::MAX;

impl Times {
    /// Of a lease of so many seconds that was asked for at an instant. The server's T1 and T2 count where they are in order,
    /// else half and seven eighths are taken (RFC 2131 section 4.4.5).
    #[must_use]
    pub fn of(asked: Instant, seconds: u32, t1: Option<u32>, t2: Option<u32>) -> Option<Self> {
        if seconds == FOR_EVER {
            return None;
        }
        let lease = Duration::from_secs(seconds.into());
        let told = t1.zip(t2).filter(|&(t1, t2)| t1 < t2 && t2 < seconds);
        let (t1, t2) = match told {
            Some((t1, t2)) => (
                Duration::from_secs(t1.into()),
                Duration::from_secs(t2.into()),
            ),
            None => (lease / 2, lease * 7 / 8),
        };
        Some(Self {
            renew: asked + t1,
            rebind: asked + t2,
            end: asked + lease,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(lease: u32, t1: Option<u32>, t2: Option<u32>) -> Option<[u64; 3]> {
        let asked = Instant::now();
        Times::of(asked, lease, t1, t2)
            .map(|it| [it.renew, it.rebind, it.end].map(|at| (at - asked).as_secs()))
    }

    #[test]
    fn rfc2131_4_4_5_half_and_seven_eighths() {
        assert_eq!(seconds(3600, None, None), Some([1800, 3150, 3600]));
    }

    #[test]
    fn the_servers_times_count_in_order_only() {
        assert_eq!(seconds(3600, Some(60), Some(120)), Some([60, 120, 3600]));
        for (t1, t2) in [(120, 60), (60, 3600), (0, 0), (u32::MAX, u32::MAX)] {
            assert_eq!(seconds(3600, Some(t1), Some(t2)), Some([1800, 3150, 3600]));
        }
    }

    #[test]
    fn for_ever_has_no_times() {
        assert_eq!(seconds(FOR_EVER, Some(1), Some(2)), None);
        assert_eq!(seconds(0, None, None), Some([0, 0, 0]));
    }
}
