//! Where a port reaches the device with a queue pair of its own: posting the batch, and the end.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use super::VerbsPort;
use super::batch::Batch;
use super::counts;
use super::rail::{Rail, Stopped};
use super::status;
use super::ticket::Place;

// SAFETY: its requests point at its own memory, and at objects that may be used from any thread.
unsafe impl Send for Batch {}

impl VerbsPort {
    /// Has the device move a queue pair to error.
    #[cold]
    pub(super) fn fail_on_device(&self, rail: Rail) {
        // SAFETY: rails are those of endpoints that this port holds: their queue pairs are alive.
        // That it fails means that the device is going, or gone: control will say so.
        let _ = unsafe { self.calls.fail(rail) };
    }

    /// Posts what is in the batch.
    #[inline]
    pub(super) fn post_batch(&mut self) {
        let Some(owner) = self.batch.owner() else {
            return;
        };
        let Some(pair) = self.pairs.get_mut(owner as usize) else {
            return;
        };
        if pair.wants_cover() && self.batch.signal_last() {
            pair.covered();
        }
        let (place, Some(rail)) = (pair.place, pair.rail) else {
            return;
        };
        let ready = self.batch.take();
        let (sends, receives) = (ready.requests.len(), ready.receive_requests.len());
        if receives > 0 {
            // SAFETY: the pair holds its endpoint, so the queue pair is alive. The elements are
            // spans of the arena with its key: one that is not inside it is for the device to
            // refuse.
            let posted =
                unsafe { rail.post_receives(ready.receive_requests, ready.receive_elements) };
            if let Err(stopped) = posted {
                self.posted_in_part(place, (sends, 0), (receives, stopped.posted), stopped);
                return;
            }
        }
        if sends > 0 {
            // SAFETY: as above. Octets that go inline are in the batch itself, and all others in
            // the arena or the outbox, whose keys go with them; windows and regions are the
            // port's own.
            let posted = unsafe { rail.post_sends(ready.requests, ready.rows) };
            if let Err(stopped) = posted {
                self.posted_in_part(place, (sends, stopped.posted), (0, 0), stopped);
            }
        }
    }

    /// The device took so many of so many requests: the connection is over.
    #[cold]
    fn posted_in_part(
        &mut self,
        place: Place,
        sends: (usize, usize),
        receives: (usize, usize),
        stopped: Stopped,
    ) {
        let error = status::post_error(stopped.errno);
        counts::count(&mut self.counts, error);
        self.fail(place);
        self.take_back(place, (sends.0 - sends.1, error), receives.0 - receives.1);
    }
}
