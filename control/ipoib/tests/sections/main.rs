//! Every rule about links and groups, by the section of the link and multicast document that it is from: one node or two on
//! a small subnet without faults but those that a test makes.

mod addresses;
mod bed;
mod groups;
mod hostile;
mod hosts;
mod link;
mod robustness;
mod router;
mod vulnerability;
