//! Links in the control loop: their turn, what they look like, what backs find on them.

use super::Supervisor;
use rpcrdma_config::plan::Upstream;
use rpcrdma_engine::CloseReason;
use rpcrdma_fabric::connect::Fabric;
use rpcrdma_lcore::Ending;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::Instant;

/// While links are left, time is looked at this often.
const LEAVE_ROUND: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

impl<F: Fabric> Supervisor<F> {
    /// Takes what came on the links.
    pub(super) fn take_links(&mut self, now: Instant) {
        let Some(discovery) = &mut self.discovery else {
            return;
        };
        discovery.turn(now);
        if self.surveyor.is_about_to_post() {
            self.surveyor.links_are(discovery.look());
        }
    }

    /// Leaves every group and ends the subscriptions, before the appliance goes down for a reason of its own: the subnet
    /// administrator would keep what nobody has any more.
    pub(super) fn leave_links(&mut self) {
        let Some(discovery) = &mut self.discovery else {
            return;
        };
        while !discovery.close(Instant::now()) {
            let watched = discovery.descriptors().into_iter();
            let watched = watched.map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN));
            let mut watched: Vec<_> = watched.collect();
            // Interrupted: it comes round all the same.
            let _ = poll(&mut watched, Some(&LEAVE_ROUND));
            discovery.turn(Instant::now());
        }
    }

    /// A connection of a back to an address that was found could not be made.
    pub(super) fn found_in_vain(&mut self, back: usize, address: &str, now: Instant) {
        let found = matches!(self.plan.backs[back].upstream, Upstream::Discover(_));
        if let (true, Some(discovery), Ok(address)) = (found, &mut self.discovery, address.parse())
        {
            discovery.failed(back, address, now);
        }
    }

    /// A connection of a back has ended. One that broke, or that the upstream closed while it owed answers, is a reason to use
    /// another upstream; one that it closed at rest is not: the client's next connection tells whether it is still there.
    pub(super) fn upstream_ended(
        &mut self,
        back: usize,
        address: &str,
        (ending, owed): (Ending, bool),
        now: Instant,
    ) {
        let broke = match ending {
            Ending::Closed(CloseReason::Work(_)) => true,
            Ending::Closed(CloseReason::Peer) => owed,
            _ => false,
        };
        if broke {
            self.found_in_vain(back, address, now);
        }
    }
}
