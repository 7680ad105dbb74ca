//! SCTP associations as one lcore drives them: no thread of their own, no waiting.
//!
//! [`Llp`] is what the layer above asks of SCTP (the lower layer protocol of RFC 5041).

mod llp;

pub use llp::{AssociationId, Error, Event, Llp, Reason, Refused};
