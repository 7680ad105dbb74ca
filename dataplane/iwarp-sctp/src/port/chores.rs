//! What has to be done on associations, and cannot be done while they are being read.

use super::carrier::{At, Ending};
use super::desk::Desk;
use super::pair::Phase;
use super::site::Reach;
use super::{IwarpPort, LINGER};
use rpcrdma_iwarp::{Event, Misstep};
use rpcrdma_sctp::Llp;
use std::time::{Duration, Instant};

/// How soon it is looked for idle associations again, at the soonest.
const LEAST_LOOK: Duration = Duration::from_millis(10);

impl Desk {
    /// There is something to be done here.
    #[inline]
    pub(super) fn has_chores(&self) -> bool {
        self.wanting > 0 || !self.unheard.is_empty() || !self.doomed.is_empty()
    }

    /// Says no to a request.
    #[cold]
    pub(super) fn say_no(&mut self, reach: Reach<'_>, private_data: Option<&[u8]>) {
        let Reach {
            association,
            track,
            source,
        } = reach;
        let stream = source.at.stream;
        let mut told = |_, event: Event<'_>| self.hear(source, track, event);
        // It was pending, so it can be refused, and control has looked at the length.
        let said = match private_data {
            Some(data) => association.reject(stream, data, &mut told),
            None => association.turn_away(stream, &mut told),
        };
        debug_assert_ne!(said, Err(Misstep::PrivateData));
        self.queue(track, source.at);
    }
}

impl<L: Llp> IwarpPort<L> {
    #[cold]
    pub(super) fn do_chores(&mut self) {
        while let Some(at) = self.desk.unheard.pop() {
            if let Some(reach) = self.sites.reach(at) {
                self.desk.say_no(reach, None);
            }
        }
        while let Some((site, id, ending)) = self.desk.doomed.pop() {
            if let Some(site) = self.sites.get(site) {
                match ending {
                    Ending::ShutDown => site.llp.shut_down(id),
                    Ending::Abort => site.llp.abort(id),
                }
            }
        }
        if self.desk.wanting > 0 {
            self.serve_waiting();
        }
    }

    /// Begins sessions for those that wait for one, where there are streams.
    fn serve_waiting(&mut self) {
        for (number, site) in self.sites.iter() {
            for carrier in site.carriers.iter() {
                let Some(association) = &mut carrier.association else {
                    continue;
                };
                while let Some(&waiting) = carrier.waiting.front()
                    && let Some(stream) = association.idle_stream()
                {
                    carrier.waiting.pop_front();
                    self.desk.wanting -= 1;
                    let at = At {
                        site: number,
                        association: carrier.id,
                        stream,
                    };
                    let Some(track) = carrier.tracks.get_mut(usize::from(stream.0)) else {
                        continue;
                    };
                    let Some(pair) = self.desk.pairs.get_mut(waiting.pair as usize) else {
                        continue;
                    };
                    if pair.owner != waiting.owner || pair.phase != Phase::Waiting {
                        continue;
                    }
                    let (Some(machine), Some(data)) = (pair.machine.take(), pair.ask.take()) else {
                        continue;
                    };
                    let bound = association.bind(stream, machine).is_ok();
                    let enhanced = self.limits.enhanced;
                    if !bound || association.initiate(stream, &data, enhanced).is_err() {
                        drop(association.unbind(stream));
                        self.desk
                            .give_up(waiting.pair, "no session could be asked for".to_owned());
                        continue;
                    }
                    pair.at = Some(at);
                    track.pair = Some(waiting.pair);
                    self.desk.queue(track, at);
                }
            }
        }
    }

    /// Associations of this side's own that nobody has used for a while.
    #[cold]
    pub(super) fn look_for_idle(&mut self, now: Instant) {
        let (desk, idle) = (&mut self.desk, self.limits.idle);
        self.next_look = now + idle.clamp(LEAST_LOOK, LINGER);
        for (number, site) in self.sites.iter() {
            for carrier in site.carriers.iter() {
                if carrier.is_used() || carrier.association.is_none() {
                    carrier.idle_since = None;
                    continue;
                }
                let since = *carrier.idle_since.get_or_insert(now);
                if now.duration_since(since) >= idle && !carrier.doomed {
                    carrier.doomed = true;
                    desk.doomed.push((number, carrier.id, Ending::ShutDown));
                }
            }
        }
    }
}
