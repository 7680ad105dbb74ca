//! The thread that reads from a port.
//!
//! # What it does
//!
//! It waits on the port, at most [`LOOK_EVERY`], since it has to see now and then whether it shall end or read the facts of
//! the port again, and a simulated port cannot be waited for together with something else. What arrives it sorts by
//! management class: answers to the [survey](crate::survey) stay here, everything else goes into a queue of [`QUEUE`] places,
//! and the bell rings. Facts have a place of their own, where the newest replace those nobody has taken, so that a storm of
//! reports cannot hide that the port is down.
//!
//! # What it refuses
//!
//! MADs shorter than their header, of other classes, or requests nobody has asked for are counted as strays; those that
//! find the queue full are counted as dropped. Nothing is ever waited for but the port: control may be busy.
//!
//! # How it ends
//!
//! When told so; or when the port fails [`FAULTS`] times in a row, as a removed device does: then [`Event::Ended`] is the last
//! thing that comes.

use crate::frame::{Frame, MAD_OCTETS};
use crate::smp;
use crate::subnet::{Arrived, Class, Event, Source, Undelivered};
use crate::survey::{PATIENCE, Survey};
use crate::{Facts, Fault};
use rpcrdma_fabric::bell::Bell;
use rpcrdma_ipoib::gid::{Gid, Lid};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zerocopy::FromZeros;

/// How long the reader waits for the port without looking at anything else.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What may wait for control.
pub(crate) const QUEUE: usize = 1024;
/// Failures in a row that mean that the port is gone. One may be a signal's.
const FAULTS: u32 = 3;
/// The common header of MADs.
const MAD_HEADER: usize = 24;
/// The bit of a method that makes it a response.
const RESPONSE: u8 = 0x80;
/// TrapRepress answers, and has no such bit.
const TRAP_REPRESS: u8 = 0x07;

/// What MADs go by: an open port.
pub(crate) trait Line: Send + Sync + 'static {
    /// Sends a frame by the agent it names. A request whose `timeout` is 0 gets no answer.
    fn send(&self, frame: &mut Frame, timeout: Duration) -> Result<(), Fault>;

    /// Waits for a MAD: the agent it is for. `None` when there was none, or one that is too long for the frame, which has been
    /// made longer now.
    fn receive(&self, frame: &mut Frame, wait: Duration) -> Result<Option<u32>, Fault>;
}

/// Reads what sysfs says of the port.
pub(crate) type Look = Box<dyn FnMut() -> Result<Facts, Fault> + Send>;

/// What control and the reader share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) bell: Bell,
    /// The bell was rung and is not hushed yet: a storm rings once, and not for each MAD.
    rung: AtomicBool,
    pub(crate) stop: AtomicBool,
    pub(crate) look: AtomicBool,
    pub(crate) facts: Mutex<Option<Box<Facts>>>,
    pub(crate) ended: Mutex<Option<Fault>>,
    pub(crate) dropped: AtomicU64,
    pub(crate) strays: AtomicU64,
}

impl Shared {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            bell: Bell::new()?,
            rung: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            look: AtomicBool::new(false),
            facts: Mutex::new(None),
            ended: Mutex::new(None),
            dropped: AtomicU64::new(0),
            strays: AtomicU64::new(0),
        })
    }

    /// Something has been put down for control.
    fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.bell.ring();
        }
    }

    /// To be called before looking for what was put down. Whatever comes between this and the look is found by the look, or
    /// rings.
    pub(crate) fn hush(&self) {
        if self.rung.swap(false, Ordering::AcqRel) {
            self.bell.hush();
        }
    }

    /// The newest facts, if nobody has taken them yet.
    pub(crate) fn take_facts(&self) -> Option<Box<Facts>> {
        unpoisoned(&self.facts).take()
    }

    /// Why there is no reader any more, once.
    pub(crate) fn take_end(&self) -> Option<Fault> {
        unpoisoned(&self.ended).take()
    }
}

/// The reader of a port.
pub(crate) struct Reader<L> {
    pub(crate) line: Arc<L>,
    /// The agent that asks the port itself.
    pub(crate) own_agent: u32,
    /// Requests by directed route are wanted.
    pub(crate) hears_smps: bool,
    pub(crate) look: Look,
    pub(crate) shared: Arc<Shared>,
    pub(crate) events: SyncSender<Event>,
}

impl<L: Line> Reader<L> {
    /// Reads until told to stop, or the port is gone.
    pub(crate) fn run(mut self, every: Duration) {
        let mut survey = Survey::new(every, Instant::now());
        let mut frame = Frame::with_room(MAD_OCTETS);
        let mut faults = 0;
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.turn(&mut survey);
            match self.line.receive(&mut frame, LOOK_EVERY) {
                Ok(None) => faults = 0,
                Ok(Some(_)) => {
                    faults = 0;
                    self.sort(&mut survey, &mut frame);
                }
                Err(fault) if is_nothing(fault.errno) => {}
                Err(fault) => {
                    faults += 1;
                    if faults == FAULTS {
                        self.end(fault);
                        return;
                    }
                }
            }
        }
    }

    /// What time has brought to the survey.
    fn turn(&mut self, survey: &mut Survey) {
        let now = Instant::now();
        if self.shared.look.swap(false, Ordering::Relaxed) {
            survey.ask(now);
        }
        if survey.is_due(now) {
            match (self.look)() {
                Ok(facts) => self.ask(survey.begin(facts, now)),
                Err(_) => survey.put_off(now),
            }
        }
        if let Some(facts) = survey.settle(now) {
            *unpoisoned(&self.shared.facts) = Some(Box::new(facts));
            self.shared.ring();
        }
    }

    /// Questions to the port itself. One that cannot be sent is one without an answer.
    fn ask(&self, questions: Vec<(smp::Question, u32)>) {
        for (question, transaction) in questions {
            let mut header = crate::frame::Header::new_zeroed();
            header.agent_id = self.own_agent;
            header.lid = 0xFFFF.into();
            let mut frame = Frame::of(header, &smp::emit(question, transaction));
            let _ = self.line.send(&mut frame, PATIENCE);
        }
    }

    /// A MAD came, or came back.
    fn sort(&self, survey: &mut Survey, frame: &mut Frame) {
        let header = *frame.header();
        let mad = frame.mad_mut();
        let class = match mad.get(1) {
            _ if mad.len() < MAD_HEADER => None,
            Some(0x03) => Some(Class::Administration),
            Some(0x81) => Some(Class::DirectedRoute),
            _ => None,
        };
        let Some(class) = class else {
            self.shared.strays.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let method = mad[3];
        let is_reply = method & RESPONSE != 0 || method == TRAP_REPRESS;
        match (class, header.status, is_reply) {
            (Class::DirectedRoute, 0, true) => survey.answered(mad),
            (Class::DirectedRoute, 0, false) if !self.hears_smps => {
                self.shared.strays.fetch_add(1, Ordering::Relaxed);
            }
            // Of ours; without an answer the round ends by itself.
            (Class::DirectedRoute, 1.., _) => {}
            (_, 0, _) => {
                if is_reply {
                    // Whose agent it is, which is the kernel's business.
                    mad[8..12].fill(0);
                }
                self.put(Event::Arrived(Arrived {
                    class,
                    source: source(&header),
                    mad: mad.to_vec(),
                }));
            }
            // A reply of ours that could not be sent: whoever asked will ask again.
            (_, 1.., true) => {
                self.shared.strays.fetch_add(1, Ordering::Relaxed);
            }
            (_, status, false) => self.put(Event::Undelivered {
                transaction: transaction(mad),
                why: match status.cast_signed() {
                    libc::ETIMEDOUT => Undelivered::NoReply,
                    errno => Undelivered::NotSent(errno),
                },
            }),
        }
    }

    fn put(&self, event: Event) {
        match self.events.try_send(event) {
            Ok(()) => self.shared.ring(),
            Err(TrySendError::Full(_)) => {
                self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            }
            // Nobody is there any more, and soon it will be said.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }

    /// The last there is to say: it has a place of its own, and is found after all else.
    fn end(self, fault: Fault) {
        *unpoisoned(&self.shared.ended) = Some(fault);
        self.shared.ring();
    }
}

/// Nobody panics with one of these locks; and if so, what is in it is whole.
fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nothing came, whatever the reason.
const fn is_nothing(errno: i32) -> bool {
    matches!(errno, libc::EAGAIN | libc::EINTR)
}

fn transaction(mad: &[u8]) -> u32 {
    mad.get(12..16)
        .and_then(|octets| octets.try_into().ok())
        .map_or(0, u32::from_be_bytes)
}

fn source(header: &crate::frame::Header) -> Source {
    Source {
        lid: Lid(header.lid.get()),
        sl: header.sl,
        queue_pair: header.qpn.get(),
        gid: (header.grh_present != 0).then_some(Gid(header.gid)),
    }
}

#[cfg(test)]
mod tests;
