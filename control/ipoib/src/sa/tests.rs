//! Transactions: retries and their pauses, bounds, turns, late and wrong answers.

use super::*;
use crate::gid::{Gid, Guid};
use crate::group::naming;
use crate::mad::{ClassPortInfo, McLeft, McMember, Method, emit};
use crate::mgid::{Family, Scope, broadcast};
use crate::pkey::PKey;

const TIMING: Timing = Timing {
    reply_ms: 100,
    pause_ms: 1_000,
    tries: 3,
    verify_ms: 0,
    cache_ms: 0,
    idle_ms: 0,
    wait_ms: 0,
    linger_ms: 0,
    close_ms: 0,
    check_ms: 0,
    probes: 0,
    again_ms: 0,
};

struct Desk {
    sa: Transactions<u32>,
    chance: Chance,
}

impl Desk {
    fn new(outstanding: usize) -> Self {
        let limits = Limits {
            outstanding,
            ..Limits::default()
        };
        Self {
            sa: Transactions::new(TIMING, &limits),
            chance: Chance::new(1),
        }
    }

    fn ask(&mut self, lane: u8, purpose: u32) {
        self.sa.ask(Lane(lane), purpose, Request::Capabilities);
    }

    fn sent(&mut self, ms: u64) -> Vec<MadOctets> {
        let now = Moment(ms);
        std::iter::from_fn(|| self.sa.next_datagram(now, &mut self.chance)).collect()
    }

    fn answer(&mut self, ms: u64, octets: &[u8]) -> Result<Option<Settled<u32>>, Ignored> {
        let mad = Mad::parse(octets, 4096).unwrap();
        self.sa.answer(Moment(ms), &mad, &mut self.chance)
    }
}

fn info() -> ClassPortInfo {
    ClassPortInfo {
        capability_mask: 0,
        capability_mask_2: 0,
        response_time: 0,
    }
}

fn reply(question: &[u8], status: Status) -> MadOctets {
    emit::reply(&Mad::parse(question, 4096).unwrap(), status, Some(&info()))
}

#[test]
fn an_answer_ends_a_request_and_a_second_one_is_late() {
    let mut desk = Desk::new(8);
    desk.ask(0, 7);
    let question = desk.sent(0).remove(0);
    let settled = desk.answer(5, &reply(&question, Status::Ok)).unwrap();
    let expected = Settled {
        purpose: 7,
        outcome: Outcome::Answered(Answer::Capabilities(info())),
        tries: 1,
    };
    assert_eq!(settled, Some(expected));
    let late = desk.answer(6, &reply(&question, Status::Ok));
    assert_eq!(late, Err(Ignored::LateAnswer));
    assert_eq!(desk.sa.outstanding(), 0);
}

#[test]
fn silence_is_asked_again_with_longer_pauses_and_then_given_up() {
    let mut desk = Desk::new(8);
    desk.ask(0, 7);
    let first = desk.sent(0).remove(0);
    let mut now = Moment(0);
    let mut pauses = Vec::new();
    let settled = loop {
        let due = desk.sa.wake().unwrap();
        pauses.push(due.since(now));
        now = due;
        if let Some(settled) = desk.sa.expired(now) {
            break settled;
        }
        let again = desk.sent(now.0);
        assert_eq!(again, [first], "the same transaction");
    };
    assert_eq!((settled.outcome, settled.tries), (Outcome::Silent, 3));
    for (pause, about) in pauses.iter().zip([100, 200, 400]) {
        assert!(
            (about * 3 / 4..=about * 5 / 4).contains(pause),
            "{pauses:?}"
        );
    }
    assert_eq!(desk.sa.wake(), None);
}

#[test]
fn an_answer_to_any_try_is_an_answer() {
    let mut desk = Desk::new(8);
    desk.ask(0, 7);
    let first = desk.sent(0).remove(0);
    let due = desk.sa.wake().unwrap();
    assert_eq!(desk.sent(due.0).len(), 1);
    let settled = desk.answer(due.0 + 1, &reply(&first, Status::Ok)).unwrap();
    assert_eq!(settled.unwrap().tries, 2);
}

#[test]
fn busy_and_no_resources_are_asked_again_and_then_told() {
    for status in [Status::Busy, Status::NoResources] {
        let mut desk = Desk::new(8);
        desk.ask(0, 7);
        let mut now = 0;
        for _ in 0..TIMING.tries {
            let question = desk.sent(now).remove(0);
            assert_eq!(desk.answer(now, &reply(&question, status)), Ok(None));
            assert_eq!(desk.sent(now).len(), 0, "not at once");
            now = desk.sa.wake().unwrap().0;
        }
        let settled = desk.sa.expired(Moment(now)).unwrap();
        assert_eq!(settled.outcome, Outcome::Busy(status));
    }
}

#[test]
fn a_refusal_is_an_answer() {
    let mut desk = Desk::new(8);
    desk.ask(0, 7);
    let question = desk.sent(0).remove(0);
    let settled = desk.answer(0, &reply(&question, Status::RequestInvalid));
    let outcome = settled.unwrap().unwrap().outcome;
    assert_eq!(outcome, Outcome::Refused(Status::RequestInvalid));
}

#[test]
fn nonsense_does_not_end_a_request() {
    let mut desk = Desk::new(8);
    let group = |last| {
        let mut mgid = broadcast(Family::V4, Scope::LINK_LOCAL, PKey::DEFAULT);
        mgid.0[15] = last;
        mgid
    };
    let port = Gid::of_port(0xFE80 << 48, Guid(2));
    desk.sa
        .ask(Lane(0), 7, Request::Leave(naming(group(1), port)));
    let question = desk.sent(0).remove(0);
    let mad = Mad::parse(&question, 4096).unwrap();
    let left = |mgid, port_gid| McLeft {
        mgid,
        port_gid,
        remains: crate::join::JoinState::NONE,
    };
    for wrong in [left(group(2), port), left(group(1), group(9))] {
        let octets = emit::reply(&mad, Status::Ok, Some(&wrong));
        assert_eq!(desk.answer(0, &octets), Err(Ignored::OtherRecord));
    }
    let mut other = emit::reply(&mad, Status::Ok, Some(&left(group(1), port)));
    other[3] = Method::GetResp.code();
    assert_eq!(desk.answer(0, &other), Err(Ignored::LateAnswer));
    let right = emit::reply(&mad, Status::Ok, Some(&left(group(1), port)));
    assert!(desk.answer(0, &right).unwrap().is_some());
}

#[test]
fn nonsense_to_the_last_is_told_as_such() {
    let mut desk = Desk::new(8);
    let mgid = broadcast(Family::V4, Scope::LINK_LOCAL, PKey::DEFAULT);
    desk.sa
        .ask(Lane(0), 7, Request::Record(naming(mgid, Gid::default())));
    let mut now = 0;
    for _ in 0..TIMING.tries {
        let question = desk.sent(now).remove(0);
        let mad = Mad::parse(&question, 4096).unwrap();
        let mut broken = emit::reply::<McMember>(&mad, Status::Ok, None);
        broken[56..72].copy_from_slice(&mgid.0);
        // an MTU that there is none of
        assert_eq!(desk.answer(now, &broken), Err(Ignored::BrokenMad));
        now = desk.sa.wake().unwrap().0;
    }
    let settled = desk.sa.expired(Moment(now)).unwrap();
    assert_eq!(settled.outcome, Outcome::Malformed);
}

#[test]
fn few_are_on_their_way_and_lanes_take_turns() {
    let mut desk = Desk::new(2);
    for purpose in 0..10 {
        desk.ask(0, purpose);
    }
    desk.ask(3, 100);
    desk.ask(5, 200);
    let mut order = Vec::new();
    let mut questions = desk.sent(0);
    assert_eq!(questions.len(), 2);
    while !questions.is_empty() {
        let question = questions.remove(0);
        let settled = desk.answer(0, &reply(&question, Status::Ok)).unwrap();
        order.push(settled.unwrap().purpose);
        questions.extend(desk.sent(0));
        assert!(desk.sa.outstanding() <= 2);
    }
    assert_eq!(order, [0, 100, 200, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn the_first_answer_after_silence_hurries_the_others() {
    let mut desk = Desk::new(8);
    desk.ask(0, 1);
    desk.ask(0, 2);
    let questions = desk.sent(0);
    let due = desk.sa.wake().unwrap().0 + 100;
    assert_eq!(desk.sent(due).len(), 2, "both again");
    let far = desk.sa.wake().unwrap().0;
    desk.answer(due + 1, &reply(&questions[0], Status::Ok))
        .unwrap();
    let soon = desk.sa.wake().unwrap().0;
    assert!(soon <= due + 1 + 32 && soon < far, "{soon} {far}");
}

#[test]
fn what_is_forgotten_is_not_asked_and_its_answers_are_late() {
    let mut desk = Desk::new(1);
    desk.ask(0, 1);
    desk.ask(0, 2);
    let question = desk.sent(0).remove(0);
    desk.sa.forget(|purpose| *purpose < 3);
    assert_eq!((desk.sa.outstanding(), desk.sa.waiting()), (0, 0));
    let late = desk.answer(1, &reply(&question, Status::Ok));
    assert_eq!(late, Err(Ignored::LateAnswer));
    assert_eq!(desk.sent(1), Vec::<MadOctets>::new());
}
