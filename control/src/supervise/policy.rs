//! What to say to a peer that asks for other transport properties (version two 5.3).
//!
//! Every receive is posted at its largest size from the start, so any RBSIZ up to that can be
//! agreed to at once, and no larger one ever (V2-21). A larger wish gets the largest there is,
//! when that is more than the peer knows of. BRS is agreed to as far as the configuration goes.

use rpcrdma_engine::{Decision, Values, Verdict};
use rpcrdma_wire::property::BackwardRequests;

/// What this side can do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Able {
    /// Octets of each posted receive.
    pub(super) receive_bytes: u32,
    /// Backward Calls that the configuration allows.
    pub(super) backward: BackwardRequests,
}

/// Decides about a REQPROP.
pub(super) fn decide(able: Able, wanted: Values) -> Decision {
    let receive_bytes = match wanted.receive_bytes {
        Some(bytes) if bytes <= able.receive_bytes => Verdict::Done,
        Some(_) => Verdict::Other(able.receive_bytes),
        None => Verdict::Rejected,
    };
    let backward = match wanted.backward {
        Some(backward) if backward <= able.backward => Verdict::Done,
        _ => Verdict::Rejected,
    };
    Decision {
        receive_bytes,
        backward,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_done_is_done_and_no_more() {
        let able = Able {
            receive_bytes: 16_384,
            backward: BackwardRequests::Inline,
        };
        let ask = |receive_bytes, backward| {
            decide(
                able,
                Values {
                    receive_bytes,
                    backward,
                },
            )
        };
        assert_eq!(ask(Some(1024), None).receive_bytes, Verdict::Done);
        assert_eq!(ask(Some(16_384), None).receive_bytes, Verdict::Done);
        assert_eq!(
            ask(Some(16_385), None).receive_bytes,
            Verdict::Other(16_384)
        );
        let backward = |wanted| ask(None, Some(wanted)).backward;
        assert_eq!(backward(BackwardRequests::None), Verdict::Done);
        assert_eq!(backward(BackwardRequests::Inline), Verdict::Done);
        assert_eq!(backward(BackwardRequests::General), Verdict::Rejected);
    }
}
