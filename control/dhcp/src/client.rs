//! The client: when it sends what, and what it makes of the replies.

use crate::lease::{Lease, Times};
use crate::message::{self, ClientIdentifier, Given, Kind, Reject, Reply, Says};
use crate::phase::{Event, Phase};
use rand::{Rng, RngExt};
use rpcrdma_listed::Tally;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// How the client waits.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Before the first DISCOVER, so that nodes that start together do not broadcast together (RFC 2131 section 4.4.1,
    /// RFC 4390 section 2).
    pub first_wait: RangeInclusive<Duration>,
    /// For the first answer, twice that for the next and so on up to 16 times (RFC 2131 section 4.1: 4 s, up to 64 s).
    pub answer_wait: Duration,
    /// After an address that somebody else had (RFC 2131 section 3.1: at least 10 s).
    pub conflict_wait: Duration,
    /// Between requests for more time, at least (RFC 2131 section 4.4.5: 60 s).
    pub extend_wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            first_wait: Duration::from_secs(1)..=Duration::from_secs(10),
            answer_wait: Duration::from_secs(4),
            conflict_wait: Duration::from_secs(10),
            extend_wait: Duration::from_secs(60),
        }
    }
}

/// REQUESTs of one address before it is given up.
const REQUESTS: u32 = 4;
/// Doublings of the wait for an answer.
const DOUBLINGS: u32 = 4;

/// A message to send, from the client's port to the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The source address: 0.0.0.0 before there is one.
    pub from: Ipv4Addr,
    /// A server, or 255.255.255.255.
    pub to: Ipv4Addr,
    /// The UDP payload.
    pub octets: Vec<u8>,
}

/// What the link has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Ask the link whether somebody has this address, by ARP: then [`Client::conflict`] if so, and [`Client::free`] if not.
    Check(Ipv4Addr),
    /// Use this from now on; also when only its times changed.
    Use(Lease),
    /// Use the address no more.
    Drop(Why),
}

/// Why an address is not used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The link is down.
    LinkDown,
    /// The server said no.
    Refused,
    /// Somebody else has it.
    Conflict,
    /// Its time is over.
    Expired,
}

/// What came, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages sent.
    pub sent: u64,
    /// Replies that counted.
    pub heard: u64,
    /// Addresses that somebody else had.
    pub conflicts: u64,
    /// Datagrams that did not count, by reason.
    pub rejected: Tally<Reject>,
}

/// A client for one link.
pub struct Client {
    identifier: ClientIdentifier,
    settings: Settings,
    phase: Phase,
    xid: u32,
    /// When the exchange under way began: what `secs` counts from, and what a lease counts from is the last request.
    began: Instant,
    asked: Instant,
    /// Messages of this exchange.
    tries: u32,
    /// When something is to be done next; `None`: nothing.
    due: Option<Instant>,
    /// The offer that is asked for, the lease being checked, or the one in use; kept while the link is down.
    lease: Option<Lease>,
    counts: Counts,
}

impl Client {
    /// A client whose link is down.
    #[must_use]
    pub fn new(identifier: ClientIdentifier, settings: Settings, now: Instant) -> Self {
        Self {
            identifier,
            settings,
            phase: Phase::Down,
            xid: 0,
            began: now,
            asked: now,
            tries: 0,
            due: None,
            lease: None,
            counts: Counts::default(),
        }
    }

    /// Where it is.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// The lease in use.
    #[must_use]
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref().filter(|_| self.phase.has_address())
    }

    /// What came of all so far.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// When [`Client::turn`] has something to do; `None`: only when something comes.
    #[must_use]
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The link is up: an address of before is asked for again, if its time is not over, else any.
    pub fn up(&mut self, now: Instant, random: &mut impl Rng) {
        self.lease = self.lease.take().filter(|lease| lasts(lease, now));
        let event = match self.lease {
            Some(_) => Event::UpAgain,
            None => Event::Up,
        };
        if self.step(event) {
            let first = self.settings.first_wait.clone();
            let wait = match self.phase {
                Phase::Init => within(random, &first),
                _ => Duration::ZERO,
            };
            self.begin(now, wait, random);
        }
    }

    /// The link is down: the lease is remembered.
    pub fn down(&mut self) -> Option<Change> {
        let had = self.phase.has_address();
        if !had && self.phase != Phase::Rebooting {
            self.lease = None;
        }
        self.step(Event::Down);
        self.due = None;
        had.then_some(Change::Drop(Why::LinkDown))
    }

    /// Nobody else has the address that was to be checked.
    pub fn free(&mut self, now: Instant, random: &mut impl Rng) -> Option<Change> {
        if !self.step(Event::Free) {
            return None;
        }
        self.rest(now, random);
        self.lease.map(Change::Use)
    }

    /// Somebody else has the address. The server is told, by a message that goes out with the next [`Client::turn`].
    pub fn conflict(&mut self, now: Instant, random: &mut impl Rng) -> Option<(Outgoing, Change)> {
        let lease = self.lease?;
        if !self.step(Event::Conflict) {
            return None;
        }
        self.counts.conflicts += 1;
        self.lease = None;
        self.begin(now, self.settings.conflict_wait, random);
        let decline = Kind::Decline {
            address: lease.address.addr(),
            server: lease.server,
        };
        let message = self.outgoing(decline, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, now);
        Some((message, Change::Drop(Why::Conflict)))
    }

    /// Gives the address back; the client is down then.
    pub fn release(&mut self, now: Instant) -> Option<Outgoing> {
        let lease = self.lease().copied();
        self.step(Event::Down);
        self.due = None;
        self.lease = None;
        let Lease {
            address, server, ..
        } = lease?;
        let address = address.addr();
        Some(self.outgoing(Kind::Release { address, server }, address, server, now))
    }

    /// Does what is due.
    pub fn turn(
        &mut self,
        now: Instant,
        random: &mut impl Rng,
    ) -> (Option<Outgoing>, Option<Change>) {
        if self.due.is_none_or(|due| now < due) {
            return (None, None);
        }
        match self.phase {
            Phase::Down | Phase::Checking => (None, None),
            Phase::Init => {
                self.step(Event::Waited);
                (
                    Some(self.send_broadcast(Kind::Discover(None), now, random)),
                    None,
                )
            }
            Phase::Selecting => (
                Some(self.send_broadcast(Kind::Discover(None), now, random)),
                None,
            ),
            Phase::Requesting | Phase::Rebooting => self.request(now, random),
            Phase::Bound => {
                self.step(Event::T1);
                self.begin(now, Duration::ZERO, random);
                self.extend(now)
            }
            Phase::Renewing | Phase::Rebinding => self.extend_or_end(now, random),
        }
    }

    /// Takes a UDP payload that came to the client's port.
    ///
    /// # Errors
    ///
    /// [`Reject`]: counted.
    pub fn heard(
        &mut self,
        octets: &[u8],
        now: Instant,
        random: &mut impl Rng,
    ) -> Result<Option<Change>, Reject> {
        let taken = message::parse(octets, &self.identifier)
            .and_then(|reply| self.take(&reply, now, random));
        match taken {
            Ok(_) => self.counts.heard += 1,
            Err(why) => self.counts.rejected.add(why),
        }
        taken
    }

    fn take(
        &mut self,
        reply: &Reply,
        now: Instant,
        random: &mut impl Rng,
    ) -> Result<Option<Change>, Reject> {
        if reply.xid != self.xid || self.tries == 0 {
            return Err(Reject::NotAsked);
        }
        match reply.says {
            Says::Offer(given) => self.offered(reply.server, given, now),
            Says::Ack(given) => self.acknowledged(reply.server, given, now, random),
            Says::Nak => self.refused(now, random),
        }
    }

    /// The first offer is taken: its REQUEST is due at once.
    fn offered(
        &mut self,
        server: Ipv4Addr,
        given: Given,
        now: Instant,
    ) -> Result<Option<Change>, Reject> {
        if !self.step(Event::Offer) {
            return Err(Reject::NotAsked);
        }
        self.lease = Some(self.lease_of(server, given));
        self.tries = 0;
        self.due = Some(now);
        Ok(None)
    }

    fn acknowledged(
        &mut self,
        server: Ipv4Addr,
        given: Given,
        now: Instant,
        random: &mut impl Rng,
    ) -> Result<Option<Change>, Reject> {
        let same = |lease: &Lease| lease.address.addr() == given.address.addr();
        if !self.lease.as_ref().is_some_and(same) {
            return Err(Reject::Contents);
        }
        if !self.step(Event::Ack) {
            return Err(Reject::NotAsked);
        }
        let lease = self.lease_of(server, given);
        self.lease = Some(lease);
        self.tries = 0;
        if self.phase == Phase::Checking {
            self.due = None;
            return Ok(Some(Change::Check(lease.address.addr())));
        }
        self.rest(now, random);
        Ok(Some(Change::Use(lease)))
    }

    fn refused(&mut self, now: Instant, random: &mut impl Rng) -> Result<Option<Change>, Reject> {
        let had = self.phase.has_address();
        if !self.step(Event::Nak) {
            return Err(Reject::NotAsked);
        }
        self.lease = None;
        self.begin(now, self.settings.answer_wait, random);
        Ok(had.then_some(Change::Drop(Why::Refused)))
    }

    /// A REQUEST for the offer or the address of before; given up after some.
    fn request(
        &mut self,
        now: Instant,
        random: &mut impl Rng,
    ) -> (Option<Outgoing>, Option<Change>) {
        let lease = self.lease.filter(|_| self.tries < REQUESTS);
        let Some(lease) = lease else {
            self.step(Event::Silence);
            self.lease = None;
            self.begin(now, Duration::ZERO, random);
            return (None, None);
        };
        let address = lease.address.addr();
        let kind = match self.phase {
            Phase::Rebooting => Kind::Reboot(address),
            _ => Kind::Select {
                address,
                server: lease.server,
            },
        };
        (Some(self.send_broadcast(kind, now, random)), None)
    }

    /// T2, the end, or one more request for more time.
    fn extend_or_end(
        &mut self,
        now: Instant,
        random: &mut impl Rng,
    ) -> (Option<Outgoing>, Option<Change>) {
        let times = self.lease.and_then(|lease| lease.times);
        if self.phase == Phase::Renewing && times.is_some_and(|it| it.rebind <= now) {
            self.step(Event::T2);
        }
        if self.phase == Phase::Rebinding && times.is_none_or(|it| it.end <= now) {
            self.step(Event::Expired);
            self.lease = None;
            self.begin(now, Duration::ZERO, random);
            return (None, Some(Change::Drop(Why::Expired)));
        }
        self.extend(now)
    }

    /// A request for more time, of the server in RENEWING, of any in REBINDING. The next is due when half of the time that is
    /// left to T2 or the end is over, and a minute at least (RFC 2131 section 4.4.5).
    fn extend(&mut self, now: Instant) -> (Option<Outgoing>, Option<Change>) {
        let Some((lease, times)) = self.lease.and_then(|it| it.times.map(|times| (it, times)))
        else {
            return (None, None);
        };
        let (to, until) = match self.phase {
            Phase::Renewing => (lease.server, times.rebind),
            _ => (Ipv4Addr::BROADCAST, times.end),
        };
        let left = until.saturating_duration_since(now);
        let wait = (left / 2).max(self.settings.extend_wait).min(left);
        self.due = Some(now + wait);
        self.asked = now;
        self.tries += 1;
        let address = lease.address.addr();
        (
            Some(self.outgoing(Kind::Extend(address), address, to, now)),
            None,
        )
    }

    /// Until T1.
    fn rest(&mut self, now: Instant, random: &mut impl Rng) {
        let times = self.lease.and_then(|lease| lease.times);
        self.due = times.map(|times| {
            // RFC 2131 section 4.4.5: T1 with some fuzz, so that clients do not ask together.
            let fuzz = times.renew.saturating_duration_since(now) / 16;
            times.renew - within(random, &(Duration::ZERO..=fuzz))
        });
    }

    /// A new exchange, whose first message is due after a wait.
    fn begin(&mut self, now: Instant, wait: Duration, random: &mut impl Rng) {
        self.xid = random.random();
        self.began = now;
        self.tries = 0;
        self.due = Some(now + wait);
    }

    fn send_broadcast(&mut self, kind: Kind, now: Instant, random: &mut impl Rng) -> Outgoing {
        let wait = self.settings.answer_wait * (1 << self.tries.min(DOUBLINGS));
        // RFC 2131 section 4.1: a second of the first four, either way.
        let quarter = self.settings.answer_wait / 4;
        let fuzz = within(random, &(Duration::ZERO..=quarter * 2));
        self.due = Some(now + wait + fuzz - quarter);
        self.asked = now;
        self.tries += 1;
        self.outgoing(kind, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, now)
    }

    fn outgoing(&mut self, kind: Kind, from: Ipv4Addr, to: Ipv4Addr, now: Instant) -> Outgoing {
        self.counts.sent += 1;
        let seconds = now.saturating_duration_since(self.began).as_secs();
        let seconds = u16::try_from(seconds).unwrap_or(u16::MAX);
        Outgoing {
            from,
            to,
            octets: message::emit(kind, self.xid, seconds, &self.identifier),
        }
    }

    fn lease_of(&self, server: Ipv4Addr, given: Given) -> Lease {
        Lease {
            address: given.address,
            server,
            times: Times::of(self.asked, given.seconds, given.t1, given.t2),
        }
    }

    /// Goes where the event leads; `false` where it leads nowhere.
    fn step(&mut self, event: Event) -> bool {
        match self.phase.next(event) {
            Ok(next) => {
                self.phase = next;
                true
            }
            Err(_) => false,
        }
    }
}

fn lasts(lease: &Lease, now: Instant) -> bool {
    lease.times.is_none_or(|times| now < times.end)
}

fn within(random: &mut impl Rng, range: &RangeInclusive<Duration>) -> Duration {
    let nanos = random.random_range(range.start().as_nanos()..=range.end().as_nanos());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
