//! Lcores whose device is gone: they end, and begin anew when there is one.
//!
//! An lcore polls one port all its life, and a port is of one device. So one that has lost its
//! device closes what it has, and ends; the others go on. From then on it is looked every second
//! for a device: the one of the same name, which has come back, or else the one that the fewest
//! lcores poll. A new lcore on the old one's processor takes over its place.

use super::cores::Gone;
use super::drain::CLOSE_WITHIN;
use super::{Supervisor, clamp};
use anyhow::Result;
use rpcrdma_fabric::connect::{Device, Fabric};
use rpcrdma_lcore::Exit;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{error, info, warn};

/// How often it is looked for a device.
const EVERY: Duration = Duration::from_secs(1);

/// When it is looked next.
#[derive(Default)]
pub(super) struct Revival {
    due: Option<Instant>,
}

impl Revival {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

impl<F: Fabric> Supervisor<F> {
    /// Takes care of lcores whose device is gone.
    pub(super) fn revive(&mut self, now: Instant) {
        self.end_bereft();
        let bereft = |&index: &usize| self.cores[index].gone.is_some();
        let bereft: Vec<usize> = (0..self.cores.len()).filter(bereft).collect();
        if bereft.is_empty() {
            self.revival.due = None;
            return;
        }
        if self.revival.due.is_some_and(|due| now < due) {
            return;
        }
        self.revival.due = Some(now + EVERY);
        let devices = self.fabric.devices();
        for index in bereft {
            let core = &self.cores[index];
            if core.line.is_over() && core.running.is_over() {
                self.begin_anew(index, &devices);
            }
        }
    }

    fn end_bereft(&mut self) {
        for core in &mut self.cores {
            if core.gone == Some(Gone::Unheard) && core.line.stop(CLOSE_WITHIN) {
                core.gone = Some(Gone::Told);
            }
        }
    }

    fn begin_anew(&mut self, index: usize, devices: &[Device]) {
        let lost = &self.cores[index].device;
        let polled = |device: &Device| {
            let living = self.cores.iter().filter(|core| core.gone.is_none());
            living.filter(|core| core.device == device.name).count()
        };
        let best = devices
            .iter()
            .min_by_key(|device| (device.name != *lost, polled(device)));
        let Some(device) = best.cloned() else {
            return;
        };
        if let Err(error) = self.clamp_to(&device) {
            self.complaints.say(format_args!(
                "lcore {index}: device {}: {error:#}",
                device.name
            ));
            return;
        }
        // The old lcore has ended, and its port with it: nobody else uses this memory.
        let arena = Arc::clone(&self.cores[index].arena);
        let (plan, fabric) = (&self.plan, &mut self.fabric);
        let started = self.foundry.start(plan, fabric, index, device.name, arena);
        match started {
            Ok(core) => {
                info!("lcore {index} polls device {}", core.device);
                let old = std::mem::replace(&mut self.cores[index], core);
                if let Exit::Panicked(words) = old.running.join() {
                    error!("lcore {index}: panicked: {words}");
                }
                self.forget_bereft(index);
                self.surveyor.renew(index, devices);
            }
            Err(error) => {
                self.complaints.say(format_args!("{error:#}"));
            }
        }
    }

    /// Takes from the plan what a device cannot do that an lcore is to poll from now on: it may
    /// be another one than those that the plan was made to fit. Connections that stand keep what
    /// they have.
    fn clamp_to(&mut self, device: &Device) -> Result<()> {
        let device = std::slice::from_ref(device);
        let clamps = clamp::clamp(&mut self.plan, device)?;
        clamp::clamp(&mut self.reloading.made.built, device)?;
        for clamp in &clamps {
            warn!("{clamp}");
        }
        self.surveyor.clamped(clamps);
        Ok(())
    }

    /// Connections that the old lcore had been sent and never saw.
    fn forget_bereft(&mut self, index: usize) {
        for (number, _) in self.sessions.take_of(index) {
            self.forget_errands(number);
        }
    }
}
