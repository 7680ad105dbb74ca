//! The configuration, read again.

use super::Supervisor;
use super::reread::{Asked, PATIENCE, Reader, Reread};
use crate::status::Reloads;
use crate::{logging, notify};
use rpcrdma_config::Plan;
use rpcrdma_config::reload::{Made, Reload};
use rpcrdma_fabric::connect::Fabric;
use std::time::Instant;
use tracing::{error, info, warn};

/// What a plan that is read again is measured against, and what came of those before it.
pub(super) struct Reloading {
    pub(super) made: Made,
    reader: Reader,
    told: Reloads,
}

impl Reloading {
    pub(super) fn new(made: Made) -> Self {
        Self {
            made,
            reader: Reader::without(),
            told: Reloads::default(),
        }
    }

    /// When something is to be done about a reader.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.reader.deadline()
    }
}

impl<F: Fabric> Supervisor<F> {
    /// Says how to read the configuration again, for [`Handle::reload`](super::Handle::reload)
    /// and SIGHUP. Without, those change nothing.
    #[must_use]
    pub fn with_reread(mut self, reread: Reread) -> Self {
        self.reloading.reader = Reader::of(reread, PATIENCE);
        self
    }

    /// Has the configuration read again.
    pub(super) fn reload(&mut self, now: Instant) {
        match self.reloading.reader.ask(&self.bell, now) {
            Asked::Begun => notify::reloading(),
            Asked::Later => {}
            Asked::Nothing => {
                notify::reloading();
                warn!("there is no configuration file to read again: nothing changes");
                notify::ready("serving");
            }
            Asked::Stuck => self.refuse_now("who was to read it before still tries to"),
            Asked::NoThread => self.refuse_now("there is no thread to read it"),
        }
    }

    /// Takes of what was read what can change while this runs.
    pub(super) fn take_reload(&mut self, now: Instant) {
        let Some((read, again)) = self.reloading.reader.take(now) else {
            return;
        };
        if self.ending.has_begun() {
            return;
        }
        match read {
            Ok(new) => self.take_plan(&new, now),
            Err(problems) => self.refuse_plan(&problems),
        }
        self.reloaded();
        if again {
            self.reload(now);
        }
    }

    /// Nothing was read.
    fn refuse_now(&mut self, reason: &str) {
        notify::reloading();
        self.refuse_plan(reason);
        self.reloaded();
    }

    /// Tells what came of it.
    fn reloaded(&mut self) {
        self.surveyor.reloaded(self.reloading.told.clone());
        notify::ready("serving");
    }

    fn take_plan(&mut self, new: &Plan, now: Instant) {
        let sizes = self.plan.transports().map(|it| it.inline_bytes);
        let sizes: Vec<u32> = sizes.collect();
        let Reload { changed, restart } = self.reloading.made.reload(&mut self.plan, new);
        let told = &mut self.reloading.told;
        told.taken += 1;
        told.last_refusal = None;
        if !changed.is_empty() {
            info!("configuration read again: {}", changed.join("; "));
        } else if restart.is_empty() {
            info!("configuration read again: nothing changes");
        }
        if !restart.is_empty() {
            warn!(
                "configuration read again: takes a restart: {}",
                restart.join("; ")
            );
        }
        told.restart = restart;
        logging::follow(self.plan.runtime.log);
        self.doors.judge_by(&self.plan);
        self.resize(&sizes, now);
    }

    fn refuse_plan(&mut self, problems: &str) {
        let told = &mut self.reloading.told;
        told.refused += 1;
        told.last_refusal = Some(problems.to_owned());
        error!("configuration refused; everything stays as it is");
        for problem in problems.lines() {
            error!("{problem}");
        }
    }
}
