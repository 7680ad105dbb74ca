//! The books of regions, against a registrar that the test plays.

use super::left::PATIENCE;
use super::*;

const OWNER: Place = Place::first(1);
const OTHER: Place = Place::first(2);
const ADDRESS: u64 = 0x7000_0000;

struct Registrar {
    requests: rtrb::Consumer<Request>,
    answers: rtrb::Producer<Answer>,
    keys: u32,
}

fn regions(count: u32) -> (Regions, Registrar) {
    let (ask, requests) = rtrb::RingBuffer::new(count as usize);
    let (answers, hear) = rtrb::RingBuffer::new(count as usize);
    let regions = Regions::new(count, ADDRESS, ask, hear, std::thread::current());
    let registrar = Registrar {
        requests,
        answers,
        keys: 0,
    };
    (regions, registrar)
}

impl Registrar {
    /// Answers all that was asked; how much that was.
    fn serve(&mut self) -> usize {
        let mut served = 0;
        while let Ok(request) = self.requests.pop() {
            served += 1;
            let answer = match request {
                Request::Register { slot, .. } => {
                    self.keys += 1;
                    let handle = Handle(self.keys << 8);
                    Answer::Registered { slot, handle }
                }
                Request::End { slot } => Answer::Ended { slot },
            };
            self.answers.push(answer).expect("one a slot");
        }
        served
    }

    fn refuse(&mut self, errno: i32) {
        while let Ok(request) = self.requests.pop() {
            let Request::Register { slot, .. } = request else {
                panic!("{request:?}");
            };
            self.answers
                .push(Answer::Failed { slot, errno })
                .expect("one a slot");
        }
    }
}

fn memory(offset: u64) -> Span {
    Span { offset, len: 8 }
}

fn told(regions: &mut Regions) -> Vec<Told> {
    std::iter::from_fn(|| regions.next()).collect()
}

#[test]
fn a_region_is_there_when_asked_for_again() {
    let (mut regions, mut registrar) = regions(2);
    let expose = |regions: &mut Regions| regions.expose(OWNER, memory(16), Access::Read, 0);
    assert_eq!(expose(&mut regions), Err(Refused::Busy));
    assert_eq!(expose(&mut regions), Err(Refused::Busy), "asked but once");
    assert_eq!(registrar.serve(), 1);
    assert!(regions.has_answer());
    assert_eq!(told(&mut regions), [Told::Room(OWNER)]);
    let other = regions.expose(OTHER, memory(16), Access::Read, 0);
    assert_eq!(other, Err(Refused::Busy), "not for somebody else");
    let segment = expose(&mut regions).expect("ready");
    assert_eq!(segment.offset, ADDRESS + 16);
    assert_eq!((segment.length, segment.handle), (8, Handle(0x100)));
}

#[test]
fn what_was_never_sent_is_ready_again() {
    let (mut regions, mut registrar) = regions(4);
    for (n, offset) in [0, 100, 200].into_iter().enumerate() {
        // Each attempt gets one segment further, and takes back what it has.
        let mut open = Vec::new();
        for before in [0, 100, 200] {
            match regions.expose(OWNER, memory(before), Access::Write, 7) {
                Ok(segment) => open.push(segment.handle),
                Err(refused) => {
                    assert_eq!((refused, before), (Refused::Busy, offset));
                    break;
                }
            }
        }
        assert_eq!(open.len(), n);
        for handle in open {
            let retired = regions.retire(OWNER, handle, 7, WorkId(1));
            assert_eq!(retired, Ok(Posted::Done));
        }
        assert_eq!(registrar.serve(), 1);
        assert_eq!(told(&mut regions), [Told::Room(OWNER)]);
    }
    for offset in [0, 100, 200] {
        let exposed = regions.expose(OWNER, memory(offset), Access::Write, 7);
        assert!(exposed.is_ok());
    }
}

#[test]
fn what_was_sent_is_ended() {
    let (mut regions, mut registrar) = regions(1);
    let expose = |regions: &mut Regions| regions.expose(OWNER, memory(0), Access::Write, 7);
    assert_eq!(expose(&mut regions), Err(Refused::Busy));
    registrar.serve();
    told(&mut regions);
    let handle = expose(&mut regions).expect("ready").handle;
    let wrong = regions.retire(OTHER, handle, 8, WorkId(5));
    assert_eq!(wrong, Err(Refused::Broken), "not its own");
    let retired = regions.retire(OWNER, handle, 8, WorkId(5));
    assert_eq!(retired, Ok(Posted::Pending));
    let again = regions.retire(OWNER, handle, 8, WorkId(5));
    assert_eq!(again, Err(Refused::Broken), "once");
    registrar.serve();
    assert_eq!(told(&mut regions), [Told::Retired(OWNER, WorkId(5))]);
    assert_eq!(expose(&mut regions), Err(Refused::Busy));
    registrar.serve();
    told(&mut regions);
    let next = expose(&mut regions).expect("ready").handle;
    assert_ne!(next, handle);
    regions.retired_by_peer(OWNER, next);
    assert_eq!(registrar.serve(), 1, "what is left of it is ended too");
    assert_eq!(told(&mut regions), [Told::Nothing]);
}

#[test]
fn a_failure_is_said_once() {
    let (mut regions, mut registrar) = regions(1);
    let expose = |regions: &mut Regions| regions.expose(OWNER, memory(0), Access::Write, 0);
    assert_eq!(expose(&mut regions), Err(Refused::Busy));
    registrar.refuse(libc::EINVAL);
    assert_eq!(told(&mut regions), [Told::Room(OWNER)]);
    assert_eq!(expose(&mut regions), Err(Refused::Unsupported));
    assert_eq!(expose(&mut regions), Err(Refused::Busy), "asked anew");
    assert_eq!(registrar.serve(), 1);
}

#[test]
fn what_nobody_fetches_makes_room() {
    let (mut regions, mut registrar) = regions(2);
    for offset in [0, 100] {
        let exposed = regions.expose(OWNER, memory(offset), Access::Read, 0);
        assert_eq!(exposed, Err(Refused::Busy));
    }
    registrar.serve();
    told(&mut regions);
    let third = |regions: &mut Regions| regions.expose(OWNER, memory(200), Access::Read, 0);
    assert_eq!(third(&mut regions), Err(Refused::Busy));
    assert_eq!(registrar.serve(), 1, "the oldest is ended");
    assert_eq!(told(&mut regions), [Told::Room(OWNER)]);
    assert_eq!(third(&mut regions), Err(Refused::Busy));
    registrar.serve();
    told(&mut regions);
    assert!(third(&mut regions).is_ok());
}

#[test]
fn who_found_no_slot_hears_of_the_one_that_a_peer_has_freed() {
    let (mut regions, mut registrar) = regions(1);
    let expose = |regions: &mut Regions, owner| regions.expose(owner, memory(0), Access::Read, 0);
    assert_eq!(expose(&mut regions, OWNER), Err(Refused::Busy));
    registrar.serve();
    told(&mut regions);
    let open = expose(&mut regions, OWNER).expect("ready");
    assert_eq!(expose(&mut regions, OTHER), Err(Refused::Busy));
    assert_eq!(registrar.serve(), 0, "there is no slot to ask for");
    regions.retired_by_peer(OWNER, open.handle);
    registrar.serve();
    assert_eq!(told(&mut regions), [Told::Room(OTHER)]);
    assert_eq!(expose(&mut regions, OTHER), Err(Refused::Busy));
    assert_eq!(registrar.serve(), 1);
    assert_eq!(told(&mut regions), [Told::Room(OTHER)]);
}

#[test]
fn nothing_stays_of_a_connection() {
    let (mut regions, mut registrar) = regions(4);
    let expose =
        |regions: &mut Regions, offset| regions.expose(OWNER, memory(offset), Access::Read, 0);
    for offset in [0, 100, 200] {
        assert_eq!(expose(&mut regions, offset), Err(Refused::Busy));
    }
    registrar.serve();
    told(&mut regions);
    let open = expose(&mut regions, 0).expect("ready");
    let ending = expose(&mut regions, 100).expect("ready");
    let retired = regions.retire(OWNER, ending.handle, 1, WorkId(1));
    assert_eq!(retired, Ok(Posted::Pending));
    assert_eq!(expose(&mut regions, 300), Err(Refused::Busy));
    regions.forget(OWNER);
    let retired = regions.retire(OWNER, open.handle, 1, WorkId(1));
    assert_eq!(retired, Err(Refused::Broken));
    while registrar.serve() > 0 {
        for told in told(&mut regions) {
            assert_eq!(told, Told::Nothing);
        }
    }
    assert_eq!(regions.free.len(), 4);
    assert!(regions.coming.is_empty());
}

/// A Call that was cancelled while it waited, or taken back, does not leave its memory reachable.
#[test]
fn what_nobody_comes_for_is_ended() {
    let (mut regions, mut registrar) = regions(4);
    let expose = |regions: &mut Regions, owner, offset| {
        regions.expose(owner, memory(offset), Access::Write, 7)
    };
    assert_eq!(expose(&mut regions, OWNER, 0), Err(Refused::Busy));
    assert_eq!(expose(&mut regions, OTHER, 0), Err(Refused::Busy));
    registrar.serve();
    told(&mut regions);
    let taken = expose(&mut regions, OTHER, 0).expect("ready");
    for _ in 1..PATIENCE {
        regions.ring();
    }
    let back = regions.retire(OTHER, taken.handle, 7, WorkId(1));
    assert_eq!(back, Ok(Posted::Done));
    assert_eq!(registrar.serve(), 0, "somebody may still come");
    regions.ring();
    assert_eq!(registrar.serve(), 1, "the one that was left first");
    for _ in 0..PATIENCE {
        regions.ring();
    }
    assert_eq!(registrar.serve(), 1, "and the other");
    assert_eq!(told(&mut regions), [Told::Nothing; 2]);
    assert_eq!(regions.free.len(), 4);
}

/// However long the registrar takes for the last of a Call's regions, the first are there then.
#[test]
fn what_waits_for_another_of_its_owner_is_kept() {
    let (mut regions, mut registrar) = regions(4);
    let expose =
        |regions: &mut Regions, offset| regions.expose(OWNER, memory(offset), Access::Write, 7);
    assert_eq!(expose(&mut regions, 0), Err(Refused::Busy));
    registrar.serve();
    told(&mut regions);
    assert_eq!(expose(&mut regions, 100), Err(Refused::Busy));
    for _ in 0..5 * PATIENCE - 1 {
        regions.ring();
    }
    registrar.serve();
    assert_eq!(told(&mut regions), [Told::Room(OWNER)]);
    regions.ring();
    assert!(expose(&mut regions, 0).is_ok());
    assert!(expose(&mut regions, 100).is_ok());
}

#[test]
fn nothing_is_left_ready_over_a_sleep() {
    let (mut regions, mut registrar) = regions(40);
    for n in 0..40 {
        let expose = regions.expose(OWNER, memory(8 * n), Access::Read, 0);
        assert_eq!(expose, Err(Refused::Busy));
    }
    registrar.serve();
    told(&mut regions);
    regions.settle_down();
    assert_eq!(registrar.serve(), 40);
    assert_eq!(told(&mut regions), [Told::Nothing; 40]);
    assert_eq!(regions.free.len(), 40);
}
