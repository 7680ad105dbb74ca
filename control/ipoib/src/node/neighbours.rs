//! The unicast half of a link: frames that come, and the way to other hosts.
//!
//! A link's [`Neighbours`] exist while it has a queue pair and an address in use: both go into what it says of itself. Their
//! questions to everybody are datagrams to a group like any other, and the paths they need are asked of the SA in turn with
//! all else.

use super::timers::Timer;
use super::{Fate, Key, LinkId, Node, Origin, Output, Purpose, lane};
use crate::gid::Gid;
use crate::link::Link;
use crate::mad::PathTemplate;
use crate::neighbour::{self, Bounds, Neighbours, Route, Station};
use crate::packet::{Packet, Reject, Udp};
use crate::sa::{Answer, Outcome, Request};
use crate::time::Moment;
use crate::trouble::{Drop, Failure, Ignored, Operation};
use rpcrdma_listed::Tally;
use std::net::IpAddr;

impl Node {
    /// A frame came from a link's queue pair, its global route header taken off. A UDP datagram in it is given back for who
    /// it is for; ARP and neighbour discovery are taken care of.
    pub fn frame_came<'b>(
        &mut self,
        now: Moment,
        id: LinkId,
        from: &Origin,
        frame: &'b [u8],
    ) -> Option<Udp<'b>> {
        let usable = self.link(id).is_some_and(Link::is_usable);
        if !usable || self.closed {
            self.ledger.ignored(Ignored::EarlyFrame);
            return None;
        }
        match Packet::parse(frame) {
            Ok(Packet::Udp(datagram)) => Some(datagram),
            Ok(packet) => {
                self.heard(now, id, from, &packet);
                None
            }
            Err(reject) => {
                self.ledger.ignored(Ignored::BrokenFrame);
                self.frames_refused.add(reject);
                None
            }
        }
    }

    /// Frames that could not be taken, by reason.
    #[must_use]
    pub const fn frames_refused(&self) -> &Tally<Reject> {
        &self.frames_refused
    }

    /// A link's neighbours, while it has any.
    #[must_use]
    pub fn neighbours(&self, id: LinkId) -> Option<&Neighbours> {
        self.link(id)?.neighbours.as_ref()
    }

    fn heard(&mut self, now: Moment, id: LinkId, from: &Origin, packet: &Packet<'_>) {
        match self.neighbours_mut(id) {
            Some(neighbours) => {
                neighbours.heard(now, packet, from.sender());
                self.obey_neighbours(now, id);
            }
            None => self.heard_before_use(now, id, from, packet),
        }
        self.settle(now);
    }

    fn neighbours_mut(&mut self, id: LinkId) -> Option<&mut Neighbours> {
        self.link_mut(id)?.neighbours.as_mut()
    }

    /// Begins to have neighbours: all nodes of the link are told where this one is (RFC 5227 section 2.3, RFC 4861 section
    /// 7.2.6).
    pub(super) fn meet_neighbours(&mut self, now: Moment, id: LinkId, station: Station) {
        let mut neighbours = Neighbours::new(station, Bounds::default());
        neighbours.announce();
        if let Some(link) = self.link_mut(id) {
            link.neighbours = Some(neighbours);
        }
        self.obey_neighbours(now, id);
    }

    /// Tells all nodes of the link once more.
    pub(super) fn announce_again(&mut self, now: Moment, id: LinkId) {
        if let Some(neighbours) = self.neighbours_mut(id) {
            neighbours.announce();
        }
        self.obey_neighbours(now, id);
    }

    /// Sends a frame to a host on the link.
    pub(super) fn send_to_host(
        &mut self,
        now: Moment,
        id: LinkId,
        ip: IpAddr,
        frame: Vec<u8>,
    ) -> Fate {
        let Some(neighbours) = self.neighbours_mut(id) else {
            return self.drop_one(Drop::NoNeighbour);
        };
        let fate = neighbours.send(now, ip, frame);
        self.obey_neighbours(now, id);
        match fate {
            neighbour::Fate::Sent => Fate::Sent,
            neighbour::Fate::Waiting => Fate::Waiting,
            neighbour::Fate::Dropped(_) => self.drop_one(Drop::NoNeighbour),
        }
    }

    pub(super) fn pass_neighbours(&mut self, now: Moment, id: LinkId) {
        if let Some(neighbours) = self.neighbours_mut(id) {
            neighbours.pass(now);
        }
        self.obey_neighbours(now, id);
    }

    /// Paths may be others by now.
    pub(super) fn reroute(&mut self, now: Moment) {
        for id in self.link_ids() {
            if let Some(neighbours) = self.neighbours_mut(id) {
                neighbours.reroute(now);
            }
            self.obey_neighbours(now, id);
        }
    }

    pub(super) fn path_came(&mut self, now: Moment, id: LinkId, gid: Gid, outcome: &Outcome) {
        let route = match outcome {
            Outcome::Answered(Answer::Path(path)) => Some(Route::of(path)),
            other => {
                self.path_failed(now, id, gid, other);
                None
            }
        };
        if let Some(neighbours) = self.neighbours_mut(id) {
            neighbours.routed(now, gid, route);
        }
        self.obey_neighbours(now, id);
    }

    fn path_failed(&mut self, now: Moment, id: LinkId, gid: Gid, outcome: &Outcome) {
        let (cause, code) = super::answers::cause(outcome);
        self.failed(
            now,
            Failure {
                operation: Operation::Path,
                cause,
                refusal: None,
                code,
                link: Some(id),
                mgid: Some(gid),
                background: true,
            },
        );
    }

    /// Does what a link's neighbours want done, and sets their timer.
    fn obey_neighbours(&mut self, now: Moment, id: LinkId) {
        while let Some(output) = self.neighbours_mut(id).and_then(Neighbours::take) {
            match output {
                neighbour::Output::Everybody { group, frame } => {
                    self.ask_everybody(now, id, group, frame);
                }
                neighbour::Output::One { way, frame } => {
                    let attributes = self.link(id).and_then(|link| link.attributes);
                    let q_key = attributes.map_or_else(Default::default, |it| it.q_key);
                    self.outputs.push_back(Output::Frame {
                        link: id,
                        to: way.vector(q_key),
                        bytes: frame,
                    });
                }
                neighbour::Output::Path(template) => self.ask_path(id, template),
                neighbour::Output::Conflict { ip, hardware } => {
                    self.disputed(now, id, ip, hardware);
                }
            }
        }
        let wake = self.neighbours(id).and_then(Neighbours::wake);
        self.disarm(Timer::Neighbours(id));
        if let Some(due) = wake {
            self.arm(Timer::Neighbours(id), due);
        }
    }

    pub(super) fn ask_everybody(&mut self, now: Moment, id: LinkId, group: IpAddr, frame: Vec<u8>) {
        let link = self.link(id).filter(|link| link.phase.is_usable());
        let mgid = link.and_then(|link| link.group_of(group).ok().flatten());
        match mgid {
            Some(mgid) => self.forward(now, Key { link: id, mgid }, frame),
            None => self.drop_one(Drop::LinkDown),
        };
    }

    fn ask_path(&mut self, id: LinkId, template: PathTemplate) {
        let Some(gid) = template.dgid else {
            return;
        };
        let purpose = Purpose::Path(id, gid);
        self.sa.forget(|other| *other == purpose);
        self.sa
            .ask(lane(&purpose), purpose, Request::Path(template));
    }
}
