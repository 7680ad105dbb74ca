//! The tables of the state machines of a link, of its address and of a group, whole, compared with the files beside this one.
//! After a change that is meant: `RPCRDMA_WRITE_PHASES=1 cargo test -p rpcrdma-ipoib --test phases`.

use rpcrdma_ipoib::gid::Lid;
use rpcrdma_ipoib::group::{Attributes, Group, Knowledge, Step, Surroundings};
use rpcrdma_ipoib::join::JoinState;
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::settings::{Creation, Timing};
use rpcrdma_ipoib::time::Moment;
use rpcrdma_ipoib::{address, group, link};
use rpcrdma_proof::phases::{self, table};
use std::fmt::Write;

fn compare(file: &str, found: &str) {
    phases::compare(env!("CARGO_MANIFEST_DIR"), file, found);
}

#[test]
fn of_a_link() {
    compare("link.txt", &table(link::Phase::next));
}

#[test]
fn of_an_address() {
    compare("address.txt", &table(address::Phase::next));
}

#[test]
fn of_an_address_in_use() {
    compare("defence.txt", &table(address::Defence::next));
}

#[test]
fn of_a_group() {
    compare("group.txt", &table(group::Phase::next));
}

/// Whatever goes on with a link, news of the port bring it down, and from anywhere it can come up again.
#[test]
fn every_link_has_a_way_down_and_up() {
    use link::{Event, Phase};
    for &phase in Phase::ALL {
        assert_eq!(phase.next(Event::Fall), Ok(Phase::Down), "{phase:?}");
    }
    let up = [
        Event::Raise,
        Event::Found,
        Event::Granted,
        Event::Opened,
        Event::Proven,
    ];
    let end = up.into_iter().try_fold(Phase::Down, Phase::next);
    assert_eq!(end, Ok(Phase::Up));
}

/// Whatever goes on with a group can end, as a membership or as none, or fail; and nothing begins while something goes on.
#[test]
fn one_thing_at_a_time_goes_on_with_a_group() {
    use group::{Event, Phase};
    let begins = [
        Event::Seek,
        Event::Join,
        Event::Attach,
        Event::Check,
        Event::Detach,
        Event::Leave,
    ];
    for &phase in Phase::ALL {
        for end in [Event::Held, Event::Settle, Event::Empty, Event::Fail] {
            assert!(phase.next(end).is_ok_and(Phase::is_still), "{phase:?}");
        }
        for begin in begins {
            let to = phase.next(begin);
            assert!(phase.is_still() || to.is_err(), "{phase:?} on {begin:?}");
            assert!(to.is_err() || to.is_ok_and(|to| !to.is_still()));
        }
    }
}

const NOW: Moment = Moment(1_000_000);

/// A group that is wanted for a reason.
fn wanted(why: &str) -> Group {
    let mut group = Group::new(Moment(NOW.0 + 1));
    match why {
        "nobody" => {}
        "user" => group.addresses = 1,
        "router" => group.routed = true,
        _ => group.sent = Some(NOW),
    }
    group
}

fn exists(mlid: u16) -> Knowledge {
    let attributes = Attributes::of_creation(&Creation::default(), PKey::DEFAULT);
    let mlid = Lid(mlid);
    Knowledge::Exists(Attributes { mlid, ..attributes }, NOW)
}

fn step_of(group: &Group) -> Step {
    group.next_step(&Surroundings {
        now: NOW,
        timing: &Timing::default(),
        reachable: true,
        usable: true,
        queue: true,
        send_only: JoinState::SEND_ONLY_NON,
        closing: false,
    })
}

fn name(step: Step) -> String {
    let kinds = |state: JoinState| {
        let all = ["full", "non", "send", "send-full"].into_iter().enumerate();
        let held = all.filter(|(bit, _)| state.bits() & (1 << bit) != 0);
        held.map(|(_, name)| name).collect::<Vec<_>>().join("+")
    };
    match step {
        Step::Rest(_) => "rest".to_owned(),
        Step::Join(state) => format!("join {}", kinds(state)),
        Step::Create(state) => format!("create {}", kinds(state)),
        Step::Leave(state) => format!("leave {}", kinds(state)),
        Step::Attach(_) => "attach".to_owned(),
        Step::Detach(_) => "detach".to_owned(),
        Step::Seek | Step::Check | Step::Empty => format!("{step:?}").to_lowercase(),
    }
}

/// What is done next about a group, for each reason to want it, each membership, and all that can be known of it; the rule
/// of link section 9 is in it, and the orders of joining, attaching, detaching and leaving.
#[test]
fn of_the_next_step() {
    let held = [
        ("nothing", 0),
        ("full", 1),
        ("non", 2),
        ("send", 4),
        ("full+send", 5),
    ];
    let known = [
        ("unknown", Knowledge::Unknown),
        ("missing", Knowledge::Missing(NOW)),
        ("exists", exists(0xC001)),
    ];
    let attached = [
        ("no", None),
        ("yes", Some(0xC001)),
        ("old MLID", Some(0xC000)),
    ];
    let mut text = String::from("wanted by  held       group    attached  next step\n");
    for why in ["nobody", "user", "router", "sender"] {
        for (bits_name, bits) in held {
            for (known_name, knowledge) in known {
                for (attached_name, mlid) in attached {
                    let mut group = wanted(why);
                    group.held = JoinState::from_bits(bits);
                    group.knowledge = knowledge;
                    group.attached = mlid.map(Lid);
                    let step = name(step_of(&group));
                    let _ = writeln!(
                        text,
                        "{why:9}  {bits_name:9}  {known_name:7}  {attached_name:8}  {step}"
                    );
                }
            }
        }
    }
    compare("step.txt", &text);
}
