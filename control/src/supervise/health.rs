//! Which backends can be reached. An appliance that is asked where a program is served (discovery) is silent of those that
//! cannot: who finds it would be sent to a front that has nothing to answer with.
//!
//! | state | a connection was made | none could be made | its time has come |
//! |---|---|---|---|
//! | there | there | away | looked for, and there meanwhile |
//! | away | there | away | looked for, and away meanwhile |
//!
//! Every backend is away at first, and looked for at once; later connections of fronts say as much as looking does. What is there is
//! looked for again after [`STILL`], what is away after [`SOON`], then twice that, and so on up to [`LATE`]. Why there is no
//! connection does not matter, whether the server is gone or this appliance has no port left: a client that comes now would not be
//! served. Nothing is looked for where nobody is answered. What is found by looking is closed again.

use crate::discover::BackendPlace;
use rpcrdma_config::Plan;
use rpcrdma_config::plan::BackendAddress;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A backend that is there is looked for again after so long without a connection.
const STILL: Duration = Duration::from_secs(30);
/// One that is away is looked for again after so long, the first time.
const SOON: Duration = Duration::from_secs(2);
/// And after so long in the end.
const LATE: Duration = Duration::from_secs(10);

/// A backend.
#[derive(Clone, Copy, Debug)]
struct Standing {
    there: bool,
    /// When it is looked for; `None` while it is.
    next: Option<Instant>,
    pause: Duration,
}

/// All backends that somebody may ask for. The embedded server is always there, and none of them.
#[derive(Debug, Default)]
pub(super) struct Health(BTreeMap<BackendPlace, Standing>);

impl Health {
    /// That of a plan's backends: none where no link answers.
    pub(super) fn of(plan: &Plan, now: Instant) -> Self {
        let mut all = BTreeMap::new();
        if plan.links.iter().any(|link| !link.answer.groups.is_empty()) {
            for (front, it) in plan.fronts.iter().enumerate() {
                let outside = (0..).zip(&it.backends);
                let outside = outside.filter(|(_, it)| it.address != BackendAddress::Export);
                let unseen = Standing {
                    there: false,
                    next: Some(now),
                    pause: SOON,
                };
                all.extend(outside.map(|(backend, _)| (BackendPlace { front, backend }, unseen)));
            }
        }
        Self(all)
    }

    /// All of them, and whether each is there.
    pub(super) fn all(&self) -> impl Iterator<Item = (BackendPlace, bool)> {
        self.0.iter().map(|(&at, it)| (at, it.there))
    }

    /// A connection to a backend was made, or could not be. True when this is news.
    pub(super) fn heard(&mut self, at: BackendPlace, made: bool, now: Instant) -> bool {
        let Some(standing) = self.0.get_mut(&at) else {
            return false;
        };
        let (wait, pause) = match made {
            true => (STILL, SOON),
            false => (standing.pause, (standing.pause * 2).min(LATE)),
        };
        let next = Standing {
            there: made,
            next: Some(now + wait),
            pause,
        };
        std::mem::replace(standing, next).there != made
    }

    /// One that is to be looked for now.
    pub(super) fn look(&mut self, now: Instant) -> Option<BackendPlace> {
        let is_due = |it: &Standing| it.next.is_some_and(|next| next <= now);
        let (&at, standing) = self.0.iter_mut().find(|(_, it)| is_due(it))?;
        standing.next = None;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::tests::{FILE, plan};

    /// A second backend of the file's front.
    const OTHERS: &str = r#"
    [[front.backend]]
    programs = "others"
    address = "127.0.0.1:111"
"#;

    const fn place(backend: u16) -> BackendPlace {
        BackendPlace { front: 0, backend }
    }

    fn is_there(health: &Health) -> Vec<bool> {
        health.all().map(|(_, there)| there).collect()
    }

    #[test]
    fn what_is_away_is_looked_for_until_it_is_there() {
        let mut now = Instant::now();
        let mut health = Health::of(&plan(&[FILE, OTHERS].concat()), now);
        let [nfs, others] = [0, 1].map(place);
        assert_eq!(is_there(&health), [false; 2]);
        assert_eq!(
            [health.look(now), health.look(now)],
            [Some(nfs), Some(others)]
        );
        assert_eq!(health.look(now + STILL), None, "each once at a time");
        assert!(health.heard(nfs, true, now), "it is there");
        for wait in [2, 4, 8, 10, 10].map(Duration::from_secs) {
            assert!(!health.heard(others, false, now), "no news");
            let just_before = now + wait - Duration::from_millis(1);
            assert_ne!(health.look(just_before), Some(others));
            now += wait;
            assert_eq!(health.look(now), Some(others));
        }
        assert_eq!(is_there(&health), [true, false]);
    }

    #[test]
    fn what_is_there_is_looked_for_now_and_then() {
        let mut now = Instant::now();
        let mut health = Health::of(&plan(FILE), now);
        let nfs = place(0);
        assert_eq!(health.look(now), Some(nfs));
        assert!(health.heard(nfs, true, now));
        now += STILL;
        assert_eq!(health.look(now), Some(nfs));
        assert!(is_there(&health)[0], "until it is known that it is not");
        assert!(health.heard(nfs, false, now));
        assert!(!health.heard(nfs, false, now), "said already");
        assert!(!is_there(&health)[0]);
    }

    #[test]
    fn nothing_is_looked_for_where_nobody_is_answered() {
        let now = Instant::now();
        let silent = FILE.replace("answer = [\"239.192.78.81\"]", "");
        let mut health = Health::of(&plan(&silent), now);
        assert_eq!(health.look(now), None);
        assert!(!health.heard(place(0), false, now));
    }
}
