//! A thread that makes the address handles which the kernel may wait for.
//!
//! On Ethernet the hardware address of a single receiver is asked for when its handle is made, and
//! the caller is held up until somebody answers or a second has gone by. Receivers are named by
//! peers; so it is not control that waits for them, but this thread, one after the other, and no
//! more of them than a few.

use super::way::{AddressHandle, Origin, Way};
use crate::error::Fault;
use crate::object::Device;
use rpcrdma_fabric::bell::Bell;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Ways that are looked for or wait for it.
const ASKED_MOST: usize = 16;

/// What came of a way.
pub(super) type Found = (Way, Result<AddressHandle, Fault>);

/// The thread, as its owner knows it. It ends, a second later at most, when this is dropped.
#[derive(Debug)]
pub(super) struct Resolver {
    ask: SyncSender<Way>,
    found: Receiver<Found>,
    asked: HashSet<Way>,
}

impl Resolver {
    /// Starts it. `bell` is rung with each answer.
    pub(super) fn start(
        device: &Arc<Device>,
        origin: Origin,
        bell: &Arc<Bell>,
    ) -> io::Result<Resolver> {
        let (ask, questions) = sync_channel::<Way>(ASKED_MOST);
        // As many answers as questions: the thread never waits for its owner.
        let (answers, found) = sync_channel(ASKED_MOST);
        let (device, bell) = (Arc::clone(device), Arc::clone(bell));
        thread::Builder::new()
            .name("ud-resolver".to_owned())
            .spawn(move || {
                for way in questions {
                    let made = AddressHandle::new(&device, origin, &way);
                    if answers.send((way, made)).is_err() {
                        return;
                    }
                    bell.ring();
                }
            })?;
        Ok(Resolver {
            ask,
            found,
            asked: HashSet::new(),
        })
    }

    /// Has a way looked for, if it is not already. False when too many are.
    pub(super) fn ask(&mut self, way: Way) -> bool {
        if self.asked.contains(&way) {
            return true;
        }
        let asked = self.asked.len() < ASKED_MOST && self.ask.try_send(way).is_ok();
        if asked {
            self.asked.insert(way);
        }
        asked
    }

    /// Something is being looked for.
    pub(super) fn is_busy(&self) -> bool {
        !self.asked.is_empty()
    }

    /// The next that was found, or was not.
    pub(super) fn next(&mut self) -> Option<Found> {
        let found = self.found.try_recv().ok()?;
        self.asked.remove(&found.0);
        Some(found)
    }
}
