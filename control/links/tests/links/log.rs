//! What links say to the log.

use std::fmt;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The lines of one thread.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(Level, String)>>>);

impl Log {
    /// Does something whose lines are wanted.
    pub(crate) fn of<T>(&self, act: impl FnOnce() -> T) -> T {
        tracing::subscriber::with_default(self.clone(), act)
    }

    /// The lines of warnings, and above, so far.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        let warnings = lines.iter().filter(|(level, _)| *level <= Level::WARN);
        warnings.map(|(_, line)| line.clone()).collect()
    }
}

/// The message of an event.
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        let line = (*event.metadata().level(), message.0);
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
