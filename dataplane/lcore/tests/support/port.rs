//! A port whose other side is the test.

use rpcrdma_fabric::{
    Access, Capabilities, Completion, Handle, Octets, Outcome, Port, Posted, QueuePair, Refused,
    Segment, Span, Token, WorkError, WorkId,
};
use rpcrdma_lcore::Bell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard};

/// What a test sees of a [`PlayedPort`], and what it puts in.
#[derive(Default)]
pub struct Stage {
    /// To be reaped.
    pub completions: VecDeque<Completion>,
    /// By number of queue pair: the token, until it is destroyed.
    pub tokens: Vec<Option<Token>>,
    /// Receives that are posted.
    pub receives: Vec<(QueuePair, Span, WorkId)>,
    /// Messages sent.
    pub sends: usize,
    /// Refuse the next adoption.
    pub refuse_adoption: bool,
    /// Do not flush on disconnect.
    pub hang: bool,
    /// The port was dropped.
    pub dropped: bool,
}

/// A port whose other side is the test.
pub struct PlayedPort {
    pub(super) stage: Arc<Mutex<Stage>>,
    pub(super) waker: Arc<Bell>,
}

impl PlayedPort {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().expect("no test holds it in a panic")
    }
}

impl Drop for PlayedPort {
    fn drop(&mut self) {
        self.stage().dropped = true;
    }
}

impl Port for PlayedPort {
    type Endpoint = ();

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            queue_pairs: 64,
            gather: 8,
            send_depth: 64,
            receive_depth: 64,
            transfer_bytes: 1 << 30,
            windows: 64,
            send_invalidate: true,
            receive_invalidate: true,
        }
    }

    fn adopt(&mut self, (): (), token: Token) -> Result<QueuePair, Refused> {
        let mut stage = self.stage();
        if std::mem::take(&mut stage.refuse_adoption) {
            return Err(Refused::Unsupported);
        }
        let number = u32::try_from(stage.tokens.len()).expect("a few");
        stage.tokens.push(Some(token));
        Ok(QueuePair(number))
    }

    fn disconnect(&mut self, qp: QueuePair) {
        let mut stage = self.stage();
        let token = stage.tokens[qp.0 as usize].expect("not destroyed");
        if stage.hang {
            return;
        }
        let posted = std::mem::take(&mut stage.receives);
        let (flushed, kept) = posted.into_iter().partition(|(of, ..)| *of == qp);
        let flushed: Vec<(QueuePair, Span, WorkId)> = flushed;
        stage.receives = kept;
        for (_, _, id) in flushed {
            stage.completions.push_back(Completion {
                token,
                id,
                outcome: Outcome::Failed(WorkError::Flushed),
            });
        }
        stage.completions.push_back(Completion {
            token,
            id: WorkId(0),
            outcome: Outcome::Disconnected,
        });
    }

    fn destroy(&mut self, qp: QueuePair) {
        self.stage().tokens[qp.0 as usize] = None;
    }

    fn post_receive(&mut self, qp: QueuePair, memory: Span, id: WorkId) -> Result<(), Refused> {
        self.stage().receives.push((qp, memory, id));
        Ok(())
    }

    fn send(
        &mut self,
        _: QueuePair,
        _: &[Octets<'_>],
        _: Option<Handle>,
        _: WorkId,
    ) -> Result<Posted, Refused> {
        self.stage().sends += 1;
        Ok(Posted::Done)
    }

    fn read(&mut self, _: QueuePair, _: Span, _: Segment, _: WorkId) -> Result<Posted, Refused> {
        Err(Refused::Unsupported)
    }

    fn write(&mut self, _: QueuePair, _: Span, _: Segment, _: WorkId) -> Result<Posted, Refused> {
        Err(Refused::Unsupported)
    }

    fn expose(&mut self, _: QueuePair, _: Span, _: Access) -> Result<Segment, Refused> {
        Err(Refused::Unsupported)
    }

    fn retire(&mut self, _: QueuePair, _: Handle, _: WorkId) -> Result<Posted, Refused> {
        Err(Refused::Unsupported)
    }

    fn retired_by_peer(&mut self, _: QueuePair, _: Handle) {}

    fn reap(&mut self, completions: &mut [Completion]) -> usize {
        let mut stage = self.stage();
        let count = stage.completions.len().min(completions.len());
        for (place, completion) in completions.iter_mut().zip(stage.completions.drain(..count)) {
            *place = completion;
        }
        count
    }

    fn ring(&mut self) {}

    fn arm(&mut self) -> bool {
        self.waker.doze();
        self.stage().completions.is_empty()
    }

    fn waker(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}
