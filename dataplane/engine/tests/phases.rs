//! The tables of the three state machines, whole, compared with the files beside this one.
//! After a change that is meant: `RPCRDMA_WRITE_PHASES=1 cargo test -p rpcrdma-engine --test phases`.

use rpcrdma_engine::phase::{CallEvent, CallPhase, Phase, PhaseEvent, ServeEvent, ServePhase};
use rpcrdma_proof::phases::{self, table};

fn compare(file: &str, found: &str) {
    phases::compare(env!("CARGO_MANIFEST_DIR"), file, found);
}

#[test]
fn of_a_connection() {
    compare("connection.txt", &table(Phase::next));
}

#[test]
fn of_a_call_made() {
    compare("call.txt", &table(CallPhase::next));
}

#[test]
fn of_a_call_served() {
    compare("serve.txt", &table(ServePhase::next));
}

/// Whatever happens, a broken connection can be taken apart and a slot freed.
#[test]
fn every_phase_has_a_way_out() {
    for &phase in Phase::ALL {
        assert!(phase.next(PhaseEvent::Break).is_ok(), "{phase:?}");
    }
    for &phase in ServePhase::ALL.iter().skip(1) {
        assert!(phase.next(ServeEvent::End).is_ok(), "{phase:?}");
    }
    for &phase in CallPhase::ALL.iter().skip(1) {
        let settled = phase.next(CallEvent::Answer).unwrap_or(phase);
        assert!(settled.next(CallEvent::End).is_ok(), "{phase:?}");
    }
}
