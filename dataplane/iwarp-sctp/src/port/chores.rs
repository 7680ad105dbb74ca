//! What has to be done on associations, and cannot be done while they are being read.

use super::carrier::{At, Carrier, Ending, Waiting};
use super::desk::Desk;
use super::pair::Phase;
use super::site::Reach;
use super::{IwarpPort, LINGER};
use crate::inbox::Word;
use rpcrdma_iwarp::{Event, Misstep, Owner};
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

/// Who is to have a session on which stream.
struct Seat {
    pair: u32,
    at: At,
}

impl Desk {
    /// The next of those that wait on an association, and are still there, with an idle stream.
    fn next_seat(&mut self, site: u32, carrier: &mut Carrier) -> Option<Seat> {
        loop {
            let stream = carrier.association.as_ref()?.idle_stream()?;
            let Waiting { pair, owner, .. } = carrier.waiting.pop_front()?;
            self.wanting -= 1;
            if self.still_waits(pair, owner) {
                let association = carrier.id;
                let at = At {
                    site,
                    association,
                    stream,
                };
                return Some(Seat { pair, at });
            }
        }
    }

    fn still_waits(&mut self, pair: u32, owner: Owner) -> bool {
        let pair = self.pair(pair);
        pair.is_some_and(|pair| pair.owner == owner && pair.phase == Phase::Waiting)
    }

    /// Binds a queue pair to a stream, and asks for the session.
    fn begin(&mut self, carrier: &mut Carrier, Seat { pair: index, at }: Seat, enhanced: bool) {
        let (Some(association), Some(track)) = (
            &mut carrier.association,
            carrier.tracks.get_mut(usize::from(at.stream.0)),
        ) else {
            return;
        };
        let Some(pair) = self.pairs.get_mut(index as usize) else {
            return;
        };
        let (Some(machine), Some(data)) = (pair.machine.take(), pair.ask.take()) else {
            return;
        };
        let bound = association.bind(at.stream, machine).is_ok();
        if !bound || association.initiate(at.stream, &data, enhanced).is_err() {
            drop(association.unbind(at.stream));
            return self.give_up(index, "no session could be asked for".to_owned());
        }
        pair.at = Some(at);
        track.pair = Some(index);
        self.queue(track, at);
    }

    /// Has control find another association for those who have waited long enough.
    #[cold]
    fn send_elsewhere(&mut self, carrier: &mut Carrier, now: Instant, patience: Duration) {
        while let Some(&Waiting { pair, owner, since }) = carrier.waiting.front()
            && now.duration_since(since) >= patience
        {
            carrier.waiting.pop_front();
            self.wanting -= 1;
            if !self.still_waits(pair, owner) {
                continue;
            }
            if let Some(pair) = self.pairs.get_mut(pair as usize)
                && let Some(private_data) = pair.ask.take()
            {
                let connection = pair.connection;
                self.words.tell(Word::Crowded {
                    connection,
                    private_data,
                });
            }
        }
    }
}

impl<L: Llp> IwarpPort<L> {
    #[cold]
    pub(super) fn do_chores(&mut self, now: Instant) {
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
            self.serve_waiting(now);
        }
    }

    /// Begins sessions for those that wait for one, where there are streams.
    fn serve_waiting(&mut self, now: Instant) {
        let desk = &mut self.desk;
        for (number, site) in self.sites.iter() {
            for carrier in site.carriers.iter() {
                if carrier.waiting.is_empty() {
                    continue;
                }
                while let Some(seat) = desk.next_seat(number, carrier) {
                    desk.begin(carrier, seat, self.limits.enhanced);
                }
                if carrier.is_spent() {
                    desk.send_elsewhere(carrier, now, self.limits.patience());
                }
            }
        }
    }

    /// Associations that nobody has used for a while.
    #[cold]
    pub(super) fn look_for_idle(&mut self, now: Instant) {
        let (desk, idle, patience) = (&mut self.desk, self.limits.idle, self.limits.patience());
        self.next_look = now + idle.clamp(LEAST_LOOK, LINGER);
        for (number, site) in self.sites.iter() {
            for carrier in site.carriers.iter() {
                if carrier.is_used() || carrier.association.is_none() {
                    carrier.idle_since = None;
                    continue;
                }
                let since = *carrier.idle_since.get_or_insert(now);
                let kept = if carrier.is_spent() { patience } else { idle };
                if now.duration_since(since) >= kept && !carrier.doomed {
                    carrier.doomed = true;
                    desk.doomed.push((number, carrier.id, Ending::ShutDown));
                }
            }
        }
    }
}
