//! The links of a configuration, and discovery on them: what control does with the datagrams.
//!
//! [`Discovery`] owns the links. An appliance whose links `answer` says where its fronts and services are; a back
//! whose upstream is to be found asks, and goes where [`Discovery::ways`] leads. Nothing of it waits, and no lcore
//! knows of it.

mod report;
mod services;

use anyhow::{Context, Result};
use rand::rngs::StdRng;
use rpcrdma_config::Plan;
use rpcrdma_config::allow::Networks;
use rpcrdma_config::link::Discover;
use rpcrdma_config::plan::Upstream;
use rpcrdma_discovery::answer::Answerer;
use rpcrdma_discovery::rpcbind::PORT;
use rpcrdma_discovery::seek::{Seeker, Wish};
use rpcrdma_links::{Datagram, Links};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};
use tracing::{debug, info, warn};

/// Queries go out from this port on, one for each back (the dynamic ports of RFC 6335).
const FIRST_PORT: u16 = 49_152;
/// Leaving all groups may take so long.
const CLOSE_WITHIN: Duration = Duration::from_secs(6);

/// A backend of a front, both by their places in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BackendPlace {
    pub(crate) front: usize,
    pub(crate) backend: u16,
}

/// Links, who answers on them, and who asks.
pub(crate) struct Discovery {
    links: Links,
    /// By link.
    answerers: Vec<Answering>,
    /// The backend behind each service that they tell of.
    behind: Vec<Option<BackendPlace>>,
    sought: Vec<Sought>,
    random: StdRng,
    closing: Option<Instant>,
}

/// Who answers on one link.
struct Answering {
    answerer: Answerer,
    /// Questions to these are answered, and where there are any, questions to the link's own addresses.
    groups: Vec<IpAddr>,
    allow: Option<Networks>,
    /// Who listens at all addresses listens at the link's as well: they are the operating system's.
    of_the_system: bool,
}

/// What one back seeks.
struct Sought {
    back: usize,
    name: String,
    link: usize,
    group: IpAddr,
    port: u16,
    allow: Option<Networks>,
    seeker: Seeker,
    /// A query could not be sent: said once for each row of failures.
    silent: bool,
}

impl Discovery {
    /// Begins to bring up the links of a plan; `None` where there are none.
    ///
    /// # Errors
    ///
    /// A link whose device, library or privilege is missing.
    pub(crate) fn start(plan: &Plan, now: Instant) -> Result<Option<Self>> {
        if plan.links.is_empty() {
            return Ok(None);
        }
        let links = Links::start(&plan.links, now).context("links")?;
        let told = services::of(plan);
        for line in services::untold(plan) {
            warn!("{line}");
        }
        let services: Vec<_> = told.iter().map(|it| it.service.clone()).collect();
        let answerers = plan.links.iter().map(|link| Answering {
            answerer: Answerer::new(services.clone(), link.answer.per_second),
            groups: link.answer.groups.clone(),
            allow: link.answer.allow.clone(),
            of_the_system: link.subnet.is_of_the_system(),
        });
        Ok(Some(Self {
            links,
            answerers: answerers.collect(),
            behind: told.iter().map(|it| it.behind).collect(),
            sought: sought(plan),
            random: rand::make_rng(),
            closing: None,
        }))
    }

    /// Takes what came on the links, and lets time pass.
    pub(crate) fn turn(&mut self, now: Instant) {
        self.links.turn(now);
        while let Some(datagram) = self.links.take() {
            self.heard(&datagram, now);
        }
        if self.closing.is_none() {
            self.ask(now);
        }
    }

    fn heard(&mut self, datagram: &Datagram, now: Instant) {
        let source = datagram.from.ip();
        if datagram.to.port() == PORT {
            return self.answer(datagram, source, now);
        }
        let mine = |it: &&mut Sought| it.link == datagram.link && it.port == datagram.to.port();
        let Some(sought) = self.sought.iter_mut().find(mine) else {
            return debug!("a datagram from {} is for nobody", datagram.from);
        };
        let allowed = permits(sought.allow.as_ref(), source);
        let before = sought.seeker.known().count();
        // What is wrong with it is counted.
        let _ = sought.seeker.heard(&datagram.octets, allowed, now);
        if sought.seeker.known().count() > before {
            let known: Vec<_> = sought.seeker.known().map(|it| it.to_string()).collect();
            info!("back {}: found {}", sought.name, known.join(", "));
        }
    }

    fn answer(&mut self, datagram: &Datagram, source: IpAddr, now: Instant) {
        let Some(Answering {
            answerer,
            groups,
            allow,
            of_the_system,
        }) = self.answerers.get_mut(datagram.link)
        else {
            return;
        };
        let to = datagram.to.ip();
        let alone = !groups.is_empty() && self.links.addresses(datagram.link).any(|it| it == to);
        if !alone && !groups.contains(&to) {
            return debug!("a query from {} to {to} is not answered", datagram.from);
        }
        let own = self.links.addresses(datagram.link);
        let listened_at: Vec<IpAddr> = own.filter(|_| *of_the_system).collect();
        let allowed = permits(allow.as_ref(), source);
        let reply = answerer.answer(&datagram.octets, allowed, &listened_at, now);
        let Some(reply) = reply else {
            return;
        };
        if let Err(why) = self.links.reply(datagram, &reply) {
            debug!("an answer to {} was not sent: {why:?}", datagram.from);
        }
    }

    fn ask(&mut self, now: Instant) {
        for sought in &mut self.sought {
            let Some(query) = sought.seeker.query(now, &mut self.random) else {
                continue;
            };
            let to = SocketAddr::new(sought.group, PORT);
            let sent = self.links.send(sought.link, sought.port, to, &query, now);
            if let (Err(why), false) = (sent, sought.silent) {
                info!(
                    "back {}: cannot ask {} yet: {why}",
                    sought.name, sought.group
                );
            }
            sought.silent = sent.is_err();
            if sent.is_err() {
                sought.seeker.unsent(now);
            }
        }
    }

    /// Where the next connection of a back goes, and where it goes if there is no way there; none while nobody has answered.
    pub(crate) fn ways(&mut self, back: usize) -> Vec<SocketAddr> {
        let sought = self.sought.iter_mut().find(|it| it.back == back);
        sought.map(|it| it.seeker.ways()).unwrap_or_default()
    }

    /// A connection of a back there could not be made, or was lost.
    pub(crate) fn failed(&mut self, back: usize, address: SocketAddr, now: Instant) {
        if let Some(sought) = self.sought.iter_mut().find(|it| it.back == back) {
            sought.seeker.failed(address, now);
        }
    }

    /// A backend can be reached, or not: queries for what it serves are answered, or not.
    pub(crate) fn backend_is(&mut self, place: BackendPlace, reachable: bool) {
        let behind = self.behind.iter().enumerate();
        let services = behind.filter(|(_, it)| **it == Some(place));
        for (service, _) in services {
            for Answering { answerer, .. } in &mut self.answerers {
                answerer.set_reachable(service, reachable);
            }
        }
    }

    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        let asking = self.sought.iter().filter(|_| self.closing.is_none());
        let asking = asking.map(|it| it.seeker.due().unwrap_or(now));
        // Once the time for it is over nothing is to be woken up for.
        let closing = self.closing.filter(|&by| by > now);
        asking.chain(self.links.deadline()).chain(closing).min()
    }

    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.links.descriptors()
    }

    /// Neither asks nor answers any more, and leaves every group. True when that is done, or has taken long enough.
    pub(crate) fn close(&mut self, now: Instant) -> bool {
        for Answering { answerer, .. } in &mut self.answerers {
            answerer.close();
        }
        let by = *self.closing.get_or_insert(now + CLOSE_WITHIN);
        self.links.close(now);
        self.links.is_closed() || by <= now
    }
}

fn permits(allow: Option<&Networks>, source: IpAddr) -> bool {
    allow.is_none_or(|networks| networks.permits(source))
}

fn sought(plan: &Plan) -> Vec<Sought> {
    let discovered = plan.backs.iter().enumerate().filter_map(|(back, it)| {
        let Upstream::Discover(discover) = &it.upstream else {
            return None;
        };
        let link = plan
            .links
            .iter()
            .position(|link| link.name == discover.link)?;
        Some((back, it.name.clone(), link, discover))
    });
    discovered
        .zip(FIRST_PORT..)
        .map(|((back, name, link, discover), port)| Sought {
            back,
            name,
            link,
            group: discover.group,
            port,
            allow: discover.allow.clone(),
            seeker: Seeker::new(wish(discover)),
            silent: false,
        })
        .collect()
}

const fn wish(discover: &Discover) -> Wish {
    Wish {
        program: discover.program,
        version: discover.version,
        period: discover.period,
    }
}

#[cfg(test)]
pub(crate) mod tests;
