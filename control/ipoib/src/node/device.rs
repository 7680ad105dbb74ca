//! What the device says: queue pairs made, attachments made and ended, and how many there can be.

use super::groups::advance;
use super::{Attachment, Gauges, Key, LinkId, Node, Output};
use crate::gid::Gid;
use crate::group::{self, Group};
use crate::link::{Event, Phase, QueuePair};
use crate::time::Moment;
use crate::trouble::{Cause, Failure, Ignored, Operation, Trouble};

impl Node {
    /// Has the queue pair made that the link's attributes call for; one that is there already serves if it is the same.
    pub(super) fn open_queue(&mut self, now: Moment, id: LinkId) {
        let Some(link) = self.link(id) else {
            return;
        };
        let Ok(index) = link.permitted(self.port.as_ref()) else {
            return;
        };
        let Some(opening) = link.opening(id, index) else {
            return;
        };
        match link.queue {
            QueuePair::Open(made, _) if made == opening => {
                self.move_link(id, Event::Opened);
                self.drive_broadcast(now, id);
                return;
            }
            // its answer will be compared with what is needed by then
            QueuePair::Opening(_) => return,
            QueuePair::Open(..) => self.discard_queue(now, id),
            QueuePair::None => {}
        }
        if let Some(link) = self.link_mut(id) {
            link.queue = QueuePair::Opening(opening);
        }
        self.outputs.push_back(Output::Open(opening));
    }

    /// The answer to [`Output::Open`]: the queue pair's number, or the `errno` of why there is none.
    pub fn queue_opened(&mut self, now: Moment, id: LinkId, made: Result<u32, i32>) {
        let Some(QueuePair::Opening(opening)) = self.link(id).map(|link| link.queue) else {
            self.ledger.ignored(Ignored::StaleWord);
            return;
        };
        let queue = made.map_or(QueuePair::None, |qpn| QueuePair::Open(opening, qpn));
        let Some(link) = self.link_mut(id) else {
            return;
        };
        link.queue = queue;
        let wanted = link.phase == Phase::Opening;
        match made {
            Ok(_) if wanted => self.open_queue(now, id),
            Ok(_) => {}
            Err(errno) => {
                self.failed(
                    now,
                    Failure {
                        operation: Operation::Open,
                        cause: Cause::Device,
                        refusal: None,
                        code: errno,
                        link: Some(id),
                        mgid: None,
                        background: false,
                    },
                );
                if wanted {
                    self.rest_link(now, id);
                }
            }
        }
        self.settle(now);
    }

    fn drive_broadcast(&mut self, now: Moment, id: LinkId) {
        if let Some(mgid) = self.link(id).and_then(|link| link.broadcast) {
            self.drive(now, Key { link: id, mgid });
        }
    }

    /// The answer to [`Output::Attach`]: done, or an `errno`.
    pub fn attached(&mut self, now: Moment, to: Attachment, done: Result<(), i32>) {
        let Some(key) = self.expects(to, group::Phase::Attaching) else {
            return;
        };
        match done {
            Ok(()) => {
                self.change(now, key, |group| {
                    group.attached = Some(to.mlid);
                    group.failures = 0;
                    advance(group, group.still());
                });
                self.drive(now, key);
            }
            Err(errno) => self.device_failed(now, key, Operation::Attach, errno),
        }
        self.settle(now);
    }

    /// The answer to [`Output::Detach`]: done, or an `errno`. What cannot be detached counts as detached all the same: the
    /// membership is left, and the queue pair gets no more of the group's packets.
    pub fn detached(&mut self, now: Moment, from: Attachment, done: Result<(), i32>) {
        let Some(key) = self.expects(from, group::Phase::Detaching) else {
            return;
        };
        if let Err(errno) = done {
            let operation = Operation::Detach;
            self.group_failed(now, key, operation, Cause::Device, None, errno);
        }
        self.change(now, key, |group| {
            group.attached = None;
            advance(group, group.still());
        });
        self.drive(now, key);
        self.settle(now);
    }

    /// The group that a word of the device is about, if it is awaited: not one about a queue pair that is no more.
    fn expects(&mut self, about: Attachment, phase: group::Phase) -> Option<Key> {
        let key = Key {
            link: about.link,
            mgid: about.mgid,
        };
        let waits = |group: &Group| group.phase == phase;
        let awaited = self.groups.get(&key).is_some_and(waits);
        if !awaited {
            self.ledger.ignored(Ignored::StaleWord);
        }
        awaited.then_some(key)
    }

    fn device_failed(&mut self, now: Moment, key: Key, operation: Operation, errno: i32) {
        self.group_failed(now, key, operation, Cause::Device, None, errno);
        self.rest_group(now, key);
        self.drive(now, key);
        let coming_up = |link: &crate::link::Link| {
            link.phase == Phase::Attaching && link.broadcast == Some(key.mgid)
        };
        if self.link(key.link).is_some_and(coming_up) {
            self.rest_link(now, key.link);
        }
    }
}

/// The queue pair of a group's link is destroyed: nothing is attached. A word about it may still come, and is not awaited:
/// answers come in order, so it comes before that to the opening of the next queue pair, and nothing is attached before.
pub(super) fn queue_is_gone(group: &mut Group) {
    group.attached = None;
    if matches!(
        group.phase,
        group::Phase::Attaching | group::Phase::Detaching
    ) {
        advance(group, group.still());
    }
}

impl Gauges {
    /// One more queue pair is attached to a group; warnings, if the device is nearly full.
    pub(super) fn attach(&mut self, mgid: Gid) -> [Option<Trouble>; 2] {
        let attached = self.attached.entry(mgid).or_insert(0);
        *attached += 1;
        let first = *attached == 1;
        [
            first.then(|| self.groups.take()).flatten(),
            self.attachments.take(),
        ]
    }

    /// One less.
    pub(super) fn detach(&mut self, mgid: Gid) {
        self.attachments.give();
        let Some(attached) = self.attached.get_mut(&mgid) else {
            return;
        };
        *attached -= 1;
        if *attached == 0 {
            self.attached.remove(&mgid);
            self.groups.give();
        }
    }
}
