//! A node on its port: what comes goes in, what comes out is done.

use crate::{LEAST_MTU, kit};
use anyhow::Result;
use rpcrdma_ipoib::node::{Attachment, Node, Output};
use rpcrdma_ipoib::time::Moment;
use rpcrdma_umad::{Class, Event, Reply, Subnet, Target, Umad};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Replies are taken for so long; the node itself gives up before.
const REPLY: Duration = Duration::from_secs(10);
const METHOD: usize = 3;
const RESPONSE: u8 = 0x80;

/// The node, the port, and the queue pairs that are played.
pub(crate) struct Seat {
    pub(crate) port: Umad,
    pub(crate) node: Node,
    pub(crate) attached: BTreeSet<Attachment>,
    /// Frames sent so far, and the group of the last one.
    pub(crate) frames: (u64, Option<String>),
    /// Requests that could not be sent.
    pub(crate) unsent: u64,
    begun: Instant,
    queues: u32,
}

impl Seat {
    pub(crate) fn take(port: Umad, node: Node) -> Self {
        Self {
            port,
            node,
            attached: BTreeSet::new(),
            frames: (0, None),
            unsent: 0,
            begun: Instant::now(),
            queues: 0,
        }
    }

    pub(crate) fn now(&self) -> Moment {
        let elapsed = self.begun.elapsed().as_millis();
        Moment(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// Takes what came, does what is to be done, and says for how long that was all.
    pub(crate) fn turn(&mut self) -> Result<Option<Duration>> {
        while let Some(event) = self.port.take() {
            self.came(event)?;
        }
        self.node.pass(self.now());
        while let Some(output) = self.node.take() {
            self.perform(output);
        }
        let now = self.now();
        let wake = self.node.wake();
        Ok(wake.map(|wake| Duration::from_millis(wake.since(now))))
    }

    fn came(&mut self, event: Event) -> Result<()> {
        let now = self.now();
        match event {
            Event::Facts(facts) => self.node.port_is(now, facts.for_node(LEAST_MTU)),
            Event::Arrived(arrived) if arrived.class == Class::Administration => {
                self.node.mad_came(now, arrived.source.lid, &arrived.mad);
            }
            Event::Arrived(request) => kit::answer_manager(&mut self.port, &request)?,
            // The node has timers of its own.
            Event::Undelivered { .. } => {}
            Event::Ended(fault) => return Err(fault.into()),
        }
        Ok(())
    }

    fn perform(&mut self, output: Output) {
        let now = self.now();
        match output {
            Output::Mad { to, sl, bytes } => {
                let reply = match bytes[METHOD] & RESPONSE {
                    0 => Reply::Within(REPLY),
                    _ => Reply::No,
                };
                let target = Target { lid: to, sl };
                let sent = self.port.send(Class::Administration, target, &bytes, reply);
                // As good as lost.
                self.unsent += u64::from(sent.is_err());
            }
            Output::Open(opening) => {
                self.queues += 1;
                self.node.queue_opened(now, opening.link, Ok(self.queues));
            }
            Output::Close { link } => self.attached.retain(|attachment| attachment.link != link),
            Output::Attach(attachment) => {
                let errno = if self.attached.insert(attachment) {
                    None
                } else {
                    Some(17)
                };
                self.node
                    .attached(now, attachment, errno.map_or(Ok(()), Err));
            }
            Output::Detach(attachment) => {
                let errno = if self.attached.remove(&attachment) {
                    None
                } else {
                    Some(22)
                };
                self.node
                    .detached(now, attachment, errno.map_or(Ok(()), Err));
            }
            Output::Frame { to, .. } => self.frames = (self.frames.0 + 1, Some(to.gid.to_string())),
            Output::Trouble(trouble) => eprintln!("{trouble:?}"),
            Output::Link { link, state, error } => {
                eprintln!("{now:?} link {} {} {error:?}", link.0, state.name());
            }
            Output::Member { mgid, joined, .. } => eprintln!("{now:?} {mgid} joined: {joined}"),
            Output::Address { ip, news, .. } => eprintln!("{now:?} {ip}: {news:?}"),
        }
    }
}
