//! What changes of the links of devices, kept until it is asked for.

use super::VerbsFabric;
use rpcrdma_fabric::datagram::{LinkChange, LinkName};

/// Most that wait, should nobody ask and devices of ever new names come and go.
const CHANGES_MOST: usize = 1024;

impl VerbsFabric {
    /// Something of a device's link, from 1, has changed; 0 for all of them. Each change waits once,
    /// in the place of its last occurrence: so there are few.
    pub(super) fn note_change(&mut self, number: u64, link: u32, change: LinkChange) {
        let known = self.devices.iter().find(|known| known.number == number);
        let (Some(known), Ok(number)) = (known, u8::try_from(link)) else {
            return;
        };
        let name = LinkName {
            device: known.device.name().to_owned(),
            number,
        };
        let entry = (name, change);
        self.link_changes.retain(|waiting| *waiting != entry);
        if self.link_changes.len() >= CHANGES_MOST {
            self.link_changes.pop_front();
        }
        self.link_changes.push_back(entry);
    }

    pub(crate) fn next_link_change(&mut self) -> Option<(LinkName, LinkChange)> {
        self.link_changes.pop_front()
    }
}
