//! Which side of a bed may have to do with remote invalidation.

use rpcrdma_engine::Side;
use rpcrdma_fabric::Capabilities;
use rpcrdma_fabric::connect::Device;

/// What all devices can do about remote invalidation.
#[derive(Clone, Copy)]
pub(super) struct Invalidate {
    send: bool,
    receive: bool,
}

impl Invalidate {
    pub(super) fn of(devices: &[Device]) -> Invalidate {
        let all =
            |can: fn(&Capabilities) -> bool| devices.iter().all(|device| can(&device.capabilities));
        Invalidate {
            send: all(|it| it.send_invalidate),
            receive: all(|it| it.receive_invalidate),
        }
    }

    /// Which of it a side needs: the service sends them, the load receives them.
    pub(super) fn at(self, side: Side) -> bool {
        match side {
            Side::Server => self.send,
            Side::Client => self.receive,
        }
    }
}
