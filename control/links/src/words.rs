//! What a node's outputs are called in the log.

use rpcrdma_dhcp::client::Why;
use rpcrdma_ipoib::link::LinkState;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::node::LinkId;
use rpcrdma_ipoib::trouble::{Cause, Failure, Operation, Refusal, Resource, Trouble};

/// A trouble in a sentence, without the link's name.
pub(crate) fn trouble(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Failed(failure) => failed(failure),
        Trouble::Scarce {
            resource,
            used,
            limit,
        } => format!("{used} of {limit} {} are in use", resources(*resource)),
        Trouble::OpenQKey { .. } => {
            "its Q_Key is not a controlled one: software without privileges can send in its name"
                .to_owned()
        }
        Trouble::Forgotten { mgid: Some(mgid) } => {
            format!(
                "the subnet administrator has forgotten that this port is in group {mgid}: everything is joined again"
            )
        }
        Trouble::Forgotten { mgid: None } => {
            "the subnet administrator has forgotten this port: everything is joined again"
                .to_owned()
        }
        Trouble::Conflict { ip, hardware, .. } => {
            format!("another node has {ip} as well: {hardware}")
        }
        Trouble::Storm => {
            "too many reports of the subnet administrator: all groups are looked at once instead"
                .to_owned()
        }
        Trouble::Untold { count } => format!("{count} more troubles were counted and not told"),
    }
}

/// The link that a trouble is of, where it is one's.
pub(crate) const fn link_of(trouble: &Trouble) -> Option<LinkId> {
    match trouble {
        Trouble::Failed(failure) => failure.link,
        Trouble::OpenQKey { link } | Trouble::Conflict { link, .. } => Some(*link),
        _ => None,
    }
}

/// A link's state, as `status` has it.
pub(crate) const fn state(state: LinkState) -> &'static str {
    match state {
        LinkState::Down => "down",
        LinkState::Joining => "joining",
        LinkState::Up => "up",
        LinkState::Degraded => "degraded",
    }
}

pub(crate) const fn ip(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}

/// Why an address is not used any more.
pub(crate) const fn dropped(why: Why) -> &'static str {
    match why {
        Why::LinkDown => "the link is down",
        Why::Refused => "the DHCP server takes it back",
        Why::Conflict => "another node has it",
        Why::Expired => "its lease is over",
    }
}

fn failed(it: &Failure) -> String {
    let of = it
        .mgid
        .map_or(String::new(), |mgid| format!(" group {mgid}"));
    let code = match (it.cause, it.code) {
        (_, 0) => String::new(),
        (Cause::Device, errno) => format!(": {}", std::io::Error::from_raw_os_error(errno)),
        (_, status) => format!(", status {status:#06x}"),
    };
    let rule = it
        .refusal
        .map_or(String::new(), |it| format!(": {}", refusal(it)));
    let unnoticed = if it.background {
        " (nobody waits for it)"
    } else {
        ""
    };
    format!(
        "{}{of}: {}{code}{rule}{unnoticed}",
        tried(it.operation),
        why(it.cause)
    )
}

const fn tried(operation: Operation) -> &'static str {
    match operation {
        Operation::Query => "cannot look up",
        Operation::Create => "cannot create",
        Operation::Join => "cannot join",
        Operation::SendOnlyJoin => "cannot join as a sender",
        Operation::Leave => "cannot leave",
        Operation::Verify => "cannot look up its own membership in",
        Operation::Open => "cannot open a queue pair",
        Operation::Attach => "cannot attach its queue pair to",
        Operation::Detach => "cannot detach its queue pair from",
        Operation::Subscribe => "cannot subscribe to reports",
        Operation::Unsubscribe => "cannot end its subscription to reports",
        Operation::List => "cannot list the groups",
        Operation::Capabilities => "cannot ask what the subnet administrator offers",
        Operation::Path => "cannot look up a path",
    }
}

const fn why(cause: Cause) -> &'static str {
    match cause {
        Cause::Silent => "the subnet administrator does not answer",
        Cause::Busy => "the subnet administrator is busy",
        Cause::NoResources => "there are no resources left",
        Cause::Denied => "the subnet administrator refuses",
        Cause::NoRecord => "there is no such record",
        Cause::Malformed => "the answer contradicts the question, or lacks something",
        Cause::Device => "the device refuses",
        Cause::Rule => "a rule forbids it",
        Cause::Limit => "a limit is reached",
    }
}

/// Why a link is not up, or a command was refused.
pub(crate) const fn refusal(it: Refusal) -> &'static str {
    match it {
        Refusal::LimitedKey => "the P_Key is of a limited member",
        Refusal::LimitedMember => "the port is a limited member of the partition only",
        Refusal::OutsidePartition => "the port is not in the partition",
        Refusal::PortInactive => "the port is not active",
        Refusal::NoBroadcastGroup => {
            "the partition has no broadcast group, and this node is not its administrator"
        }
        Refusal::MtuUnfit => "the broadcast group's MTU is neither 2048 nor 4096",
        Refusal::MtuBeyondPort => "the broadcast group's MTU is greater than the port's",
        Refusal::GroupMtuSmaller => "the group's MTU is smaller than the link's",
        Refusal::GroupMtuBeyondPort => "the group's MTU is greater than the port's",
        Refusal::QKeyDiffers => "the group's Q_Key is not the link's",
        Refusal::PKeyDiffers => "the group is of another partition",
        Refusal::NotMulticast => "the address is no group's",
        Refusal::Multicast => "the address is a group's",
        Refusal::OtherFamily => "the address is of the other IP",
        Refusal::AddressTaken => "another node has its address",
        Refusal::UnknownLink => "there is no such link",
        Refusal::LinksFull => "there are too many links, or two of this partition and IP",
        Refusal::GroupsFull => "too many groups are joined",
        Refusal::RoutedFull => "too many groups are joined as a router",
        Refusal::Closing => "it is being closed",
    }
}

const fn resources(resource: Resource) -> &'static str {
    match resource {
        Resource::Memberships => "memberships",
        Resource::AttachedGroups => "groups of the device",
        Resource::Attachments => "attachments of the device",
    }
}
