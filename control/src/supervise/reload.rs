//! The configuration, read again.

use super::Supervisor;
use crate::status::Reloads;
use crate::{logging, notify};
use rpcrdma_config::Plan;
use rpcrdma_config::reload::{Made, Reload};
use rpcrdma_fabric::connect::Fabric;
use std::time::Instant;
use tracing::{error, info, warn};

/// Reads the configuration again: a plan that was checked whole, or all that is wrong, one line
/// each.
pub type Reread = Box<dyn Fn() -> Result<Plan, String> + Send>;

/// What a plan that is read again is measured against, and what came of those before it.
pub(super) struct Reloading {
    pub(super) made: Made,
    reread: Option<Reread>,
    told: Reloads,
}

impl Reloading {
    pub(super) fn new(made: Made) -> Self {
        Self {
            made,
            reread: None,
            told: Reloads::default(),
        }
    }
}

impl<F: Fabric> Supervisor<F> {
    /// Says how to read the configuration again, for [`Handle::reload`](super::Handle::reload)
    /// and SIGHUP. Without, those change nothing.
    #[must_use]
    pub fn with_reread(mut self, reread: Reread) -> Self {
        self.reloading.reread = Some(reread);
        self
    }

    /// Reads the configuration again, and takes of it what can change while this runs.
    pub(super) fn reload(&mut self, now: Instant) {
        notify::reloading();
        let read = match &self.reloading.reread {
            None => Err("there is no configuration file to read again".to_owned()),
            Some(reread) => reread(),
        };
        match read {
            Ok(new) => self.take_plan(&new, now),
            Err(problems) => self.refuse_plan(&problems),
        }
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
        match changed.as_slice() {
            [] => info!("configuration read again: nothing changes"),
            changed => info!("configuration read again: {}", changed.join("; ")),
        }
        if !restart.is_empty() {
            warn!("takes a restart: {}", restart.join("; "));
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
