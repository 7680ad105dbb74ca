//! EAL itself: there is one per process, once.
//!
//! # Life
//!
//! EAL is started at most once in the life of a process, by the thread that becomes its main
//! lcore; a second start is refused, after a failed one too: what it left behind is not for a
//! second try. Its workers wait for jobs until the process ends.
//!
//! Ending it unmaps its memory. Whoever holds a zone or runs a job is counted; [`Eal::end`]
//! ends EAL only when there is nobody, and bars the door before it looks. Otherwise the process
//! exits with it, which costs nothing but DPDK's own tidying.

use crate::fault::{Fault, text};
use crate::ffi;
use crate::job::{Lcore, Task};
use crate::log::{self, Hear};
use crate::port::Port;
use crate::zone::{Socket, Zone};
use libc::{E2BIG, EALREADY, EINVAL, EPERM};
use std::ffi::{CString, c_char, c_int};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Users counted, with [`ENDED`] in the same word.
const ENDED: u32 = 1 << 31;

static EAL: OnceLock<Eal> = OnceLock::new();

/// EAL, up in this process.
#[derive(Debug)]
pub struct Eal {
    workers: Vec<Lcore>,
    /// Zones and jobs there are; `ENDED` once there are to be no more.
    users: AtomicU32,
}

/// The release of the libdpdk that is loaded: `22.11.4`.
#[must_use]
pub fn version() -> String {
    let version = text(ffi::shim_version());
    version.trim_start_matches("DPDK ").to_owned()
}

impl Eal {
    /// Starts EAL with the caller's thread as its main lcore, number 0, and a worker for each of
    /// `processors`, pinned there, numbered from 1. The main lcore may use `main`.
    ///
    /// `arguments` are those of EAL without the program's name and without the lcores, which
    /// are derived from the above. `hear` gets DPDK's log, line by line.
    ///
    /// # Errors
    ///
    /// What EAL says, its last complaints with it; or EAL was started before.
    pub fn start(
        main: &[usize],
        processors: &[usize],
        arguments: &[String],
        hear: Hear,
    ) -> Result<&'static Eal, Fault> {
        static STARTED: AtomicBool = AtomicBool::new(false);
        if STARTED.swap(true, Ordering::AcqRel) {
            return Err(Fault::of("rte_eal_init", -EALREADY));
        }
        let room = ffi::shim_lcores_max() as usize;
        if processors.len() >= room {
            let meaning = format!("this DPDK takes {room} lcores, the control thread's included");
            return Err(Fault::ours("rte_eal_init", E2BIG, &meaning));
        }
        log::listen(hear);
        init(&line(main, processors, arguments))?;
        let workers = (1..).zip(processors);
        let workers = workers.map(|(id, &processor)| Lcore { id, processor });
        let workers: Vec<_> = workers
            .filter(|worker| ffi::shim_lcore_exists(worker.id) != 0)
            .collect();
        Ok(EAL.get_or_init(|| Eal {
            workers,
            users: AtomicU32::new(0),
        }))
    }

    /// EAL, where it was started and has not ended.
    #[must_use]
    pub fn running() -> Option<&'static Eal> {
        let up = |eal: &&Eal| eal.users.load(Ordering::Acquire) & ENDED == 0;
        EAL.get().filter(up)
    }

    /// Its workers.
    #[must_use]
    pub fn workers(&self) -> &[Lcore] {
        &self.workers
    }

    /// Its memory is on huge pages.
    #[must_use]
    pub fn has_hugepages(&self) -> bool {
        ffi::shim_has_hugepages() != 0
    }

    /// Devices are given virtual addresses, so that memory without a gap is so for them too.
    #[must_use]
    pub fn gives_devices_virtual_addresses(&self) -> bool {
        ffi::shim_iova_is_virtual() != 0
    }

    /// The directory of its sockets.
    #[must_use]
    pub fn runtime_directory(&self) -> String {
        text(ffi::shim_runtime_directory())
    }

    /// Has a worker run `job`. A panic in it ends the job and nothing else.
    ///
    /// # Errors
    ///
    /// The worker is not one of EAL's, or has a job (EBUSY).
    pub fn launch(
        &'static self,
        lcore: Lcore,
        job: impl FnOnce() + Send + 'static,
    ) -> Result<Task, Fault> {
        self.hold("rte_eal_remote_launch")?;
        let job = Box::new(move || {
            // Also when it panics.
            let _held = Held(self);
            job();
        });
        Task::launch(lcore, job).inspect_err(|_| self.let_go())
    }

    /// Reserves a zone: `bytes` octets on `socket`, from a multiple of `align` on.
    ///
    /// # Errors
    ///
    /// EAL has no such run of memory there, or a zone of this name (at most 31 octets).
    pub fn zone(
        &'static self,
        name: &str,
        bytes: u64,
        socket: Socket,
        align: u32,
    ) -> Result<Zone, Fault> {
        self.hold("rte_memzone_reserve_aligned")?;
        Zone::reserve(self, name, bytes, socket, align).inspect_err(|_| self.let_go())
    }

    /// Ends EAL, unless a zone or a job is left. True when it has ended; nobody can use it then.
    pub fn end(&self) -> bool {
        let ended = self
            .users
            .compare_exchange(0, ENDED, Ordering::AcqRel, Ordering::Relaxed);
        if ended.is_err() {
            return false;
        }
        // SAFETY: no zone is left whose memory goes now, no worker runs a job of ours, and from
        // here on none of both is had any more.
        let status = unsafe { ffi::shim_eal_cleanup() };
        debug_assert!(status >= 0, "ending EAL: {status}");
        true
    }

    /// A port of this name, started: see [`Port::open`].
    ///
    /// # Errors
    ///
    /// There is none, it is open already, or its driver refuses; the last is closed then.
    pub fn port(&'static self, name: &str, mtu: u16, frames: u32) -> Result<Port, Fault> {
        // Held for good: frames may be anywhere, and their memory is EAL's.
        self.hold("rte_eth_dev_configure")?;
        Port::open(name, mtu, frames).inspect_err(|_| self.let_go())
    }

    fn hold(&self, call: &'static str) -> Result<(), Fault> {
        let held = self
            .users
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| {
                (users < ENDED - 1).then(|| users + 1)
            });
        match held {
            Ok(_) => Ok(()),
            Err(_) => Err(Fault::ours(call, EPERM, "EAL has ended")),
        }
    }

    pub(crate) fn let_go(&self) {
        self.users.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One user fewer when dropped.
struct Held(&'static Eal);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

/// The whole command line.
fn line(main: &[usize], processors: &[usize], arguments: &[String]) -> Vec<String> {
    let list = |processors: &[usize]| {
        let numbers: Vec<_> = processors.iter().map(usize::to_string).collect();
        numbers.join(",")
    };
    let mut lcores = format!("0@({})", list(main));
    for (id, processor) in (1..).zip(processors) {
        lcores.push_str(&format!(",{id}@{processor}"));
    }
    let derived = ["rpcrdmad", "--lcores", &lcores, "--main-lcore", "0"];
    let derived = derived.into_iter().map(str::to_owned);
    derived.chain(arguments.iter().cloned()).collect()
}

fn init(line: &[String]) -> Result<(), Fault> {
    const CALL: &str = "rte_eal_init";
    let words = line.iter().map(|word| CString::new(word.as_str()));
    let Ok(words) = words.collect::<Result<Vec<_>, _>>() else {
        let meaning = "an argument has a zero octet in it";
        return Err(Fault::ours(CALL, EINVAL, meaning));
    };
    let Ok(count) = c_int::try_from(words.len()) else {
        return Err(Fault::ours(CALL, E2BIG, "too many arguments"));
    };
    // EAL keeps pointers into them for as long as it runs: they are never freed. They end in a
    // null pointer, as those of a program do, which the parser counts on.
    let pointers = words.into_iter().map(CString::into_raw);
    let pointers: Vec<*mut c_char> = pointers.chain([std::ptr::null_mut()]).collect();
    let pointers = Vec::leak(pointers);
    // SAFETY: `count` strings that end in zero octets, which live on; C may write them.
    let status = unsafe { ffi::shim_eal_init(count, pointers.as_mut_ptr()) };
    if status < 0 {
        return Err(Fault::of(CALL, status));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lcores_are_derived_from_the_plan() {
        let line = line(&[0, 1], &[3, 1], &["--no-pci".to_owned()]);
        assert_eq!(
            line.join(" "),
            "rpcrdmad --lcores 0@(0,1),1@3,2@1 --main-lcore 0 --no-pci"
        );
    }

    #[test]
    fn the_release_is_told_before_anything_runs() {
        let version = version();
        let major = version.split('.').next().unwrap_or_default();
        assert!(
            major.parse::<u32>().is_ok_and(|major| major >= 22),
            "{version}"
        );
    }
}
