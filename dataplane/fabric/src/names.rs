//! Looking up hosts by name, which may take the system's resolver many seconds: beside control,
//! in a thread for each that is asked for, a few at a time.

use crate::bell::Bell;
use crate::connect::ConnectionId;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Names looked up at once.
const AT_ONCE: usize = 16;

/// What became of a name.
pub type Answer = (ConnectionId, Result<SocketAddr, String>);

/// Why a name is not looked up.
#[derive(Debug)]
pub enum Unasked {
    /// As many as can be are being looked up.
    TooMany,
    /// No thread is left for it.
    System(io::Error),
}

impl Unasked {
    /// For a person, where there are too many.
    pub const TOO_MANY: &'static str = "too many names are being looked up";
}

/// Names that are being looked up.
#[derive(Debug)]
pub struct Names {
    asked: usize,
    to: Sender<Answer>,
    from: Receiver<Answer>,
}

impl Names {
    /// Nothing is being looked up.
    #[must_use]
    pub fn new() -> Names {
        let (to, from) = channel();
        Names { asked: 0, to, from }
    }

    /// Whether this could be a host and a port.
    #[must_use]
    pub fn is_name(address: &str) -> bool {
        let Some((host, port)) = address.rsplit_once(':') else {
            return false;
        };
        let of_a_name = |c: char| c.is_ascii_alphanumeric() || ['-', '.', '_'].contains(&c);
        let lettered = host.contains(|c: char| c.is_ascii_alphabetic());
        (1..=253).contains(&host.len())
            && lettered
            && host.chars().all(of_a_name)
            && port.parse::<u16>().is_ok()
    }

    /// Looks `name` up for a connection; `bell` is rung when there is an answer.
    ///
    /// # Errors
    ///
    /// Nobody looks: see [`Unasked`].
    pub fn ask(
        &mut self,
        connection: ConnectionId,
        name: &str,
        bell: &Arc<Bell>,
    ) -> Result<(), Unasked> {
        if self.asked >= AT_ONCE {
            return Err(Unasked::TooMany);
        }
        let (name, bell, to) = (name.to_owned(), Arc::clone(bell), self.to.clone());
        let look_up = move || {
            // Nobody hears it where control is gone.
            let _ = to.send((connection, look_up(&name)));
            bell.ring();
        };
        let thread = thread::Builder::new().name("resolver".to_owned());
        thread.spawn(look_up).map_err(Unasked::System)?;
        self.asked += 1;
        Ok(())
    }

    /// The next answer.
    pub fn heard(&mut self) -> Option<Answer> {
        let answer = self.from.try_recv().ok()?;
        self.asked = self.asked.saturating_sub(1);
        Some(answer)
    }
}

impl Default for Names {
    fn default() -> Names {
        Names::new()
    }
}

fn look_up(name: &str) -> Result<SocketAddr, String> {
    let mut found = name.to_socket_addrs().map_err(|error| error.to_string())?;
    found.next().ok_or_else(|| "it has no address".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_nonsense() {
        for name in ["storage-1.example:20049", "localhost:1", "a_b:65535"] {
            assert!(Names::is_name(name), "{name}");
        }
        for nonsense in [
            "",
            "host",
            "host:",
            "host:70000",
            ":1",
            "192.0.2.300:1",
            "a b:1",
            "[::g]:1",
        ] {
            assert!(!Names::is_name(nonsense), "{nonsense}");
        }
    }

    #[test]
    fn an_answer_rings() {
        let bell = Arc::new(Bell::new().expect("a descriptor"));
        let mut names = Names::new();
        names
            .ask(ConnectionId(7), "localhost:20049", &bell)
            .expect("asked");
        let mut descriptors = [rustix::event::PollFd::new(
            &*bell,
            rustix::event::PollFlags::IN,
        )];
        rustix::event::poll(&mut descriptors, None).expect("rung");
        let (connection, found) = names.heard().expect("answered before it rang");
        assert_eq!(connection, ConnectionId(7));
        assert!(found.expect("known everywhere").ip().is_loopback());
        assert!(names.heard().is_none());
    }

    #[test]
    fn no_more_than_a_few_at_once() {
        let bell = Arc::new(Bell::new().expect("a descriptor"));
        let mut names = Names::new();
        names.asked = AT_ONCE;
        let refused = names.ask(ConnectionId(1), "localhost:1", &bell);
        assert!(matches!(refused, Err(Unasked::TooMany)));
    }
}
