//! Every state with every event: `states.txt` is the documentation.

use crate::link::{hardware, route};
use rpcrdma_ipoib::neighbour::{Ask, Event, State, TRIES, Way};

#[test]
fn every_state_with_every_event() {
    let (old, new) = (hardware(1), hardware(2));
    let way = Way {
        hardware: old,
        route: route(1),
    };
    let states = [
        State::Asked(1),
        State::Asked(TRIES),
        State::Routing {
            hardware: old,
            proven: false,
        },
        State::Routing {
            hardware: old,
            proven: true,
        },
        State::Known(way),
        State::Doubted(way, 0),
        State::Doubted(way, 1),
        State::Doubted(way, TRIES),
    ];
    let events = [
        Event::Told(old),
        Event::Told(new),
        Event::Hinted(old, false),
        Event::Hinted(new, false),
        Event::Hinted(new, true),
        Event::Routed(route(3)),
        Event::Unrouted,
        Event::Reroute,
        Event::Due { used: false },
        Event::Due { used: true },
    ];
    let mut table = String::new();
    for state in states {
        for event in events {
            let (next, ask) = state.next(event);
            let next = next.map_or("forgotten".to_owned(), |next| said(&next));
            let ask = ask.map_or(String::new(), |ask| format!(", ask {}", asked(&ask)));
            table += &format!("{} + {} -> {next}{ask}\n", said(&state), happened(&event));
        }
    }
    assert_eq!(table, include_str!("states.txt"), "{table}");
}

fn at(address: &rpcrdma_ipoib::packet::HardwareAddress) -> &'static str {
    if *address == hardware(1) {
        "old"
    } else {
        "new"
    }
}

fn by(way: &Way) -> String {
    format!("{} by {}", at(&way.hardware), way.route.lid.0)
}

fn said(state: &State) -> String {
    match state {
        State::Asked(tries) => format!("Asked({tries})"),
        State::Routing {
            hardware,
            proven: true,
        } => format!("Routing({}, proven)", at(hardware)),
        State::Routing { hardware, .. } => format!("Routing({})", at(hardware)),
        State::Known(way) => format!("Known({})", by(way)),
        State::Doubted(way, tries) => format!("Doubted({}, {tries})", by(way)),
    }
}

fn happened(event: &Event) -> String {
    match event {
        Event::Told(address) => format!("Told({})", at(address)),
        Event::Hinted(address, true) => format!("Hinted({}, to replace)", at(address)),
        Event::Hinted(address, false) => format!("Hinted({})", at(address)),
        Event::Routed(route) => format!("Routed({})", route.lid.0),
        Event::Due { used: true } => "Due(used)".to_owned(),
        Event::Due { .. } => "Due(unused)".to_owned(),
        Event::Unrouted | Event::Reroute => format!("{event:?}"),
    }
}

fn asked(ask: &Ask) -> String {
    match ask {
        Ask::Everybody => "everybody".to_owned(),
        Ask::Itself(way) => format!("itself ({})", by(way)),
        Ask::Path(gid) => {
            let end = if *gid == hardware(1).gid {
                "old"
            } else {
                "new"
            };
            format!("for the path to {end}")
        }
    }
}
