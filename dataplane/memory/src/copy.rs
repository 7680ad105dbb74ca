//! Copies into the parking memory of a port, which that port alone touches.

use rpcrdma_fabric::Span;
use rpcrdma_fabric::arena::Arena;

/// Copies `bytes` to the start of `to`, in parking memory.
pub(crate) fn fill(parking: &Arena, to: Span, bytes: &[u8]) -> bool {
    // SAFETY: parking memory belongs to one port, which forms no slices over it.
    unsafe { parking.fill(to, bytes) }
}

/// Copies `from`, in the port's arena, to the start of `to`, in parking memory.
pub(crate) fn across(parking: &Arena, to: Span, arena: &Arena, from: Span) -> bool {
    // SAFETY: as above.
    unsafe { parking.transfer(to, arena, from) }
}
