//! The scene of a hostile responder: a TCP client, the back it has connected to, and the peer that
//! the back has for its upstream. The lcore serves a bystander meanwhile.

use crate::scene::{SERVICES, Scene};
use crate::support::appliance::{Appliance, State, plan};
use crate::support::octets::{Head, Lists, Two, Version, error, head, success, word, words};
use crate::support::peer::Peer;
use crate::support::tcp::{Stream, nfs_null};
use rpcrdma_config::plan::Upstream as Address;

/// The xid of the first Call, mostly.
pub(crate) const XID: u32 = 0x5E5B_0001;
/// Where the peer listens.
const HOSTILE: &str = "hostile";
/// SYSTEM_ERR of ONC RPC: what a client gets for a Call that came to nothing.
const SYSTEM_ERR: u32 = 5;
/// A property message of version two (draft section 6.2).
const CONNPROP: u32 = 6;
const INVAL_OPTION: u32 = 5;

pub(crate) struct Upstream {
    pub(crate) client: Stream,
    pub(crate) scene: Scene,
    version: Version,
}

/// A Call that came to the peer.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) xid: u32,
    pub(crate) lists: Lists,
    /// The handle that may be invalidated; zero for none.
    pub(crate) invalidate: u32,
    version: Version,
}

impl Asked {
    fn of(message: &[u8], version: Version) -> Self {
        assert_eq!(word(message, 4), version.code(), "its version");
        Self {
            xid: word(message, 0),
            lists: Lists::of(message),
            invalidate: match version {
                Version::One => 0,
                Version::Two => word(message, 20),
            },
            version,
        }
    }

    /// The only segment of its only Write chunk.
    pub(crate) fn result(&self) -> crate::support::octets::Segment {
        let [chunk] = &self.lists.writes[..] else {
            panic!("one Write chunk")
        };
        chunk[0]
    }

    /// The same with another xid.
    pub(crate) fn as_of(&self, xid: u32) -> Self {
        Self {
            xid,
            ..self.clone()
        }
    }

    /// A header of a Reply to it, without chunks.
    pub(crate) fn answer(&self) -> Head {
        let head = head(self.version, self.xid);
        match self.version {
            Version::One => head,
            Version::Two => head.direction(1),
        }
    }
}

impl Upstream {
    /// A client whose connection has its upstream in version two, without properties.
    pub(crate) fn new() -> Self {
        let mut upstream = Self::without_a_word();
        let offer = upstream.peer().answer();
        assert_eq!((word(&offer, 4), word(&offer, 12)), (2, CONNPROP));
        let none = error(2, word(&offer, 0), 8, &[INVAL_OPTION]);
        upstream.peer().send(&none);
        upstream
    }

    /// The same in version one: the peer says that it knows no other.
    pub(crate) fn in_version_one() -> Self {
        let mut upstream = Self::without_a_word();
        let offer = upstream.peer().answer();
        let versions = error(2, word(&offer, 0), 8, &[1, 1, 1]);
        upstream.peer().send(&versions);
        upstream.version = Version::One;
        upstream
    }

    /// The same, where the peer has not answered the offer of version two.
    pub(crate) fn without_a_word() -> Self {
        let text = format!(
            "{SERVICES}\n[[back]]\nname = 'back'\nlisten = '127.0.0.1:0'\nupstream = 'service'\n\
             [back.transport]\nnegotiate_timeout_ms = 60000\n"
        );
        let mut plan = plan(&text);
        // A plan made of a file leads to its own endpoints alone.
        plan.backs[0].upstream = Address::Memory(HOSTILE.to_owned());
        let mut scene = Scene::on(Appliance::of(plan));
        scene.peer.listen(HOSTILE);
        let client = Stream::to(scene.appliance.back());
        scene.peer.accept(16);
        Self {
            client,
            scene,
            version: Two,
        }
    }

    /// Another client, whose connection begins in version one, as is remembered of the peer.
    pub(crate) fn again_in_version_one(&mut self) {
        self.client = Stream::to(self.scene.appliance.back());
        self.scene.peer.accept(16);
        self.version = Version::One;
    }

    pub(crate) fn peer(&mut self) -> &mut Peer {
        &mut self.scene.peer
    }

    /// Sends a Call from the client; what the peer gets of it.
    pub(crate) fn call(&mut self, call: &[u8]) -> Asked {
        self.client.send(call);
        self.next()
    }

    /// The next Call that the peer gets.
    pub(crate) fn next(&mut self) -> Asked {
        let came = self.scene.peer.answer();
        Asked::of(&came, self.version)
    }

    /// What the peer does is counted so often, once it has been seen.
    pub(crate) fn counts(&self, counter: &str, times: u64) {
        self.scene
            .bystander
            .parked(|| self.scene.appliance.until_counter(counter, times));
        assert_eq!(self.state().counter(counter), times, "{counter}");
    }

    pub(crate) fn state(&self) -> State {
        self.scene.state()
    }

    /// The client gets this.
    pub(crate) fn client_gets(&mut self, reply: &[u8]) {
        let record = self.client.record();
        assert!(record.as_deref() == Some(reply), "{record:02x?}");
    }

    /// The client is told that its Call came to nothing, and its connection goes on.
    pub(crate) fn client_is_refused(&mut self, xid: u32) {
        self.client_gets(&words(&[xid, 1, 0, 0, 0, SYSTEM_ERR]));
    }

    /// The client's connection ends, as the peer's does, and all is as before.
    pub(crate) fn both_end(mut self) {
        assert_eq!(self.client.record(), None, "the client is shown out");
        self.peer().until_over();
        self.scene.is_as_before();
    }

    /// The client leaves, with nothing in flight; all is as before.
    pub(crate) fn end(mut self) {
        self.client.close();
        self.peer().until_over();
        self.scene.is_as_before();
    }
}

/// A NULL Call that waits for its Reply.
pub(crate) fn waiting() -> (Upstream, Asked) {
    let mut upstream = Upstream::new();
    let asked = upstream.call(&nfs_null(XID));
    assert_eq!((asked.xid, asked.invalidate), (XID, 0));
    (upstream, asked)
}

/// After all that, a Reply that can be believed: the client gets it.
pub(crate) fn is_answered_after_all(mut upstream: Upstream, asked: &Asked) {
    let reply = asked.answer().with(&success(XID));
    upstream.peer().send(&reply);
    upstream.client_gets(&success(XID));
    upstream.end();
}
