//! The table of the stream's phases, whole, compared with the file beside. After a change that is
//! meant: `RPCRDMA_WRITE_PHASES=1 cargo test -p rpcrdma-iwarp --test iwarp phases`.

use rpcrdma_iwarp::session::phase::{Event, Phase};
use rpcrdma_proof::phases;

#[test]
fn of_a_stream() {
    let found = phases::table(|event: Event, phase: Phase| phase.next(event));
    phases::compare(env!("CARGO_MANIFEST_DIR"), "stream.txt", &found);
}

/// Whatever a peer does, and whatever becomes of the association, there is a next phase.
#[test]
fn every_phase_has_a_way_out() {
    for phase in Phase::ALL {
        assert_eq!(phase.next(Event::Loss), Ok(Phase::Lost), "{phase:?}");
        assert!(phase.next(Event::Breach).is_ok(), "{phase:?}");
    }
}

/// Section 6.6: a session is begun here only where nothing of an earlier one can be in flight.
#[test]
fn section_6_6_sessions_begin_on_idle_streams() {
    for phase in Phase::ALL {
        let begins = phase.next(Event::Initiate).is_ok();
        assert_eq!(begins, *phase == Phase::Idle, "{phase:?}");
    }
}
