//! Links in the control loop: their turn, what they look like, what backs find on them.

use super::Supervisor;
use rpcrdma_config::plan::Upstream;
use rpcrdma_engine::CloseReason;
use rpcrdma_fabric::connect::Fabric;
use rpcrdma_lcore::Ending;
use std::time::Instant;

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

    /// A connection of a back to an address that was found could not be made.
    pub(super) fn found_in_vain(&mut self, back: usize, address: &str, now: Instant) {
        let found = matches!(self.plan.backs[back].upstream, Upstream::Discover(_));
        if let (true, Some(discovery), Ok(address)) = (found, &mut self.discovery, address.parse())
        {
            discovery.failed(back, address, now);
        }
    }

    /// A connection of a back has ended. One that broke is a reason to use another upstream; one that the upstream closed is
    /// not, for it may have been at rest: the client's next connection tells whether it is still there.
    pub(super) fn upstream_ended(
        &mut self,
        back: usize,
        address: &str,
        ending: Ending,
        now: Instant,
    ) {
        if matches!(ending, Ending::Closed(CloseReason::Work(_))) {
            self.found_in_vain(back, address, now);
        }
    }
}
