//! Remote direct memory access (RFC 5040): what the messages mean, and the endpoint that sends
//! and receives them.
//!
//! [`Endpoint`] is one end of one RDMAP stream. It is told of segments and of their turns, and
//! asked for segments; it knows nothing of chunks, sequence numbers or sessions.

mod control;
mod endpoint;
mod reads;
mod request;
mod terminate;
mod work;

pub use control::{Arrival, Opcode, QUEUE_READ_REQUEST, QUEUE_SEND, QUEUE_TERMINATE, sort};
pub(crate) use endpoint::Blame;
pub use endpoint::{Endpoint, Outfit};
pub use request::{READ_REQUEST_BYTES, ReadRequest};
pub(crate) use terminate::{Culprit, Report};
pub use terminate::{TERMINATE_BYTES, Terminate};
pub use work::GATHER;
