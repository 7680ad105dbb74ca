//! The tables of the three state machines, whole, compared with the files beside this one.
//! After a change that is meant: `RPCRDMA_WRITE_PHASES=1 cargo test -p rpcrdma-engine --test phases`.

use rpcrdma_engine::phase::{
    CallEvent, CallPhase, Illegal, Phase, PhaseEvent, ServeEvent, ServePhase,
};
use std::fmt::{Debug, Write};
use std::path::Path;

/// One row for each phase, one column for each event; a dot is a step that must never happen.
fn table<P: Debug + Copy, E: Debug + Copy>(
    phases: &[P],
    events: &[E],
    next: impl Fn(P, E) -> Result<P, Illegal>,
) -> String {
    let name = |value: &dyn Debug| format!("{value:?}");
    let phase_width = phases
        .iter()
        .map(|phase| name(phase).len())
        .max()
        .unwrap_or(0);
    let width = |event: &E| phase_width.max(name(event).len());
    let mut text = format!("{:phase_width$}", "");
    for event in events {
        let _ = write!(text, "  {:width$}", name(event), width = width(event));
    }
    for &phase in phases {
        text = text.trim_end().to_owned();
        let _ = write!(text, "\n{:phase_width$}", name(&phase));
        for event in events {
            let to = next(phase, *event).map_or_else(|Illegal| ".".to_owned(), |to| name(&to));
            let _ = write!(text, "  {to:width$}", width = width(event));
        }
    }
    format!("{}\n", text.trim_end())
}

fn compare(file: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/phases")
        .join(file);
    if std::env::var_os("RPCRDMA_WRITE_PHASES").is_some() {
        std::fs::write(&path, found).expect("a writable file");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        wanted == found,
        "{file} is not the table any more, which is now\n{found}"
    );
}

#[test]
fn of_a_connection() {
    let next = Phase::next as fn(Phase, PhaseEvent) -> _;
    compare("connection.txt", &table(Phase::ALL, PhaseEvent::ALL, next));
}

#[test]
fn of_a_call_made() {
    let next = CallPhase::next as fn(CallPhase, CallEvent) -> _;
    compare("call.txt", &table(CallPhase::ALL, CallEvent::ALL, next));
}

#[test]
fn of_a_call_served() {
    let next = ServePhase::next as fn(ServePhase, ServeEvent) -> _;
    compare("serve.txt", &table(ServePhase::ALL, ServeEvent::ALL, next));
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
