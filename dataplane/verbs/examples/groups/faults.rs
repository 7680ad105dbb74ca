//! What goes wrong on the way, and what has to go on all the same.

use crate::bed::{Bed, End, ask_for, ask_for_with, verdict};
use crate::group;
use rpcrdma_fabric::datagram::{
    AddressVector, DatagramFabric, Datagrams, FailureKind, Group, LinkChange, Membership,
    Memberships, PairWanted, Unsent,
};
use std::net::Ipv4Addr;

/// Receivers that do not exist: the kernel looks for each of them for a second.
pub(crate) fn silent_receivers(bed: &mut Bed) {
    let mut sent = 0;
    for last in 70..90 {
        let nobody = Ipv4Addr::new(192, 0, 2, last).to_ipv6_mapped();
        let to = AddressVector {
            gid: Some(nobody.octets()),
            queue_pair: 18,
            ..bed.to_all
        };
        sent += u32::from(bed.send(End::Near, b"anyone?", &to).is_ok());
    }
    let detail = format!("{sent} of 20 receivers are looked for");
    verdict("unasked", sent > 0 && sent < 20, &detail);
    let heard = bed.fence(End::Far) && bed.fence(End::Near);
    let failed = bed.near.pair.counts().send_failed;
    let detail = format!("the group hears and is heard when {failed} were not found");
    verdict("unhindered", heard && failed < u64::from(sent), &detail);
}

/// The wire is cut in the middle.
pub(crate) fn cut_wire(bed: &mut Bed) {
    let to = bed.to_all;
    ask_for("down");
    let down = bed.await_change(&["d0", "d1"], LinkChange::Down);
    verdict("down", down, "a cut wire is told as both links being down");
    let sent = bed.send(End::Near, b"x", &to);
    verdict(
        "down-send",
        sent == Err(Unsent::LinkDown),
        &format!("{sent:?}"),
    );
    let link = bed.fabric.link(Some("d0"), 1).expect("its link");
    verdict(
        "down-facts",
        !link.up && link.ethernet,
        &format!("{link:x?}"),
    );
    ask_for("up");
    let up = bed.await_change(&["d0", "d1"], LinkChange::Up);
    verdict("up", up, "a mended one as both being up");
    let heard = bed.fence(End::Far) && bed.fence(End::Near);
    verdict("up-heard", heard, "members are what they were");
}

/// The near interface gets another address.
pub(crate) fn other_address(bed: &mut Bed) {
    ask_for("address");
    let told = bed.await_change(&["d0"], LinkChange::Gids);
    verdict("gids", told, "another address is another GID");
    let heard = bed.fence(End::Far) && bed.fence(End::Near);
    verdict("gids-heard", heard, "and those in use are what they were");
}

/// The near interface is taken down under the queue pair's feet, before it is told.
pub(crate) fn pulled_interface(bed: &mut Bed) {
    let to = bed.to_all;
    ask_for("unplug");
    // Into nothing: the device may put the queue pair in error for it.
    let sent = bed.send(End::Near, b"lost", &to);
    let down = bed.await_change(&["d0"], LinkChange::Down);
    verdict("unplugged", down, &format!("the last datagram: {sent:?}"));
    ask_for("plug");
    let up = bed.await_change(&["d0"], LinkChange::Up);
    verdict("plugged", up, "and up again");
    let sent = bed.send_when_ready(End::Near, b"back", &to);
    let came = bed
        .next(End::Far)
        .is_some_and(|(found, _)| found == b"back");
    let counts = bed.near.pair.counts();
    verdict("sends-again", came, &format!("{sent:?}, {counts:?}"));
    let hears = bed.fence(End::Near);
    verdict("hears-again", hears, "and the group is heard");
}

/// Pairs that no manager looks after.
pub(crate) fn pairs_of_partitions(bed: &mut Bed) {
    let wanted = |device: &str, p_key| PairWanted {
        device: Some(device.to_owned()),
        p_key,
        q_key: 0x0b1b,
        ..PairWanted::default()
    };
    let refused = bed.fabric.open_pair(&wanted("d0", 0x8006));
    let kind = refused.map_err(|failure| failure.kind).err();
    let right = kind == Some(FailureKind::NoPartition);
    verdict("partition", right, "0x8006 is not in the table");
    let mut near = bed.fabric.open_pair(&wanted("d0", 0xFFFF)).expect("a pair");
    let mut far = bed.fabric.open_pair(&wanted("d1", 0xFFFF)).expect("a pair");
    let to = AddressVector {
        lid: 0,
        gid: Some(bed.far.pair.facts().gid),
        queue_pair: far.facts().queue_pair,
        q_key: 0x0b1b,
        ..bed.to_all
    };
    let came = bed.pass(&mut near, &mut far, b"directly", &to);
    let right = came.is_some_and(|(found, _)| found == b"directly");
    verdict("directly", right, "from one pair to the other");
    let wrong = AddressVector { q_key: 1, ..to };
    near.send(b"forged", &wrong).expect("sent");
    let came = bed.pass(&mut near, &mut far, b"proper", &to);
    let right = came.is_some_and(|(found, _)| found == b"proper");
    verdict("q-key", right, "one with another Q_Key does not arrive");
    attachments(bed, near, far);
}

/// One more pair is attached, by hand, to a group that the manager has joined.
fn attachments<P: Datagrams>(bed: &mut Bed, mut near: P, mut far: P) {
    let to = AddressVector {
        q_key: 0x0b1b,
        ..bed.to_all
    };
    let mgid = to.gid.expect("a group's");
    let by_hand = Group { mgid, mlid: to.lid };
    let attached = far.attach(by_hand).and_then(|()| far.attach(by_hand));
    let right = attached.is_ok() && far.attached() == 1;
    verdict("attach", right, &format!("{attached:?}"));
    let came = bed.pass(&mut near, &mut far, b"both", &to);
    let right = came.is_some_and(|(found, _)| found == b"both");
    verdict(
        "attached-hears",
        right,
        "the group is heard by who is attached",
    );
    let detached = far.detach(by_hand).is_ok() && far.detach(by_hand).is_err();
    verdict("detach", detached, "once");
    far.attach(by_hand).expect("again");
    drop(far);
    let heard = bed.fence(End::Far);
    verdict(
        "attached-dropped",
        heard,
        "one that is dropped while attached is gone",
    );
    bed.near.pair.leave(group(2)).expect("left");
}

/// The near device is taken away while a pair is on it.
pub(crate) fn removed_device(mut bed: Bed) {
    ask_for("remove");
    let gone = bed.await_change(&["d0"], LinkChange::Gone);
    verdict("removed", gone, "a device that goes is told");
    let to = bed.to_all;
    let sent = bed.send(End::Near, b"x", &to);
    verdict(
        "removed-send",
        sent == Err(Unsent::Gone),
        &format!("{sent:?}"),
    );
    let joined = bed.near.pair.join(group(3), Membership::Full);
    let kind = joined.map_err(|failure| failure.kind);
    verdict(
        "removed-join",
        kind == Err(FailureKind::Gone),
        &format!("{kind:?}"),
    );
    let Bed {
        near,
        mut far,
        fabric,
        other,
        ..
    } = bed;
    drop(near);
    // The kernel waits with it until nothing is left that was made of it.
    ask_for_with(&mut [fabric, other], "removed");
    let sent = far.pair.send(b"alone", &to);
    verdict("removed-other", sent.is_ok(), "the other device goes on");
}
