//! Reading the configuration again, on a thread of its own: the disk or the server it comes from
//! may take its time, and connections do not wait for that.
//!
//! One at a time: a wish that comes meanwhile has it read once more behind that. A reader that
//! takes longer than [`PATIENCE`] is given up, and what it still finds is not wanted; no other is
//! begun before it is back.

use rpcrdma_config::Plan;
use rpcrdma_lcore::Bell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Reads the configuration again: a plan that was checked whole, or all that is wrong, one line
/// each.
pub type Reread = Box<dyn Fn() -> Result<Plan, String> + Send>;

/// What is read, by then or not at all.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// What a reader brings back.
struct Brought {
    reread: Reread,
    read: Result<Plan, String>,
}

/// A reader under way.
struct Under {
    way: Receiver<Brought>,
    /// When it is given up; `None`: it was.
    by: Option<Instant>,
    /// It was asked for again meanwhile.
    again: bool,
}

/// Who reads.
enum State {
    /// There is nothing to read.
    Nothing,
    Idle(Reread),
    Reading(Under),
}

/// What became of a wish to have it read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// It is being read.
    Begun,
    /// It will be, behind the one that is.
    Later,
    /// There is nothing to read.
    Nothing,
    /// The reader before is still stuck.
    Stuck,
    /// There is no thread for it.
    NoThread,
}

/// Reads the configuration again, when asked.
pub(super) struct Reader {
    state: State,
    patience: Duration,
}

impl Reader {
    /// One that has nothing to read.
    pub(super) fn without() -> Self {
        Self {
            state: State::Nothing,
            patience: PATIENCE,
        }
    }

    /// One that reads so.
    pub(super) fn of(reread: Reread, patience: Duration) -> Self {
        Self {
            state: State::Idle(reread),
            patience,
        }
    }

    /// Begins to read; `bell` rings when [`Reader::take`] has something.
    pub(super) fn ask(&mut self, bell: &Arc<Bell>, now: Instant) -> Asked {
        match std::mem::replace(&mut self.state, State::Nothing) {
            State::Nothing => Asked::Nothing,
            State::Idle(reread) => self.begin(reread, bell, now),
            State::Reading(mut under) => {
                let stuck = under.by.is_none();
                under.again |= !stuck;
                self.state = State::Reading(under);
                if stuck { Asked::Stuck } else { Asked::Later }
            }
        }
    }

    fn begin(&mut self, reread: Reread, bell: &Arc<Bell>, now: Instant) -> Asked {
        let (bring, way) = channel();
        let bell = Arc::clone(bell);
        let read = move |reread: Reread| {
            let read = reread();
            // Nobody there: the process ends.
            let _ = bring.send(Brought { reread, read });
            bell.ring();
        };
        // It goes along by a channel, so that it is still here where there is no thread.
        let (give, get) = channel::<Reread>();
        let thread = std::thread::Builder::new().name("configuration".into());
        let begun = thread.spawn(move || {
            if let Ok(reread) = get.recv() {
                read(reread);
            }
        });
        if begun.is_err() {
            self.state = State::Idle(reread);
            return Asked::NoThread;
        }
        // It waits for that.
        let _ = give.send(reread);
        self.state = State::Reading(Under {
            way,
            by: Some(now + self.patience),
            again: false,
        });
        Asked::Begun
    }

    /// What was read, or that it is given up; and whether it was asked for again meanwhile.
    pub(super) fn take(&mut self, now: Instant) -> Option<(Result<Plan, String>, bool)> {
        let State::Reading(under) = &mut self.state else {
            return None;
        };
        let again = under.again;
        match under.way.try_recv() {
            Ok(Brought { reread, read }) => {
                let wanted = under.by.is_some();
                self.state = State::Idle(reread);
                wanted.then_some((read, again))
            }
            Err(TryRecvError::Empty) => {
                under.by.filter(|by| *by <= now)?;
                (under.by, under.again) = (None, false);
                let seconds = self.patience.as_secs();
                Some((
                    Err(format!("it could not be read within {seconds} s")),
                    false,
                ))
            }
            // It has panicked.
            Err(TryRecvError::Disconnected) => {
                self.state = State::Nothing;
                Some((Err("it cannot be read any more".to_owned()), false))
            }
        }
    }

    /// When a reader is given up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Reading(under) => under.by,
            State::Nothing | State::Idle(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// A reader that reads what the test gives it, and the bell it rings.
    fn reader() -> (Reader, Sender<&'static str>, Arc<Bell>) {
        let (give, get) = channel::<&'static str>();
        let reread = move || Err(get.recv().map_or("nothing", |it| it).to_owned());
        let reader = Reader::of(Box::new(reread), Duration::from_secs(1));
        (reader, give, Arc::new(Bell::new().unwrap()))
    }

    /// What comes, when it does.
    fn taken(reader: &mut Reader, now: Instant) -> (Result<Plan, String>, bool) {
        loop {
            if let Some(taken) = reader.take(now) {
                return taken;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn one_at_a_time_and_once_more_for_all_who_asked_meanwhile() {
        let (mut reader, give, bell) = reader();
        let now = Instant::now();
        assert_eq!(reader.take(now), None);
        assert_eq!(reader.ask(&bell, now), Asked::Begun);
        assert_eq!(reader.take(now), None);
        assert_eq!([(); 2].map(|()| reader.ask(&bell, now)), [Asked::Later; 2]);
        give.send("first").unwrap();
        assert_eq!(taken(&mut reader, now), (Err("first".to_owned()), true));
        assert_eq!(reader.ask(&bell, now), Asked::Begun);
        give.send("second").unwrap();
        assert_eq!(taken(&mut reader, now), (Err("second".to_owned()), false));
        assert_eq!(reader.deadline(), None);
    }

    #[test]
    fn one_that_hangs_is_given_up_and_what_it_finds_late_is_not_wanted() {
        let (mut reader, give, bell) = reader();
        let start = Instant::now();
        assert_eq!(reader.ask(&bell, start), Asked::Begun);
        let late = reader.deadline().unwrap();
        let given_up = Err("it could not be read within 1 s".to_owned());
        assert_eq!(reader.take(late), Some((given_up, false)));
        assert_eq!(reader.deadline(), None);
        assert_eq!(reader.ask(&bell, late), Asked::Stuck);
        give.send("late").unwrap();
        until_idle(&mut reader, late);
        assert_eq!(reader.ask(&bell, late), Asked::Begun);
        give.send("in time").unwrap();
        assert_eq!(taken(&mut reader, late), (Err("in time".to_owned()), false));
    }

    fn until_idle(reader: &mut Reader, now: Instant) {
        while matches!(reader.state, State::Reading(_)) {
            assert_eq!(reader.take(now), None);
            std::thread::yield_now();
        }
    }

    #[test]
    fn where_there_is_nothing_nothing_is_read() {
        let bell = Arc::new(Bell::new().unwrap());
        let asked = Reader::without().ask(&bell, Instant::now());
        assert_eq!(asked, Asked::Nothing);
    }
}
