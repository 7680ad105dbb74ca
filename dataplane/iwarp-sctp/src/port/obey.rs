//! What control says: sessions to be asked for, accepted and refused.

use super::IwarpPort;
use super::carrier::{At, Carrier, Waiting};
use super::pair::Phase;
use super::site::{Reach, Site};
use crate::inbox::Notice;
use rpcrdma_fabric::connect::{ConnectionId, ListenerId};
use rpcrdma_sctp::{Error, Llp};
use std::net::SocketAddr;
use std::time::Instant;

/// Notices taken in one go.
const NOTICES: usize = 64;

impl<L: Llp> IwarpPort<L> {
    #[cold]
    pub(super) fn hear_control(&mut self) {
        for _ in 0..NOTICES {
            let Some(notice) = self.inbox.next() else {
                break;
            };
            match notice {
                Notice::Site {
                    number,
                    listener,
                    llp,
                } => self.add_site(number, listener, llp),
                Notice::Ask {
                    connection,
                    site,
                    to,
                    private_data,
                } => self.ask(connection, site, to, private_data),
                Notice::Accept {
                    connection,
                    private_data,
                } => self.accept(connection, &private_data),
                Notice::Refuse {
                    request,
                    at,
                    private_data,
                } => self.refuse(request, at, &private_data),
            }
        }
    }

    fn add_site(&mut self, number: u32, listener: Option<ListenerId>, llp: L) {
        debug_assert_eq!(number as usize, self.sites.len(), "sites come in order");
        // Where it cannot be watched a sleeping port looks late, when the lcore's nap is over.
        let _ = self.bed.watch(llp.descriptor());
        self.sites.add(llp, listener);
    }

    fn by_connection(&self, connection: ConnectionId) -> Option<u32> {
        let wanted = |it: &super::Pair| it.connection == connection && it.phase == Phase::Waiting;
        let pairs = (0_u32..).zip(&self.desk.pairs);
        let mut found = pairs.filter(|(_, pair)| wanted(pair));
        found.next().map(|(index, _)| index)
    }

    /// Looks for a stream to the peer, by way of an association that may have to be made.
    fn ask(&mut self, connection: ConnectionId, site: u32, to: SocketAddr, data: Box<[u8]>) {
        // It may be over already: its owner has heard so, and control will.
        let Some(index) = self.by_connection(connection) else {
            return;
        };
        let desk = &mut self.desk;
        let (Some(pair), Some(site)) = (desk.pairs.get_mut(index as usize), self.sites.get(site))
        else {
            return;
        };
        pair.ask = Some(data);
        let waiting = Waiting {
            pair: index,
            owner: pair.owner,
            since: Instant::now(),
        };
        match carrier_to(site, to) {
            Ok(carrier) => {
                carrier.waiting.push_back(waiting);
                desk.wanting += 1;
            }
            Err(error) => desk.give_up(index, format!("{to}: {error}")),
        }
    }

    fn accept(&mut self, connection: ConnectionId, private_data: &[u8]) {
        let Some(index) = self.by_connection(connection) else {
            return;
        };
        let at = self.desk.pair(index).and_then(|pair| pair.at);
        let Some(Reach {
            association,
            track,
            source,
        }) = at.and_then(|at| self.sites.reach(at))
        else {
            return;
        };
        // Where it cannot be, the session has ended meanwhile, and that was told.
        if association.accept(source.at.stream, private_data).is_ok() {
            self.desk.stands(index);
            self.desk.queue(track, source.at);
        }
    }

    fn refuse(&mut self, request: u64, at: At, private_data: &[u8]) {
        let Some(reach) = self.sites.reach(at) else {
            return;
        };
        // It waits as it came, or a queue pair has been adopted for it.
        let waits = reach.track.request == Some(request);
        let taken = reach.track.pair.and_then(|index| self.desk.pair(index));
        if waits || taken.is_some_and(|pair| pair.answers(request)) {
            reach.track.request = None;
            self.desk.say_no(reach, Some(private_data));
        }
    }
}

/// The association with a peer: one that is there, or a new one.
fn carrier_to<L: Llp>(site: &mut Site<L>, to: SocketAddr) -> Result<&mut Carrier, Error> {
    let known = site.carriers.to(to).map(|carrier| carrier.id);
    let id = match known {
        Some(id) => id,
        None => match site.llp.associate(to, Instant::now()) {
            Ok(id) => return Ok(site.carriers.put(Carrier::new(id, to))),
            // It is there, and about to end.
            Err(error) => return Err(error),
        },
    };
    site.carriers.get(id).ok_or(Error::Exhausted)
}
