//! Which backends can be reached. An appliance that is asked where a program is served (discovery) is silent of those that
//! cannot: who finds it would be sent to a front that has nothing to answer with.
//!
//! | state | a connection was made | none could be made | its time has come |
//! |---|---|---|---|
//! | there | there | away, [`SOON`] | |
//! | away | there | away, [`SOON`] | looked for |
//! | looked for | there | away, [`SOON`] | |
//!
//! Every backend is away at first, and looked for at once; later connections of fronts say as much as looking does. Nothing is
//! looked for while it is there, nor where nobody is answered. What is found by looking is closed again.

use crate::discover::BackendPlace;
use rpcrdma_config::Plan;
use rpcrdma_config::plan::BackendAddress;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A backend that is away is looked for again after so long.
const SOON: Duration = Duration::from_secs(2);

/// Where a backend is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    There,
    Away { next: Instant },
    LookedFor,
}

/// All backends that somebody may ask for. The embedded server is always there, and none of them.
#[derive(Debug, Default)]
pub(super) struct Health(BTreeMap<(usize, u16), Standing>);

impl Health {
    /// That of a plan's backends: none where no link answers.
    pub(super) fn of(plan: &Plan, now: Instant) -> Self {
        let mut all = BTreeMap::new();
        if plan.links.iter().any(|link| !link.answer.groups.is_empty()) {
            for (front, it) in plan.fronts.iter().enumerate() {
                let outside = (0..).zip(&it.backends);
                let outside = outside.filter(|(_, it)| it.address != BackendAddress::Export);
                all.extend(outside.map(|(id, _)| ((front, id), Standing::Away { next: now })));
            }
        }
        Self(all)
    }

    /// Those that are not there.
    pub(super) fn away(&self) -> impl Iterator<Item = BackendPlace> {
        let away = self.0.iter().filter(|(_, it)| **it != Standing::There);
        away.map(|(&at, _)| place(at))
    }

    /// A connection to a backend was made, or could not be. True when this is news.
    pub(super) fn heard(&mut self, at: BackendPlace, made: bool, now: Instant) -> bool {
        let Some(standing) = self.0.get_mut(&(at.front, at.backend)) else {
            return false;
        };
        let next = match made {
            true => Standing::There,
            false => Standing::Away { next: now + SOON },
        };
        let was = std::mem::replace(standing, next);
        (was == Standing::There) != made
    }

    /// One that is to be looked for now.
    pub(super) fn look(&mut self, now: Instant) -> Option<BackendPlace> {
        let is_due = |it: &Standing| matches!(it, Standing::Away { next } if *next <= now);
        let (&at, standing) = self.0.iter_mut().find(|(_, it)| is_due(it))?;
        *standing = Standing::LookedFor;
        Some(place(at))
    }

    /// When one is.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let next = self.0.values().filter_map(|standing| match standing {
            Standing::Away { next } => Some(*next),
            Standing::There | Standing::LookedFor => None,
        });
        next.min()
    }
}

const fn place((front, backend): (usize, u16)) -> BackendPlace {
    BackendPlace { front, backend }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_config::{Machine, parse};

    const FILE: &str = r#"
        [[link]]
        name = "near"
        ipv4 = "10.1.0.1/24"
        administrator = true
        answer = ["239.192.78.81"]
        [[front]]
        name = "nfs"
        fabric = "iwarp-sctp"
        listen = "0.0.0.0:20049"
        [[front.backend]]
        programs = [100003]
        address = "127.0.0.1:2049"
        [[front.backend]]
        programs = "others"
        address = "127.0.0.1:111"
    "#;

    fn health(file: &str, now: Instant) -> Health {
        let machine = Machine {
            cores: vec![0],
            status_socket: "/run/s".into(),
        };
        let plan = parse("", file, &machine).unwrap_or_else(|error| panic!("{error}"));
        Health::of(&plan, now)
    }

    #[test]
    fn what_is_away_is_looked_for_until_it_is_there() {
        let mut now = Instant::now();
        let mut health = health(FILE, now);
        let [nfs, others] = [0, 1].map(|backend| place((0, backend)));
        assert_eq!(health.away().collect::<Vec<_>>(), [nfs, others]);
        assert_eq!(
            [health.look(now), health.look(now)],
            [Some(nfs), Some(others)]
        );
        assert_eq!((health.look(now), health.deadline()), (None, None));
        assert!(health.heard(nfs, true, now), "it is there");
        assert!(!health.heard(others, false, now), "no news");
        assert_eq!(health.away().collect::<Vec<_>>(), [others]);
        assert_eq!(health.look(now), None, "not yet");
        now = health.deadline().expect("looked for again");
        assert_eq!(health.look(now), Some(others));
        assert!(health.heard(nfs, false, now), "a front could not connect");
        assert!(!health.heard(nfs, false, now));
        assert_eq!(health.away().count(), 2);
    }

    #[test]
    fn nothing_is_looked_for_where_nobody_is_answered() {
        let now = Instant::now();
        let silent = FILE.replace("answer = [\"239.192.78.81\"]", "");
        let mut health = health(&silent, now);
        assert_eq!((health.look(now), health.deadline()), (None, None));
        assert!(!health.heard(place((0, 0)), false, now));
    }
}
