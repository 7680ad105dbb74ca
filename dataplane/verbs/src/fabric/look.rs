//! Reading everything that control can be told, without waiting.

use super::{Known, VerbsFabric};
use crate::cm::{Happening, What};
use crate::device::{News, next};
use crate::error::Error;
use rpcrdma_fabric::connect::{ConnectionId, ListenerId};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the descriptors behind the one are called: these, and devices by their numbers.
pub(super) const BELL: u64 = 0;
pub(super) const CHANNEL: u64 = 1;

/// Descriptors that are looked at in one go.
const DESCRIPTORS: usize = 16;
/// Events of one descriptor that are read in one go: the others get their turn, too.
const AT_ONCE: usize = 64;
/// How often it is looked which devices are there: nothing tells.
const DEVICES: Duration = Duration::from_secs(1);

impl VerbsFabric {
    /// Has `descriptor` looked at when it is readable.
    pub(super) fn watch(&self, descriptor: BorrowedFd<'_>, name: u64) -> Result<(), Error> {
        epoll::add(
            &self.epoll,
            descriptor,
            EventData::new_u64(name),
            EventFlags::IN,
        )
        .map_err(|error| Error::System(error.into()))
    }

    /// Reads what is there.
    pub(super) fn look(&mut self) {
        let mut ready: Vec<epoll::Event> = Vec::with_capacity(DESCRIPTORS);
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // Interrupted: another look follows.
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut ready), Some(&now));
        for event in ready {
            match event.data.u64() {
                BELL => {
                    self.bell.hush();
                    self.hear_ports();
                    self.hear_names();
                    self.hear_others();
                }
                CHANNEL => self.hear_manager(),
                device => self.hear_device(device),
            }
        }
        if self.looked.elapsed() >= DEVICES {
            self.looked = Instant::now();
            self.look_for_devices();
        }
    }

    fn hear_manager(&mut self) {
        for _ in 0..AT_ONCE {
            let Some(happening) = self.channel.next() else {
                return;
            };
            self.route(happening);
        }
    }

    /// To the listener or the connection that it is for, if that is still there.
    fn route(&mut self, happening: Happening) {
        let number = happening.number;
        let listener = u32::try_from(number).ok().map(ListenerId);
        let listener = listener.filter(|id| self.listeners.contains_key(id));
        match (listener, happening.what) {
            (Some(id), What::Request) => self.take_request(id, happening),
            (Some(id), What::DeviceRemoval | What::AddressChange) => self.lose_listener(id),
            (Some(_), _) => {}
            (None, _) => self.heed(ConnectionId(number), &happening),
        }
    }

    fn hear_device(&mut self, number: u64) {
        for _ in 0..AT_ONCE {
            let known = self.devices.iter().find(|known| known.number == number);
            let Some(known) = known.filter(|known| !known.gone) else {
                return;
            };
            let Some(news) = next(&known.device) else {
                return;
            };
            known.share.tell_others(news);
            self.take_news(number, news);
        }
    }

    /// What other fabrics of this process have read of the devices that this one is on, too.
    fn hear_others(&mut self) {
        let there = self.devices.iter().filter(|known| !known.gone);
        let shares: Vec<_> = there
            .map(|known| (known.number, Arc::clone(&known.share)))
            .collect();
        for (number, share) in shares {
            while let Some(news) = share.next().filter(|_| self.has(number)) {
                self.take_news(number, news);
            }
        }
    }

    /// The device of this number is there.
    fn has(&self, number: u64) -> bool {
        let there = |known: &Known| known.number == number && !known.gone;
        self.devices.iter().any(there)
    }

    fn take_news(&mut self, number: u64, news: News) {
        match news {
            News::LinkDown(link) => self.lose_link(number, link),
            News::LinkUp(link) => self.regain_link(number, link),
            News::Gone => self.lose_device(number),
            News::QueueBroken(queue) => self.lose_port(queue),
            News::PairBroken(pair) => self.lose_pair(pair),
            News::PairReached(pair) => self.note_reached(pair),
            News::Changed(link, change) => self.note_change(number, link, change),
            News::Other => {}
        }
    }
}
