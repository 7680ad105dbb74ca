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
    /// Pairs of windows.
    pub(crate) pairs: u32,
    /// Length of each window.
    pub(crate) window: Duration,
    /// What control has to do in one of the two.
    pub(crate) storm: Storm,
}

/// A window without and one with the storm, and what became of the storm.
pub(crate) struct Pair {
    pub(crate) without: Measured,
    pub(crate) with: Measured,
    pub(crate) taken: Taken,
}

/// Measures all pairs. `say` is told what is being done.
///
/// # Errors
///
/// There are no two processors, something is not to be had, a Call went wrong, or the links do not come up.
pub(crate) fn pairs(plan: &Plan, say: impl Fn(&str)) -> Result<Vec<Pair>> {
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
    let mut pairs = Vec::new();
    for number in 0..plan.pairs {
        say(&format!("pair {} of {}", number + 1, plan.pairs));
        pairs.push(pair(&mut bed, plan, first, number % 2 == 1)?);
    }
    let rest = bed.finish()?;
    let windows = pairs.iter().flat_map(|pair| [&pair.without, &pair.with]);
    for measured in windows.chain([&rest]) {
        let (calls, errors) = (measured.calls, measured.errors);
        ensure!(errors == 0, "{errors} of {calls} calls went wrong");
    }
    Ok(pairs)
}

fn pair(
    bed: &mut Bed<MemoryFabric>,
    plan: &Plan,
    processor: CoreId,
    storm_first: bool,
) -> Result<Pair> {
    let mut calm = None;
    if !storm_first {
        calm = Some(window(bed, plan.window)?);
    }
    let (with, taken) = in_storm(bed, plan, processor)?;
    let without = match calm {
        Some(measured) => measured,
        None => window(bed, plan.window)?,
    };
    Ok(Pair {
        without,
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
