//! Sleeping until there is something, without missing it.
//!
//! Three things can wake a port: datagrams, the bell that control rings, and the time for what
//! has to be done without either. One epoll instance stands for all. Descriptors stay readable
//! until what they announce has been read, so nothing that comes between the last look and the
//! sleep is slept over.

use super::IwarpPort;
use rpcrdma_sctp::Llp;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// What a port sleeps on.
#[derive(Debug)]
pub(super) struct Bed {
    epoll: OwnedFd,
    alarm: OwnedFd,
    armed: bool,
}

impl Bed {
    /// `bell`: what control rings.
    pub(super) fn new(bell: BorrowedFd<'_>) -> io::Result<Bed> {
        let bed = Bed {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            alarm: timerfd_create(
                TimerfdClockId::Monotonic,
                TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
            )?,
            armed: false,
        };
        bed.watch(bell)?;
        bed.watch(bed.alarm.as_fd())?;
        Ok(bed)
    }

    /// Wakes for this one too.
    pub(super) fn watch(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let nothing = EventData::new_u64(0);
        Ok(epoll::add(
            &self.epoll,
            descriptor,
            nothing,
            EventFlags::IN,
        )?)
    }

    #[inline]
    pub(super) fn is_armed(&self) -> bool {
        self.armed
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Wakes after so long, or never.
    fn set(&self, after: Option<Duration>) {
        // A time of zero would be none.
        let after = after.map_or(Duration::ZERO, |it| it.max(Duration::from_nanos(1)));
        let value = Timespec {
            tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: after.subsec_nanos().into(),
        };
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: value,
        };
        // It is a timer, and the time is one: this cannot fail.
        let set = timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &once);
        debug_assert!(set.is_ok(), "{set:?}");
    }
}

impl<L: Llp> IwarpPort<L> {
    /// Asks to be woken. False when there is something already.
    #[cold]
    pub(super) fn fall_asleep(&mut self) -> bool {
        let desk = &self.desk;
        if !desk.completions.is_empty()
            || !desk.errands.is_empty()
            || !desk.unheard.is_empty()
            || !desk.doomed.is_empty()
            || self.inbox.has_notice()
        {
            return false;
        }
        let now = Instant::now();
        let ends = self.next_end();
        let timers = self
            .sites
            .iter()
            .filter_map(|(_, site)| site.llp.deadline());
        let next = timers.chain(ends).chain([self.next_look]).min();
        let left = next.map(|next| next.saturating_duration_since(now));
        if left.is_some_and(|left| left.is_zero()) {
            return false;
        }
        self.bed.set(left);
        self.bed.armed = true;
        true
    }

    /// Awake: bell and alarm are quiet again.
    #[cold]
    pub(super) fn rise(&mut self) {
        self.bed.armed = false;
        self.bed.set(None);
        self.inbox.hush();
    }
}
