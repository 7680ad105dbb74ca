//! Which version a connection speaks (V2-04, V2-09, V2-17, V2-24).
//!
//! The client offers its highest version with its first message; the first message that can be
//! used decides it at the server. At the client any message in version two proves version two,
//! and ERR_VERS alone says that the server has only version one. From then on the other version
//! is a wrong one.

use crate::api::{CloseReason, Event};
use crate::connection::{Connection, count};
use crate::phase::{Phase, PhaseEvent};
use crate::receives::Buffer;
use crate::setup::Side;
use crate::work::Io;
use rpcrdma_wire::reject::told_role;
use rpcrdma_wire::rfc8166::{self, SHORTEST_BYTES};
use rpcrdma_wire::{Body, ErrorBody, FixedHeader, Header, Reject, Role, Version};

impl Connection {
    /// No answer to the offer of version two came in time (V2-09).
    pub fn negotiation_timed_out<'m>(&mut self, io: &mut impl Io<'m>) -> Event {
        if self.phase == Phase::Offering {
            self.fail(io, CloseReason::Version);
        }
        Event::None
    }

    /// A message in a version that is not yet in force. True when it is now.
    pub(crate) fn negotiate<'m>(&mut self, io: &mut impl Io<'m>, header: &Header<'m>) -> bool {
        let acceptable = self.version.is_none() && header.version <= self.setup.version_max;
        match (self.setup.side, &header.body) {
            (_, Body::Error(ErrorBody::Version { .. })) => true,
            (Side::Server, Body::Error(_)) => false,
            (Side::Server, _) if acceptable => {
                self.advance(io, PhaseEvent::Agree);
                self.agree_on(header.version);
                true
            }
            (Side::Client, _) if acceptable && header.version == Version::Two => {
                self.advance(io, PhaseEvent::Agree);
                self.agree_on(Version::Two);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn agree_on(&mut self, version: Version) {
        self.version = Some(version);
        self.peer.receive_bytes = self.peer.default_bytes(version);
        self.look_again();
    }

    /// A good message in a version that is not the one in force. Replies and errors are
    /// dropped: their sender waits for no answer.
    pub(crate) fn wrong_version<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        buffer: Buffer,
        message: &'m [u8],
    ) -> Event {
        if told_role(message) == Some(Role::Requester) {
            count(&mut io.counters().strays);
            self.repost(io, buffer);
            return Event::None;
        }
        self.refuse(io, buffer, unserved(message), message)
    }

    /// What is wrong with a message first of all: in a version that is not served here, what
    /// its own rules say of it does not matter.
    pub(crate) fn judge_version(&self, message: &[u8], reject: Reject) -> Reject {
        let Some(fixed) = FixedHeader::peek(message) else {
            return reject;
        };
        let served = Version::of(fixed.vers).is_none_or(|version| match self.version {
            Some(agreed) => version == agreed,
            None => version <= self.setup.version_max,
        });
        if served || fixed.proc == rfc8166::ERROR {
            return reject;
        }
        unserved(message)
    }

    /// ERR_VERS to our offer: go on with version one on the same connection (V2-09).
    pub(crate) fn fall_back<'m>(&mut self, io: &mut impl Io<'m>, low: u32, high: u32) {
        if low > Version::One.code() || high < Version::One.code() {
            self.fail(io, CloseReason::Version);
            return;
        }
        count(&mut io.counters().fallbacks);
        self.advance(io, PhaseEvent::Agree);
        self.agree_on(Version::One);
        self.properties.peer_has_none();
    }
}

/// Why a message of a version that is not served is refused: one shorter than any of version
/// one is dropped, ERR_VERS or not (V1-01, V1-02).
fn unserved(message: &[u8]) -> Reject {
    match message.len() < SHORTEST_BYTES {
        true => Reject::Short,
        false => Reject::UnknownVersion,
    }
}
