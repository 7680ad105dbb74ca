//! Devices as plain data: what they can do, their links, their GIDs; and what they say of
//! themselves while they run.

mod gid;
mod lease;
mod limits;
mod met;
mod news;
mod query;
mod share;
mod survey;
mod sysfs;

pub use gid::{Gid, GidKind};
pub use limits::Limits;
pub use survey::{Link, LinkState, Survey, Surveys, Transport, survey};

pub(crate) use lease::{Lease, Leases, present};
pub(crate) use limits::{Plan, plan};
pub(crate) use met::Met;
pub(crate) use news::{News, PairName, next};
pub(crate) use query::{attributes, limits, link, p_key};
pub(crate) use share::{Share, is_shared};
pub(crate) use survey::links;
pub(crate) use sysfs::node;
