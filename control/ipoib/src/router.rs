//! Router mode (link section 10): the software's promiscuous mode, since the hardware has none for multicast.
//!
//! A router on a link joins its all-router group as FullMember, and creates it where it is missing (link section 7: "when
//! the link is configured"), so that senders without listeners have somewhere to send. It obtains the list of all groups,
//! joins as NonMember each whose MGID has the link's signature, P_Key and scope, and by its subscription to all creations
//! those that come later; the list is looked at again every `verify_ms`, since a report can be lost. A NonMember receives
//! all, and is not counted: when the last full member leaves, the group ends, the router's membership with it.
//!
//! How many groups a router joins is for others to decide, by creating them. So there is a limit of them, `routed`, apart
//! from what this node's own users join; what is beyond is a failure of the kind that link section 11 warns of, told and
//! counted as a background one.

use crate::gid::Gid;
use crate::link::Link;
use crate::mgid::{self, Scope};

/// Whether the router on a link joins a group: the link's, and not its broadcast group, of which it is a full member.
#[must_use]
pub fn wants(link: &Link, mgid: Gid) -> bool {
    let Some(parts) = mgid::parts(mgid) else {
        return false;
    };
    link.spec.router
        && link.phase.is_usable()
        && link.broadcast != Some(mgid)
        && parts.family == link.spec.family
        && parts.p_key == link.spec.p_key
        && Some(parts.scope) == link.scope()
}

/// Whether a group is one that a link may be built on.
#[must_use]
pub fn is_broadcast(link: &Link, mgid: Gid) -> bool {
    let of = |scope| mgid::broadcast(link.spec.family, scope, link.spec.p_key);
    Scope::SEARCHED.into_iter().any(|scope| of(scope) == mgid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Phase;
    use crate::mgid::Family;
    use crate::pkey::PKey;
    use crate::settings::LinkSpec;

    fn gid(text: &str) -> Gid {
        Gid(text.parse::<std::net::Ipv6Addr>().unwrap().octets())
    }

    #[test]
    fn section_10_the_signature_decides() {
        let mut link = Link::new(LinkSpec {
            p_key: PKey(0x8006),
            family: Family::V4,
            create: None,
            router: true,
        });
        link.broadcast = link.sought();
        link.phase = Phase::Up;
        assert!(wants(&link, gid("ff12:401b:8006::16")));
        for other in [
            "ff12:601b:8006::16",
            "ff12:401b:8007::16",
            "ff15:401b:8006::16",
            "ff12:a01b:8006::16",
            "fe80::1",
            "ff12:401b:8006::ffff:ffff",
        ] {
            assert!(!wants(&link, gid(other)), "{other}");
        }
        link.phase = Phase::Seeking;
        assert!(!wants(&link, gid("ff12:401b:8006::16")));
        link.phase = Phase::Up;
        link.spec.router = false;
        assert!(!wants(&link, gid("ff12:401b:8006::16")));
    }
}
