//! Time: one set of timers for everything, and what is done when they come.

use super::{Key, LinkId, Node};
use crate::time::Moment;

/// What a timer is for. Of groups and links there is one at most, remembered in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A group has something to do.
    Group(Key),
    /// A link makes another attempt.
    Link(LinkId),
    /// A subscription is renewed, or asked for again.
    Subscription(u8),
    /// A link's neighbours have something to do.
    Neighbours(LinkId),
    /// A link's address is asked for once more, was asked for long enough, or is tried again.
    Address(LinkId),
    /// The list of all groups is looked at.
    Census,
    /// Entries that are worth nothing any more are removed.
    Sweep,
    /// Closing has taken long enough.
    Close,
}

impl Node {
    /// Does what is due.
    pub fn pass(&mut self, now: Moment) {
        if self.closed {
            return;
        }
        if self.can_ask() {
            while let Some(settled) = self.sa.expired(now) {
                self.outcome(now, settled);
            }
        }
        while let Some(&(due, timer)) = self.timers.first()
            && due <= now
        {
            self.timers.pop_first();
            self.fire(now, timer);
        }
        self.settle(now);
    }

    fn fire(&mut self, now: Moment, timer: Timer) {
        match timer {
            Timer::Group(key) => {
                if let Some(group) = self.groups.get_mut(&key) {
                    group.timer = None;
                }
                self.drive(now, key);
            }
            Timer::Link(id) => {
                if let Some(link) = self.link_mut(id) {
                    link.timer = None;
                }
                self.retry_link(now, id);
            }
            Timer::Subscription(index) => self.renew_subscription(index),
            Timer::Neighbours(id) => self.pass_neighbours(now, id),
            Timer::Address(id) => self.pass_address(now, id),
            Timer::Census => self.take_census(now),
            Timer::Sweep => self.sweep(now),
            Timer::Close => {}
        }
    }

    /// Sets a group's one timer.
    pub(super) fn arm_group(&mut self, key: Key, due: Moment) {
        let Some(group) = self.groups.get_mut(&key) else {
            return;
        };
        let wanted = (due < Moment(u64::MAX)).then_some(due);
        if group.timer == wanted {
            return;
        }
        if let Some(old) = std::mem::replace(&mut group.timer, wanted) {
            self.timers.remove(&(old, Timer::Group(key)));
        }
        if let Some(due) = wanted {
            self.timers.insert((due, Timer::Group(key)));
        }
    }

    /// Sets a link's one timer.
    pub(super) fn arm_link(&mut self, id: LinkId, due: Moment) {
        let Some(link) = self.link_mut(id) else {
            return;
        };
        if let Some(old) = link.timer.replace(due) {
            self.timers.remove(&(old, Timer::Link(id)));
        }
        self.timers.insert((due, Timer::Link(id)));
    }

    /// Sets the one timer of something that there is one of.
    pub(super) fn arm(&mut self, timer: Timer, due: Moment) {
        self.disarm(timer);
        self.timers.insert((due, timer));
        self.singles.insert(timer, due);
    }

    /// Sets it no more.
    pub(super) fn disarm(&mut self, timer: Timer) {
        if let Some(due) = self.singles.remove(&timer) {
            self.timers.remove(&(due, timer));
        }
    }

    /// Removes what was only remembered and is old, or was left for good.
    fn sweep(&mut self, now: Moment) {
        let cache_ms = self.settings.timing.cache_ms;
        for key in self.keys() {
            let old = self.groups.get(&key).is_some_and(|group| {
                let unused = group.sent.is_none_or(|sent| now.since(sent) >= cache_ms);
                group.is_idle() && unused
            });
            if old {
                self.remove(key);
            }
        }
        self.arm(Timer::Sweep, now.after(cache_ms));
    }

    /// Removes an entry that is idle.
    pub(super) fn remove(&mut self, key: Key) {
        if let Some(group) = self.groups.remove(&key)
            && let Some(due) = group.timer
        {
            self.timers.remove(&(due, Timer::Group(key)));
        }
    }
}
