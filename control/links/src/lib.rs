//! IPoIB links at work, for the control thread: the pure machines of `rpcrdma-ipoib` on real subnets and queue pairs, UDP on
//! top of them, and addresses by DHCP.
//!
//! It owns: ports (their way to the subnet administrator, their queue pairs), and each link's addresses, groups and lease. It
//! promises: nothing here waits, for the administrator or anybody else; what cannot be done is tried again by whoever decides
//! that (the node, the DHCP client, `ethernet`'s table), counted, and said in the log; everything is left and given back by
//! [`Links::close`]. It never answers a datagram: whoever [takes](Links::take) it does.
//!
//! | | |
//! |---|---|
//! | [`Links`] | all of them: their turn and their end |
//! | `start` | from the configuration |
//! | `news` | what a port's node tells: links up and down, addresses, troubles |
//! | `datagrams` | datagrams in and out |
//! | `driver` | a port with a subnet administrator: real (libibumad) or `memory`'s own |
//! | `ethernet` | one without: RoCE |
//! | `host` | the addresses of a link's IP: which datagrams are for them |
//! | `lease` | what a link's DHCP client wants done |
#![forbid(unsafe_code)]

mod clock;
mod datagrams;
mod driver;
mod ethernet;
mod host;
mod lease;
mod link;
mod links;
mod memory;
mod news;
mod pairs;
mod start;
mod status;
mod words;

pub use datagrams::{Datagram, Unsent};
pub use host::HostCounts;
pub use links::Links;
pub use memory::MemorySubnet;
pub use start::Refused;
pub use status::{Counted, DhcpReport, GroupReport, IpReport, LinkReport, ResourceReport};
