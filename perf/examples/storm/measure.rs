//! The windows.

use crate::control::{Control, Storm, Taken};
use anyhow::{Context, Result, anyhow, bail, ensure};
use core_affinity::{CoreId, get_core_ids, set_for_current};
use rpcrdma_lcore::Idle;
use rpcrdma_memory::MemoryFabric;
use rpcrdma_perf::bed::{Bed, Place, Wanted};
use rpcrdma_perf::load::Measured;
use rpcrdma_perf::workload::Workload;
use rpcrdma_wire::Version;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long Calls are made before any is measured.
const WARM_UP: Duration = Duration::from_millis(300);
/// How long the storm goes on before a window begins: by then everything that it brings about has begun.
const RISING: Duration = Duration::from_millis(200);

/// What is to be measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Rounds of three windows.
    pub(crate) rounds: u32,
    /// Length of each window.
    pub(crate) window: Duration,
    /// What control has to do in one of the three.
    pub(crate) storm: Storm,
}

/// A window with the storm and two without, and what became of the storm.
pub(crate) struct Round {
    pub(crate) without: Measured,
    /// The other one without: what the two differ by is what the measurement is good for.
    pub(crate) again: Measured,
    pub(crate) with: Measured,
    pub(crate) taken: Taken,
}

/// Measures all rounds. `say` is told what is being done.
///
/// # Errors
///
/// There are no two processors, something is not to be had, a Call went wrong, or the links do not come up.
pub(crate) fn rounds(plan: &Plan, say: impl Fn(&str)) -> Result<Vec<Round>> {
    let cores = get_core_ids().unwrap_or_default();
    let [first, .., last] = cores[..] else {
        bail!("an lcore and control want a processor each");
    };
    // This thread has little to do, and that is not to be where the lcore is.
    set_for_current(first);
    let wanted = Wanted {
        workload: Workload::Null,
        depth: 1,
        connections: 1,
        lcores: 1,
        version: Version::Two,
        idle: Idle::Spin,
    };
    let here = Place::Here("storm".to_owned());
    let mut bed = Bed::on_processors(wanted, MemoryFabric::new(), here, &[last])?;
    bed.run_for(WARM_UP, |_| ());
    let mut rounds = Vec::new();
    for number in 0..plan.rounds {
        say(&format!("round {} of {}", number + 1, plan.rounds));
        rounds.push(round(&mut bed, plan, first, number)?);
    }
    let rest = bed.finish()?;
    let windows = rounds.iter().flat_map(Round::windows);
    for measured in windows.chain([&rest]) {
        let (calls, errors) = (measured.calls, measured.errors);
        ensure!(errors == 0, "{errors} of {calls} calls went wrong");
    }
    Ok(rounds)
}

impl Round {
    pub(crate) fn windows(&self) -> [&Measured; 3] {
        [&self.without, &self.again, &self.with]
    }
}

/// The storm comes first, second and last in turn, and of the two windows without either is the other one in turn.
fn round(
    bed: &mut Bed<MemoryFabric>,
    plan: &Plan,
    processor: CoreId,
    number: u32,
) -> Result<Round> {
    let calm = |bed: &mut Bed<MemoryFabric>| window(bed, plan.window);
    let ((with, taken), one, other) = match number % 3 {
        0 => (in_storm(bed, plan, processor)?, calm(bed)?, calm(bed)?),
        1 => {
            let one = calm(bed)?;
            (in_storm(bed, plan, processor)?, one, calm(bed)?)
        }
        _ => {
            let (one, other) = (calm(bed)?, calm(bed)?);
            (in_storm(bed, plan, processor)?, one, other)
        }
    };
    let (without, again) = match number / 3 % 2 {
        0 => (one, other),
        _ => (other, one),
    };
    Ok(Round {
        without,
        again,
        with,
        taken,
    })
}

/// What the load measures in that time.
fn window(bed: &mut Bed<MemoryFabric>, time: Duration) -> Result<Measured> {
    bed.exchange()?;
    bed.run_for(time, |_| ());
    bed.exchange()
}

/// A window, with control and its storm on that processor from before its beginning until after its end.
fn in_storm(
    bed: &mut Bed<MemoryFabric>,
    plan: &Plan,
    processor: CoreId,
) -> Result<(Measured, Taken)> {
    let over = AtomicBool::new(false);
    let (ready, is_ready) = mpsc::channel();
    thread::scope(|scope| {
        let control = scope.spawn(|| {
            set_for_current(processor);
            let control = Control::start(plan.storm)?;
            ready.send(()).context("nobody waits for the links")?;
            control.run(&over)
        });
        let measured = match is_ready.recv() {
            Ok(()) => {
                bed.run_for(RISING, |_| ());
                window(bed, plan.window)
            }
            Err(_) => Err(anyhow!("there was no storm")),
        };
        over.store(true, Ordering::Relaxed);
        let taken = control.join();
        let taken = taken.map_err(|_| anyhow!("control panicked"))??;
        Ok((measured?, taken))
    })
}
