//! The scene: an appliance, a bystander who is served by the same lcore, and the hostile peer.

use crate::support::appliance::{Appliance, InUse, State};
use crate::support::bystander::Bystander;
use crate::support::octets::{One, Version, error};
use crate::support::peer::Peer;
use std::net::SocketAddr;

/// What every endpoint grants.
pub(crate) const GRANT: u32 = 8;
/// A service with receives of 4096 octets, and one with receives long enough for any header.
pub(crate) const SERVICE: &str = "service";
pub(crate) const WIDE: &str = "wide";
/// A service that keeps no reply for a retry.
pub(crate) const FORGETFUL: &str = "forgetful";
/// A front whose backend does what the test says.
pub(crate) const FRONT: &str = "front";

/// One lcore for everybody, so that nobody is spared by being elsewhere.
pub(crate) const SERVICES: &str = r#"
    [runtime]
    lcores = 1
    memory_mib = 48
    hugepages = "off"
    connections_max = 16
    drain_timeout_s = 1
    [status]
    socket = "off"
    [transport]
    credits = 8
    [[service]]
    name = "service"
    listen = "service"
    [[service]]
    name = "forgetful"
    listen = "forgetful"
    [service.transport.kept_replies]
    bytes = 0
    [[service]]
    name = "wide"
    listen = "wide"
    [service.transport]
    inline_bytes = 65536
"#;

pub(crate) struct Scene {
    // Dropped in this order: peers leave before the appliance drains.
    pub(crate) peer: Peer,
    pub(crate) bystander: Bystander,
    pub(crate) appliance: Appliance,
    /// What is in use without the peer.
    idle: InUse,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::of(SERVICES)
    }

    /// With a front before this backend.
    pub(crate) fn with_backend(backend: SocketAddr) -> Self {
        let front = format!(
            "[[front]]\nname = 'front'\nlisten = 'front'\n[[front.backend]]\n\
             programs = 'others'\naddress = '{backend}'\n"
        );
        Self::of(&format!("{SERVICES}{front}"))
    }

    fn of(text: &str) -> Self {
        Self::on(Appliance::start(text))
    }

    pub(crate) fn on(appliance: Appliance) -> Self {
        let bystander = Bystander::start(&appliance, SERVICE, GRANT);
        let idle = bystander.parked(|| appliance.state().in_use());
        Self {
            peer: Peer::new(&appliance),
            bystander,
            appliance,
            idle,
        }
    }

    /// The state while the bystander has nothing in flight.
    pub(crate) fn state(&self) -> State {
        self.bystander.parked(|| self.appliance.state())
    }

    /// The states before and after the peer does something while the bystander does nothing: what
    /// is counted between is the peer's.
    pub(crate) fn alone(&mut self, act: impl FnOnce(&mut Peer, &Appliance)) -> (State, State) {
        let (peer, appliance) = (&mut self.peer, &self.appliance);
        self.bystander.parked(|| {
            let before = appliance.state();
            act(peer, appliance);
            (before, appliance.state())
        })
    }

    /// Waits until no more is in use than before the peer came, and sees that others go on.
    pub(crate) fn is_as_before(&self) {
        self.bystander
            .parked(|| self.appliance.until_in_use(&self.idle));
        self.bystander.goes_on();
    }

    /// Waits until no more is in use than in that state.
    pub(crate) fn is_as_in(&self, before: &State) {
        let before = before.in_use();
        self.bystander
            .parked(|| self.appliance.until_in_use(&before));
    }

    /// The peer leaves in good order, and leaves nothing behind.
    pub(crate) fn end(mut self) {
        self.peer.leave();
        self.is_as_before();
    }
}

/// What comes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// ERR_CHUNK in version one, BAD_XDR in version two.
    Refused,
    /// INVAL_PROC.
    InvalidProcedure,
    /// INVAL_OPTION.
    InvalidOption,
    /// ERR_VERS, in the version that was asked for.
    VersionRange(u32),
    /// Nothing comes back.
    Dropped,
    /// The connection ends.
    Closed,
}

impl Outcome {
    /// The whole message that comes back.
    pub(crate) fn answer(self, version: Version, xid: u32) -> Option<Vec<u8>> {
        let body: &[u32] = match self {
            Outcome::Refused => &[2],
            Outcome::InvalidProcedure => &[4],
            Outcome::InvalidOption => &[5],
            Outcome::VersionRange(asked) => {
                return Some(error(asked, xid, GRANT, &[1, 1, 2]));
            }
            Outcome::Dropped | Outcome::Closed => return None,
        };
        assert!(
            version != One || body == [2],
            "version one has ERR_CHUNK alone"
        );
        Some(error(version.code(), xid, GRANT, body))
    }
}
