//! RDMA Read and Write: one copy between two arenas, in the poster's thread, under the use
//! count of the peer's window.

use crate::shared::Shared;
use crate::window::Owner;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::{Access, Segment, Span, WorkError};

/// Copies all of `from` to the start of `to`, a segment of a window of `peer`.
pub(crate) fn write(
    arena: &Arena,
    from: Span,
    peer: &Shared,
    owner: Owner,
    to: Segment,
) -> Result<(), WorkError> {
    if from.len > to.length {
        return Err(WorkError::RemoteAccess);
    }
    let target = Segment {
        length: from.len,
        ..to
    };
    let inside = peer.windows.enter(owner, target, Access::Write);
    let inside = inside.map_err(|_| WorkError::RemoteAccess)?;
    // SAFETY: the window is open for writing and stays so until `inside` is dropped; while it
    // is, its owner lets no slice over this memory live.
    let done = unsafe { peer.arena.transfer(inside.memory, arena, from) };
    if done {
        Ok(())
    } else {
        Err(WorkError::LocalProtection)
    }
}

/// Copies all of `from`, a segment of a window of `peer`, to the start of `into`.
pub(crate) fn read(
    arena: &Arena,
    into: Span,
    peer: &Shared,
    owner: Owner,
    from: Segment,
) -> Result<(), WorkError> {
    if from.length > into.len {
        return Err(WorkError::LocalProtection);
    }
    let inside = peer.windows.enter(owner, from, Access::Read);
    let inside = inside.map_err(|_| WorkError::RemoteAccess)?;
    // SAFETY: `into` is the poster's, given to this Read: it lets no slice over it live.
    let done = unsafe { arena.transfer(into, &peer.arena, inside.memory) };
    if done {
        Ok(())
    } else {
        Err(WorkError::LocalProtection)
    }
}
