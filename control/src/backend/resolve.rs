//! Names to addresses, on a thread of its own: the system's resolver waits for servers.

use super::Ticket;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Names that wait to be resolved.
const WAITING: usize = 1024;

type Question = (Ticket, String, u16);
type Answer = (Ticket, io::Result<Vec<SocketAddr>>);

/// The helper thread's other end. Dropped, the thread ends with the name it is at.
pub(crate) struct Resolver {
    questions: SyncSender<Question>,
    answers: Receiver<Answer>,
    bell: Arc<OwnedFd>,
}

impl Resolver {
    pub(crate) fn start() -> io::Result<Self> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (questions, asked) = sync_channel::<Question>(WAITING);
        let (answer, answers) = sync_channel::<Answer>(WAITING);
        let ring = Arc::clone(&bell);
        std::thread::Builder::new()
            .name("resolver".into())
            .spawn(move || {
                while let Ok((ticket, host, port)) = asked.recv() {
                    let addresses = (host.as_str(), port)
                        .to_socket_addrs()
                        .map(Iterator::collect);
                    if answer.send((ticket, addresses)).is_err() {
                        return;
                    }
                    // The counter is far from full.
                    let _ = rustix::io::write(&ring, &1_u64.to_ne_bytes());
                }
            })?;
        Ok(Self {
            questions,
            answers,
            bell,
        })
    }

    /// Asks for a name; false when too many are waiting.
    pub(crate) fn ask(&self, ticket: Ticket, host: &str, port: u16) -> bool {
        self.questions
            .try_send((ticket, host.to_owned(), port))
            .is_ok()
    }

    /// The next answer, if there is one.
    pub(crate) fn take(&self) -> Option<Answer> {
        // Silenced before looking, so that an answer that comes in between rings again.
        let _ = rustix::io::read(&self.bell, &mut [0_u8; 8][..]);
        self.answers.try_recv().ok()
    }
}

impl AsFd for Resolver {
    /// Readable when there is an answer.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
