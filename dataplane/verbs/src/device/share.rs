//! Devices that several fabrics of this process are on.
//!
//! The connection manager lends the same context of a device to all of them, so there is one
//! descriptor that the device's events come by, and whoever reads an event has taken it from the
//! others: it tells them. And what is gone may be cut off from the kernel only when none of them
//! has anything left of it.

use super::News;
use crate::object::Context;
use rpcrdma_fabric::bell::Bell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Most that waits for one fabric: what is older is lost, should it never look.
const TOLD_MOST: usize = 4096;

/// All shares of this process.
static SHARES: Mutex<Vec<Weak<Share>>> = Mutex::new(Vec::new());

/// One fabric's share of a device.
#[derive(Debug)]
pub(crate) struct Share {
    /// The device's context, by address.
    context: usize,
    told: Mutex<VecDeque<News>>,
    bell: Arc<Bell>,
}

impl Share {
    /// A share of a device, for as long as it is kept. `bell` is rung with what others tell.
    pub(crate) fn of(context: Context, bell: &Arc<Bell>) -> Arc<Share> {
        Share::at(context.raw().addr(), bell)
    }

    fn at(context: usize, bell: &Arc<Bell>) -> Arc<Share> {
        let share = Arc::new(Share {
            context,
            told: Mutex::default(),
            bell: Arc::clone(bell),
        });
        let mut shares = lock(&SHARES);
        shares.retain(|share| share.strong_count() > 0);
        shares.push(Arc::downgrade(&share));
        share
    }

    /// Tells the others what was read here.
    pub(crate) fn tell_others(&self, news: News) {
        for other in shares_of(self.context) {
            if !std::ptr::eq(self, &raw const *other) {
                other.put(news);
            }
        }
    }

    /// The same thing waits once.
    fn put(&self, news: News) {
        let mut told = lock(&self.told);
        told.retain(|waiting| *waiting != news);
        if told.len() >= TOLD_MOST {
            told.pop_front();
        }
        told.push_back(news);
        self.bell.ring();
    }

    /// The next that another has read.
    pub(crate) fn next(&self) -> Option<News> {
        lock(&self.told).pop_front()
    }
}

/// Some fabric of this process has a share of a device.
pub(crate) fn is_shared(context: Context) -> bool {
    !shares_of(context.raw().addr()).is_empty()
}

fn shares_of(context: usize) -> Vec<Arc<Share>> {
    let shares = lock(&SHARES);
    let all = shares.iter().filter_map(Weak::upgrade);
    all.filter(|share| share.context == context).collect()
}

fn lock<T>(books: &Mutex<T>) -> MutexGuard<'_, T> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::PairName;

    fn bell() -> Arc<Bell> {
        Arc::new(Bell::new().expect("a descriptor"))
    }

    #[test]
    fn what_one_reads_the_others_on_the_device_hear_once() {
        let bell = bell();
        let [one, other, elsewhere] = [0x1000, 0x1000, 0x2000].map(|at| Share::at(at, &bell));
        for news in [News::LinkDown(1), News::LinkUp(1), News::LinkDown(1)] {
            one.tell_others(news);
        }
        assert_eq!(one.next(), None);
        assert_eq!(elsewhere.next(), None);
        assert_eq!(other.next(), Some(News::LinkUp(1)));
        assert_eq!(
            other.next(),
            Some(News::LinkDown(1)),
            "the last is the last"
        );
        assert_eq!(other.next(), None);
    }

    #[test]
    fn a_share_ends_with_whoever_keeps_it() {
        let bell = bell();
        let one = Share::at(0x3000, &bell);
        let other = Share::at(0x3000, &bell);
        assert_eq!(shares_of(0x3000).len(), 2);
        drop(other);
        one.tell_others(News::Gone);
        assert_eq!(shares_of(0x3000).len(), 1);
        drop(one);
        assert!(shares_of(0x3000).is_empty());
    }

    #[test]
    fn one_that_never_looks_is_told_the_latest() {
        let bell = bell();
        let one = Share::at(0x4000, &bell);
        let other = Share::at(0x4000, &bell);
        let name = |address| PairName { address, number: 1 };
        for address in 0..=TOLD_MOST {
            one.tell_others(News::PairReached(name(address)));
        }
        assert_eq!(other.next(), Some(News::PairReached(name(1))));
    }
}
