//! The end of the appliance, in order: doors, backs, everything else, lcores.

use super::Supervisor;
use super::cores::Core;
use crate::notify;
use crate::signals::Stop;
use crate::status::State;
use anyhow::{Result, bail};
use rpcrdma_fabric::connect::Fabric;
use rpcrdma_lcore::{Exit, SeatOrder};
use std::time::{Duration, Instant};
use tracing::{error, info, warn};

/// How long an lcore gets to close what is left.
pub(super) const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is no talk of it.
    Serving,
    /// The backs' connections answer what is in flight.
    Backs,
    /// So do all others.
    Others,
    /// Lcores were told to close everything and end.
    Closing,
}

/// What is known of the end.
pub(super) struct Ending {
    stage: Stage,
    timeout: Duration,
    /// Draining is over by then.
    by: Option<Instant>,
    /// No more draining.
    now: bool,
}

impl Ending {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            stage: Stage::Serving,
            timeout,
            by: None,
            now: false,
        }
    }

    /// A signal came.
    pub(super) fn heard(&mut self, stop: Stop, now: Instant) {
        match stop {
            Stop::Drain => self.asked(now),
            Stop::Now => {
                self.asked(now);
                self.now = true;
            }
        }
    }

    /// Draining was asked for.
    pub(super) fn asked(&mut self, now: Instant) {
        self.by.get_or_insert(now + self.timeout);
    }

    /// It is on its way.
    pub(super) fn has_begun(&self) -> bool {
        self.by.is_some()
    }

    /// For the status document.
    pub(super) fn state(&self) -> State {
        match self.by {
            None => State::Serving,
            Some(_) => State::Draining,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.by.filter(|_| self.stage != Stage::Closing)
    }

    fn is_late(&self, now: Instant) -> bool {
        self.now || self.by.is_some_and(|by| by <= now)
    }
}

impl<F: Fabric> Supervisor<F> {
    /// Takes the end one step further, if it has begun. True when everything has ended.
    pub(super) fn end(&mut self, now: Instant) -> Result<bool> {
        if self.ending.by.is_none() {
            return self.check_lcores().map(|()| false);
        }
        if self.ending.stage == Stage::Serving {
            info!("draining");
            notify::stopping(self.ending.timeout + CLOSE_WITHIN);
            self.doors.shut();
            self.forget_ways();
            let backs: Vec<_> = self
                .sessions
                .backs()
                .map(|back| (back.core, back.seat))
                .collect();
            for (core, seat) in backs {
                self.cores[core].tell(seat, SeatOrder::Drain);
            }
            self.ending.stage = Stage::Backs;
        }
        let late = self.ending.is_late(now);
        if self.ending.stage == Stage::Backs
            && (late || self.sessions.backs().next().is_none())
            && self.cores.iter_mut().all(|core| core.line.drain())
        {
            self.ending.stage = Stage::Others;
        }
        if self.ending.stage == Stage::Others && (late || self.sessions.is_empty()) {
            if !self.sessions.is_empty() {
                warn!("draining took too long: closing what is left");
            }
            if self
                .cores
                .iter_mut()
                .all(|core| core.line.stop(CLOSE_WITHIN))
            {
                self.ending.stage = Stage::Closing;
            }
        }
        let over = self.ending.stage == Stage::Closing
            && self.cores.iter().all(|core| core.running.is_over());
        let left = self.discovery.as_mut().is_none_or(|it| it.close(now));
        Ok(over && left)
    }

    /// An lcore that ended on its own is the end of the appliance: its clients come back to a
    /// restarted one sooner than to one that limps.
    fn check_lcores(&mut self) -> Result<()> {
        let fell = |core: &Core<F>| core.gone.is_none() && core.running.is_over();
        let Some(ended) = self.cores.iter().position(fell) else {
            return Ok(());
        };
        let core = self.cores.swap_remove(ended);
        match core.running.join() {
            Exit::Panicked(words) => {
                error!("lcore on processor {}: panicked: {words}", core.processor);
            }
            exit => error!("lcore on processor {}: ended: {exit:?}", core.processor),
        }
        bail!("an lcore has ended; the appliance goes down with it")
    }
}
