//! What the service manager is told (`sd_notify(3)`); nothing where there is none.

use sd_notify::NotifyState;
use std::time::{Duration, Instant};

/// Everything is up: units ordered after this one may start.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The configuration is being read again; [`ready`] says that it was.
pub fn reloading() {
    // Units of type notify-reload want the time with it; a clock that fails is no reason to say
    // nothing.
    let now = NotifyState::monotonic_usec_now().ok();
    let state: Vec<_> = [NotifyState::Reloading].into_iter().chain(now).collect();
    tell(&state);
}

/// One line for `systemctl status`.
pub fn status(status: &str) {
    tell(&[NotifyState::Status(status)]);
}

/// The end has begun. Draining may take `at_most`, which the manager's own patience may not
/// be enough for.
pub fn stopping(at_most: Duration) {
    let extra = at_most + Duration::from_secs(1);
    let extra_us = u32::try_from(extra.as_micros()).unwrap_or(u32::MAX);
    tell(&[
        NotifyState::Stopping,
        NotifyState::Status("draining"),
        NotifyState::ExtendTimeoutUsec(extra_us),
    ]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}

/// The service manager's watchdog, if it set one (`WatchdogSec=`): it restarts the appliance
/// when the control loop has not come round for so long.
#[derive(Debug)]
pub struct Watchdog {
    interval: Option<Duration>,
    due: Option<Instant>,
}

impl Watchdog {
    /// Reads the environment.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::every(sd_notify::watchdog_enabled())
    }

    /// Half of the manager's patience, as it recommends, between signs of life.
    fn every(patience: Option<Duration>) -> Self {
        Self {
            interval: patience.map(|patience| patience / 2),
            due: None,
        }
    }

    /// Gives a sign of life if one is due. To be called whenever the control loop comes round.
    pub fn turn(&mut self, now: Instant) {
        if self.is_due(now) {
            tell(&[NotifyState::Watchdog]);
        }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let Some(interval) = self.interval else {
            return false;
        };
        if self.due.is_some_and(|due| now < due) {
            return false;
        }
        self.due = Some(now + interval);
        true
    }

    /// When the loop has to come round next, if nothing else wakes it before.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_life_come_at_half_the_patience() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut watchdog = Watchdog::every(Some(Duration::from_secs(2)));
        assert!(watchdog.is_due(start));
        assert_eq!(watchdog.deadline(), Some(at(1000)));
        assert!(!watchdog.is_due(at(999)));
        assert!(watchdog.is_due(at(1500)));
        assert_eq!(watchdog.deadline(), Some(at(2500)));
    }

    #[test]
    fn without_a_watchdog_nothing_is_due() {
        let mut watchdog = Watchdog::every(None);
        assert!(!watchdog.is_due(Instant::now()));
        assert_eq!(watchdog.deadline(), None);
    }
}
