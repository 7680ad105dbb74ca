//! More connections than the memory has receives for, with all their credits.

use crate::support::appliance::Appliance;
use crate::support::octets::{Two, head, null, success, word};
use crate::support::peer::Peer;

const SEATS: u32 = 60;

/// Connects, calls NULL once, and says what was granted.
fn granted(peer: &mut Peer) -> u32 {
    peer.connect("s");
    peer.send(&head(Two, 7).with(&null(7)));
    let answer = peer.answer();
    let grant = word(&answer, 8);
    let expected = head(Two, 7).credits(grant).direction(1);
    assert_eq!(answer, expected.with(&success(7)));
    grant
}

#[test]
fn grants_shrink_as_connections_grow_and_every_seat_has_one() {
    let appliance = Appliance::start(
        "[runtime]\nlcores = 1\nmemory_mib = 16\nconnections_max = 60\n\
         [[service]]\nname = 's'\nlisten = 's'\n",
    );
    let before = appliance.state().in_use();
    let mut peers: Vec<Peer> = (0..SEATS).map(|_| Peer::new(&appliance)).collect();
    let grants: Vec<u32> = peers.iter_mut().map(granted).collect();
    assert_eq!(grants.first(), Some(&64));
    assert!(
        grants.is_sorted_by(|earlier, later| earlier >= later),
        "{grants:?}"
    );
    assert!(
        grants.iter().all(|grant| (4..=64).contains(grant)),
        "{grants:?}"
    );
    assert!(grants.last() < Some(&64), "{grants:?}");
    let memory = appliance.state().0.lcores[0].memory;
    assert!(
        memory.receives_bytes <= memory.receives_ceiling_bytes,
        "{memory:?}"
    );

    let mut one_more = Peer::new(&appliance);
    let asked = one_more.ask("s", 1, &[]);
    let reason = one_more.until_rejected(asked);
    assert!(reason.contains("no seat is free"), "{reason}");

    peers.iter_mut().for_each(Peer::leave);
    appliance.until_in_use(&before);
    assert_eq!(granted(&mut one_more), 64, "there is room again");
    one_more.leave();
    appliance.end();
}
