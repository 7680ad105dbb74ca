//! The reader on a port that is a script.

use super::*;
use crate::facts::tests::down;
use crate::frame::{Header, LONGEST_OCTETS};
use crate::smp::Question;
use crate::smp::tests::{answered, port_info};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, sync_channel};
use zerocopy::IntoBytes;

const SETTLED: Duration = Duration::from_secs(3600);

/// What the port does next.
enum Step {
    Mad { status: i32, mad: Vec<u8> },
    Fails(i32),
    Stop,
}

/// A port that does as it is told, and tells its reader to stop at the end.
struct Script {
    steps: Mutex<VecDeque<Step>>,
    sent: Mutex<Vec<Vec<u8>>>,
    stop: Mutex<Option<Arc<Shared>>>,
}

impl Line for Script {
    fn send(&self, frame: &mut Frame, timeout: Duration) -> Result<(), Fault> {
        assert!(!timeout.is_zero(), "the kernel would drop the answer");
        assert_eq!(frame.header().lid.get(), 0xFFFF);
        self.sent.lock().unwrap().push(frame.mad().to_vec());
        Ok(())
    }

    fn receive(&self, frame: &mut Frame, _wait: Duration) -> Result<Option<u32>, Fault> {
        let step = self.steps.lock().unwrap().pop_front();
        match step {
            Some(Step::Mad { status, mad }) if mad.len() > frame.room() => {
                assert!(frame.grow(mad.len()), "a script has no longer ones");
                let again = Step::Mad { status, mad };
                self.steps.lock().unwrap().push_front(again);
                Ok(None)
            }
            Some(Step::Mad { status, mad }) => {
                let mut header = Header::new_zeroed();
                header.status = status.cast_unsigned();
                header.lid = 1.into();
                header.qpn = 1.into();
                frame.clear();
                *frame.header_mut() = header;
                frame.arrived(mad.len());
                frame.mad_mut().copy_from_slice(&mad);
                Ok(Some(0))
            }
            Some(Step::Fails(errno)) => Err(Fault {
                call: "umad_recv",
                errno,
            }),
            Some(Step::Stop) | None => {
                let shared = self.stop.lock().unwrap().clone().unwrap();
                shared.stop.store(true, Ordering::Relaxed);
                Ok(None)
            }
        }
    }
}

/// What came of a script.
struct Outcome {
    shared: Arc<Shared>,
    events: Receiver<Event>,
    line: Arc<Script>,
}

fn play(steps: Vec<Step>, hears_smps: bool) -> Outcome {
    let shared = Arc::new(Shared::new().unwrap());
    let line = Arc::new(Script {
        steps: Mutex::new(steps.into()),
        sent: Mutex::default(),
        stop: Mutex::new(Some(Arc::clone(&shared))),
    });
    let (sender, events) = sync_channel(QUEUE);
    let reader = Reader {
        line: Arc::clone(&line),
        own_agent: 1,
        hears_smps,
        look: Box::new(|| Ok(down())),
        shared: Arc::clone(&shared),
        events: sender,
    };
    reader.run(SETTLED);
    Outcome {
        shared,
        events,
        line,
    }
}

/// A MAD of a class, method and transaction.
fn mad(class: u8, method: u8, transaction: u64) -> Vec<u8> {
    let mut mad = vec![0; MAD_OCTETS];
    mad[..4].copy_from_slice(&[1, class, 2, method]);
    mad[8..16].copy_from_slice(&transaction.to_be_bytes());
    mad
}

fn good(mad: Vec<u8>) -> Step {
    Step::Mad { status: 0, mad }
}

#[test]
fn replies_come_without_the_kernels_half_of_the_transaction_id() {
    let outcome = play(vec![good(mad(3, 0x81, 0x1234_5678_0000_0007))], false);
    let Ok(Event::Arrived(arrived)) = outcome.events.try_recv() else {
        panic!("a reply");
    };
    assert_eq!(arrived.mad[8..16], 7_u64.to_be_bytes());
    assert_eq!(arrived.source.target().lid, Lid(1));
    assert!(outcome.events.try_recv().is_err());
}

#[test]
fn reports_keep_their_whole_transaction_id() {
    let outcome = play(vec![good(mad(3, 0x06, 0x1234_5678_0000_0007))], false);
    let Ok(Event::Arrived(arrived)) = outcome.events.try_recv() else {
        panic!("a report");
    };
    assert_eq!(arrived.mad[8..16], 0x1234_5678_0000_0007_u64.to_be_bytes());
}

#[test]
fn requests_that_come_back_are_told_of_by_what_failed() {
    let failed = [libc::ETIMEDOUT, libc::EIO].map(|status| Step::Mad {
        status,
        mad: mad(3, 0x01, 0x9_0000_0005)[..MAD_HEADER].to_vec(),
    });
    let outcome = play(failed.into(), false);
    for expected in [Undelivered::NoReply, Undelivered::NotSent(libc::EIO)] {
        let event = outcome.events.try_recv().unwrap();
        let transaction = 5;
        assert_eq!(
            event,
            Event::Undelivered {
                transaction,
                why: expected
            }
        );
    }
}

#[test]
fn strays_are_counted_and_nothing_else() {
    let returned = Step::Mad {
        status: libc::EIO,
        mad: mad(3, 0x86, 1),
    };
    let strays = vec![
        good(Vec::new()),
        good(mad(3, 0x81, 1)[..MAD_HEADER - 1].to_vec()),
        good(mad(4, 0x81, 1)),
        good(mad(0x81, 0x01, 1)),
        returned,
    ];
    let count = strays.len() as u64;
    let outcome = play(strays, false);
    assert_eq!(outcome.shared.strays.load(Ordering::Relaxed), count);
    assert!(outcome.events.try_recv().is_err());
}

#[test]
fn requests_by_directed_route_are_heard_by_who_answers_them() {
    let outcome = play(vec![good(mad(0x81, 0x01, 1))], true);
    let Ok(Event::Arrived(arrived)) = outcome.events.try_recv() else {
        panic!("a request");
    };
    assert_eq!(arrived.class, Class::DirectedRoute);
}

#[test]
fn a_queue_that_nobody_empties_drops_the_latest_and_counts_them() {
    let storm = (0..QUEUE as u64 + 5).map(|transaction| good(mad(3, 0x06, transaction)));
    let outcome = play(storm.collect(), false);
    assert_eq!(outcome.shared.dropped.load(Ordering::Relaxed), 5);
    assert_eq!(outcome.events.try_iter().count(), QUEUE);
}

#[test]
fn a_storm_rings_once_and_what_comes_after_a_hush_rings_again() {
    let storm = |many: u64| {
        (0..many)
            .map(|transaction| good(mad(3, 0x06, transaction)))
            .collect()
    };
    let outcome = play(storm(100), false);
    assert!(is_rung(&outcome.shared));
    outcome.shared.hush();
    assert!(!is_rung(&outcome.shared), "rung as often as hushed");
    outcome.shared.ring();
    assert!(is_rung(&outcome.shared));
}

fn is_rung(shared: &Shared) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut polled = [PollFd::new(&shared.bell, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).expect("poll") == 1
}

#[test]
fn a_long_reply_is_taken_whole() {
    let mut long = mad(3, 0x92, 1);
    long.resize(LONGEST_OCTETS, 0xA5);
    let outcome = play(vec![good(long.clone())], false);
    let Ok(Event::Arrived(arrived)) = outcome.events.try_recv() else {
        panic!("a reply");
    };
    assert!(arrived.mad == long, "whole");
}

#[test]
fn answers_of_the_port_become_facts_and_no_events() {
    let answers = [Question::PortInfo, Question::Keys(0)];
    let steps = answers.into_iter().zip(1..);
    let steps = steps.map(|(question, transaction)| {
        let data = match question {
            Question::PortInfo => port_info(),
            Question::Keys(_) => [0; 64],
        };
        good(answered(question, transaction, data))
    });
    // The facts are told of in the turn after the last answer.
    let steps = steps.chain([Step::Fails(libc::EAGAIN), Step::Stop]);
    let outcome = play(steps.collect(), false);
    assert_eq!(outcome.line.sent.lock().unwrap().len(), 2);
    let facts = outcome.shared.take_facts().expect("facts");
    assert_eq!(facts.lid, Lid(5));
    assert!(outcome.shared.take_facts().is_none(), "taken once");
    assert!(outcome.events.try_recv().is_err());
}

#[test]
fn a_port_that_fails_again_and_again_has_ended() {
    let outcome = play(
        vec![
            Step::Fails(libc::EIO),
            Step::Fails(libc::EIO),
            good(mad(3, 0x81, 1)),
            Step::Fails(libc::EIO),
            Step::Fails(libc::EIO),
            Step::Fails(libc::ENODEV),
            good(mad(3, 0x81, 2)),
        ],
        false,
    );
    assert_eq!(
        outcome.shared.take_end().map(|fault| fault.errno),
        Some(libc::ENODEV)
    );
    assert_eq!(outcome.events.try_iter().count(), 1, "none after the end");
}

#[test]
fn interruptions_are_no_failures() {
    let steps = [libc::EINTR, libc::EAGAIN].repeat(5);
    let outcome = play(steps.into_iter().map(Step::Fails).collect(), false);
    assert_eq!(outcome.shared.take_end(), None);
}

#[test]
fn the_header_is_that_of_the_kernel() {
    let mut header = Header::new_zeroed();
    header.qpn = 1.into();
    header.p_key_index = 3;
    assert_eq!(header.as_bytes().len(), 64);
    assert_eq!(header.as_bytes()[20..24], [0, 0, 0, 1]);
    assert_eq!(header.as_bytes()[56..58], 3_u16.to_ne_bytes());
}
