//! The appliance that is asked: which of its services are meant, and what it says.

use crate::rate::Rate;
use crate::rpcbind::{self, Asked, Query, Reject, Wanted};
use rpcrdma_listed::Tally;
use rpcrdma_unicast::is_reachable;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

/// One listener and what it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Where it listens. An unspecified address (`0.0.0.0`, `::`) is told as those of the link that was asked, where it is
    /// reached there; one that another host does not reach is not told.
    pub listen: SocketAddr,
    /// RPC programs that it serves, by number.
    pub programs: Programs,
    /// What is behind it can be reached. Otherwise nobody is sent there.
    pub reachable: bool,
}

/// Programs of a [`Service`]. Versions are not known: what is behind a front knows its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Programs {
    /// These.
    These(Vec<u32>),
    /// Any but these, which have backends of their own: those of a backend for `"others"`.
    AllBut(Vec<u32>),
}

impl Programs {
    fn has(&self, program: u32) -> bool {
        match self {
            Self::These(these) => these.contains(&program),
            Self::AllBut(these) => !these.contains(&program),
        }
    }
}

/// What came of the datagrams that were asked of this appliance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerCounts {
    /// Answered.
    pub answered: u64,
    /// A service was asked for that is not here, or where nobody else gets to: silence.
    pub not_served: u64,
    /// A service was asked for that is here, and what is behind it cannot be reached: silence.
    pub unreachable: u64,
    /// Beyond the rate: silence.
    pub over_rate: u64,
    /// This appliance is about to end, and takes no connections any more: silence.
    pub closing: u64,
    /// From a source that is not allowed: silence.
    pub not_allowed: u64,
    /// No call that is answered.
    pub rejected: Tally<Reject>,
}

/// Answers for the services of one link.
pub struct Answerer {
    services: Vec<Service>,
    rate: Rate,
    closing: bool,
    counts: AnswerCounts,
}

impl Answerer {
    /// For these services, answers limited in number for each second (0: not).
    #[must_use]
    pub fn new(services: Vec<Service>, per_second: u32) -> Self {
        Self {
            services,
            rate: Rate::per_second(per_second),
            closing: false,
            counts: AnswerCounts::default(),
        }
    }

    /// What came of all so far.
    #[must_use]
    pub const fn counts(&self) -> &AnswerCounts {
        &self.counts
    }

    /// What is behind a service, by its place among them, can be reached from now on, or not any more.
    pub fn set_reachable(&mut self, service: usize, reachable: bool) {
        if let Some(service) = self.services.get_mut(service) {
            service.reachable = reachable;
        }
    }

    /// Answers nobody from now on.
    pub const fn close(&mut self) {
        self.closing = true;
    }

    /// The reply to a datagram, to be sent where it came from; `None`: silence. `allowed`: the source filter lets it
    /// pass; `link`: the addresses on the link at which who listens at all addresses is reached. There are none where the link's
    /// are no addresses of the operating system.
    pub fn answer(
        &mut self,
        datagram: &[u8],
        allowed: bool,
        link: &[IpAddr],
        now: Instant,
    ) -> Option<Vec<u8>> {
        if !allowed {
            self.counts.not_allowed += 1;
            return None;
        }
        let query = match Query::parse(datagram) {
            Ok(query) => query,
            Err(reject) => {
                self.counts.rejected.add(reject);
                return None;
            }
        };
        if self.closing {
            self.counts.closing += 1;
            return None;
        }
        let Some(reply) = self.reply(&query, link) else {
            self.silent(&query);
            return None;
        };
        if !self.rate.take(now) {
            self.counts.over_rate += 1;
            return None;
        }
        self.counts.answered += 1;
        Some(reply)
    }

    /// Counts why a query is not answered.
    fn silent(&mut self, query: &Query<'_>) {
        let away = |wanted: Wanted<'_>| {
            let has = |service: &Service| service.programs.has(wanted.program);
            self.services.iter().any(|it| has(it) && !it.reachable)
        };
        match query.asked.wanted().is_some_and(away) {
            true => self.counts.unreachable += 1,
            false => self.counts.not_served += 1,
        }
    }

    fn reply(&self, query: &Query<'_>, link: &[IpAddr]) -> Option<Vec<u8>> {
        match query.asked {
            Asked::Null => Some(rpcbind::emit_null(query.xid)),
            Asked::Address(wanted) | Asked::VersionAddress(wanted) => {
                let by_netid =
                    |place: &SocketAddr| crate::universal::netid(*place).as_bytes() == wanted.netid;
                let place = self.places(wanted, link).find(by_netid)?;
                Some(rpcbind::emit_address(query.xid, place))
            }
            Asked::AddressList(wanted) => {
                let places: Vec<_> = self.places(wanted, link).collect();
                (!places.is_empty()).then(|| rpcbind::emit_address_list(query.xid, &places))
            }
        }
    }

    /// All places of a program that can be reached.
    fn places(&self, wanted: Wanted<'_>, link: &[IpAddr]) -> impl Iterator<Item = SocketAddr> {
        self.services
            .iter()
            .filter(move |service| service.reachable && service.programs.has(wanted.program))
            .flat_map(move |service| places_of(service.listen, link))
    }
}

/// A listener's addresses, its own, or those of the link that it listens at among all: those that another host reaches.
fn places_of(listen: SocketAddr, link: &[IpAddr]) -> Vec<SocketAddr> {
    let mut places = match listen.ip().is_unspecified() {
        false => vec![listen],
        // `::` takes IPv4 as well.
        true => (link.iter())
            .filter(|ip| listen.is_ipv6() || ip.is_ipv4())
            .map(|&ip| SocketAddr::new(ip, listen.port()))
            .collect(),
    };
    places.retain(|&place| is_reachable(place));
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_wire::Xid;

    const NFS: u32 = 100_003;
    const MOUNT: u32 = 100_005;

    fn link() -> [IpAddr; 2] {
        ["10.1.0.5", "2001:db8::5"].map(|text| text.parse().unwrap())
    }

    fn answerer(listen: &str, per_second: u32) -> Answerer {
        let service = Service {
            listen: listen.parse().unwrap(),
            programs: Programs::These(vec![NFS]),
            reachable: true,
        };
        Answerer::new(vec![service], per_second)
    }

    fn ask(answerer: &mut Answerer, program: u32) -> Option<Vec<SocketAddr>> {
        let query = rpcbind::emit_query(Xid(9), program, 3);
        let reply = answerer.answer(&query, true, &link(), Instant::now())?;
        assert_eq!(rpcbind::reply_to(&reply), Some(Xid(9)));
        rpcbind::parse_address_list(&reply)
    }

    #[test]
    fn a_listener_of_one_address_is_told_as_it_is() {
        let mut answerer = answerer("192.0.2.1:20049", 0);
        assert_eq!(
            ask(&mut answerer, NFS),
            Some(vec!["192.0.2.1:20049".parse().unwrap()])
        );
        assert_eq!(answerer.counts().answered, 1);
    }

    #[test]
    fn a_listener_of_all_addresses_is_told_as_those_of_the_link() {
        let told = ask(&mut answerer("[::]:20049", 0), NFS).unwrap();
        assert_eq!(told, link().map(|ip| SocketAddr::new(ip, 20049)));
        let told = ask(&mut answerer("0.0.0.0:20049", 0), NFS).unwrap();
        assert_eq!(told, [SocketAddr::new(link()[0], 20049)]);
    }

    #[test]
    fn a_place_that_nobody_else_gets_to_is_not_told() {
        for listen in [
            "127.0.0.1:20049",
            "[::1]:20049",
            "[fe80::1%2]:20049",
            "10.1.0.5:0",
        ] {
            let mut answerer = answerer(listen, 0);
            assert_eq!(ask(&mut answerer, NFS), None, "{listen}");
            assert_eq!(answerer.counts().not_served, 1);
        }
        let of_the_link = ["fe80::5", "127.0.0.1", "10.1.0.5"].map(|text| text.parse().unwrap());
        let told = places_of("[::]:20049".parse().unwrap(), &of_the_link);
        assert_eq!(told, ["10.1.0.5:20049".parse().unwrap()]);
    }

    #[test]
    fn a_listener_of_all_addresses_is_not_told_where_the_link_has_none_of_them() {
        let mut answerer = answerer("[::]:20049", 0);
        let query = rpcbind::emit_query(Xid(9), NFS, 3);
        assert_eq!(answerer.answer(&query, true, &[], Instant::now()), None);
        assert_eq!(answerer.counts().not_served, 1);
    }

    #[test]
    fn rfc5531_8_4_3_silence_where_the_program_is_not_served() {
        let mut answerer = answerer("[::]:20049", 0);
        assert_eq!(ask(&mut answerer, MOUNT), None);
        assert_eq!(answerer.counts().not_served, 1);
    }

    #[test]
    fn rfc5531_8_4_3_silence_while_what_is_behind_it_cannot_be_reached() {
        let mut answerer = answerer("[::]:20049", 0);
        answerer.set_reachable(0, false);
        assert_eq!(ask(&mut answerer, NFS), None);
        assert_eq!(ask(&mut answerer, MOUNT), None);
        let counts = answerer.counts();
        assert_eq!((counts.unreachable, counts.not_served), (1, 1));
        answerer.set_reachable(0, true);
        assert!(ask(&mut answerer, NFS).is_some());
        answerer.set_reachable(1, false);
    }

    #[test]
    fn a_backend_for_others_is_for_any_that_has_none_of_its_own() {
        let others = Programs::AllBut(vec![NFS]);
        assert!(!others.has(NFS));
        assert!(others.has(MOUNT));
    }

    #[test]
    fn beyond_the_rate_and_the_filter_is_silence_and_counted() {
        let mut limited = answerer("[::]:20049", 1);
        let query = rpcbind::emit_query(Xid(9), NFS, 3);
        let now = Instant::now();
        assert!(limited.answer(&query, true, &link(), now).is_some());
        assert!(limited.answer(&query, true, &link(), now).is_none());
        assert!(limited.answer(&query, false, &link(), now).is_none());
        let counts = limited.counts();
        assert_eq!(
            (counts.answered, counts.over_rate, counts.not_allowed),
            (1, 1, 1)
        );
    }

    #[test]
    fn who_is_about_to_end_is_silent() {
        let mut answerer = answerer("[::]:20049", 0);
        assert!(ask(&mut answerer, NFS).is_some());
        answerer.close();
        assert_eq!(ask(&mut answerer, NFS), None);
        let counts = answerer.counts();
        assert_eq!((counts.answered, counts.closing), (1, 1));
    }

    #[test]
    fn every_reject_has_its_counter() {
        let mut answerer = answerer("[::]:20049", 0);
        assert!(
            answerer
                .answer(b"?", true, &link(), Instant::now())
                .is_none()
        );
        assert_eq!(answerer.counts().rejected.of(Reject::NotACall), 1);
    }

    #[test]
    fn one_address_by_netid() {
        let answerer = answerer("[::]:20049", 0);
        let wanted = |netid| Query {
            xid: Xid(9),
            asked: Asked::Address(Wanted {
                program: NFS,
                version: 3,
                netid,
            }),
        };
        let v6 = SocketAddr::new(link()[1], 20049);
        assert_eq!(
            answerer.reply(&wanted(b"rdma6"), &link()),
            Some(rpcbind::emit_address(Xid(9), v6))
        );
        assert_eq!(answerer.reply(&wanted(b"tcp"), &link()), None);
    }
}
