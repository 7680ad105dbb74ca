//! The table of the stream's phases, whole, compared with the file beside. After a change that is
//! meant: `RPCRDMA_WRITE_PHASES=1 cargo test -p rpcrdma-iwarp --test iwarp phases`.

use rpcrdma_iwarp::session::phase::{Event, Illegal, Phase};
use std::fmt::Write;
use std::path::Path;

/// One row for each event, one column for each phase; a dot is a step that must never happen.
fn table() -> String {
    let mut text = format!("{:10}", "");
    for phase in Phase::ALL {
        let _ = write!(text, "  {:10}", format!("{phase:?}"));
    }
    for &event in Event::ALL {
        text = text.trim_end().to_owned();
        let _ = write!(text, "\n{:10}", format!("{event:?}"));
        for phase in Phase::ALL {
            let to = phase.next(event);
            let to = to.map_or_else(|Illegal| ".".to_owned(), |to| format!("{to:?}"));
            let _ = write!(text, "  {to:10}");
        }
    }
    format!("{}\n", text.trim_end())
}

#[test]
fn of_a_stream() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/phases/stream.txt");
    let found = table();
    if std::env::var_os("RPCRDMA_WRITE_PHASES").is_some() {
        std::fs::write(&path, &found).expect("a writable file");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        wanted == found,
        "stream.txt is not the table any more, which is now\n{found}"
    );
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
