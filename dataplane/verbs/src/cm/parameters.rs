//! What two sides agree on when a queue pair is connected.

use super::Offer;

/// For `rdma_connect` and `rdma_accept`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Reads of the peer's that are served at once.
    pub(crate) responder_resources: u8,
    /// Reads of ours that are outstanding at once.
    pub(crate) initiator_depth: u8,
    /// How often a message that is not acknowledged is sent again; up to 7.
    pub(crate) retry_count: u8,
    /// How often one that met no receive is; 7 is for ever.
    pub(crate) rnr_retry_count: u8,
}

/// What this side can and will do at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Most {
    /// The device's, in the order of [`Parameters`].
    pub(crate) serves: u32,
    pub(crate) issues: u32,
    /// The configuration's, for both.
    pub(crate) read_depth: u8,
}

impl Most {
    fn clamp(self, device: u32, offered: u8) -> u8 {
        let device = u8::try_from(device).unwrap_or(u8::MAX);
        device.min(self.read_depth).min(offered)
    }

    /// To ask for a connection with.
    pub(crate) fn to_ask(self, retry_count: u8, rnr_retry_count: u8) -> Parameters {
        let anything = Offer {
            responder_resources: u8::MAX,
            initiator_depth: u8::MAX,
        };
        self.to_answer(anything, retry_count, rnr_retry_count)
    }

    /// To accept one with: no more than the peer offers.
    pub(crate) fn to_answer(
        self,
        offer: Offer,
        retry_count: u8,
        rnr_retry_count: u8,
    ) -> Parameters {
        Parameters {
            responder_resources: self.clamp(self.serves, offer.responder_resources),
            initiator_depth: self.clamp(self.issues, offer.initiator_depth),
            retry_count: retry_count.min(7),
            rnr_retry_count: rnr_retry_count.min(7),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_device_configuration_and_peer_wins() {
        let most = Most {
            serves: 128,
            issues: 4,
            read_depth: 16,
        };
        let asked = most.to_ask(7, 7);
        assert_eq!((asked.responder_resources, asked.initiator_depth), (16, 4));
        // A Linux NFS client asks for no Reads of its own, and serves as many as it can.
        let offer = Offer {
            responder_resources: 0,
            initiator_depth: 3,
        };
        let answered = most.to_answer(offer, 7, 7);
        assert_eq!((answered.responder_resources, answered.initiator_depth), (0, 3));
        let generous = Most {
            serves: 1000,
            issues: 1000,
            read_depth: 255,
        };
        assert_eq!(generous.to_ask(9, 9).responder_resources, 255);
        assert_eq!(generous.to_ask(9, 9).retry_count, 7, "three bits on the wire");
    }
}
