//! Frames of Ethernet, in buffers of a port's pool.

use crate::fault::Fault;
use crate::ffi::{self, NO_FRAME};
use std::ffi::c_void;
use std::slice;

/// Frames of one burst at most.
pub const BURST: usize = ffi::BURST as usize;
/// Octets in front of what an empty frame begins with: room for headers.
pub const HEADROOM: usize = ffi::HEADROOM as usize;

/// One frame: whoever has it has its buffer alone. Dropped, the buffer goes back to its pool.
#[derive(Debug)]
#[repr(transparent)]
pub struct Frame(ffi::Frame);

// SAFETY: a frame is memory and a handle that one owner has; pools take buffers from any thread.
unsafe impl Send for Frame {}

impl Frame {
    /// Of what the shim gave out.
    ///
    /// # Safety
    ///
    /// The shim gave it, and nobody else has it. Its octets lie within its buffer.
    pub(crate) unsafe fn adopt(parts: ffi::Frame) -> Frame {
        Frame(parts)
    }

    /// Its octets.
    #[inline]
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        // SAFETY: the offset lies within the buffer, which was promised to `adopt`, or is what
        // the functions below have checked.
        let start = unsafe { self.0.buffer.add(self.0.offset.into()) };
        // SAFETY: so many octets are there by the same promise, and the buffer is this frame's.
        // They are initialised: EAL's memory was zeroed once.
        unsafe { slice::from_raw_parts(start, self.0.length.into()) }
    }

    /// The same, to write to.
    #[inline]
    #[must_use]
    pub fn octets_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `octets`.
        let start = unsafe { self.0.buffer.add(self.0.offset.into()) };
        // SAFETY: as for `octets`; the frame is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(start, self.0.length.into()) }
    }

    /// Makes it `len` octets long, of whatever value, with [`HEADROOM`] in front; `None` where
    /// its buffer is too short.
    #[inline]
    pub fn lay_out(&mut self, len: usize) -> Option<&mut [u8]> {
        let len = u16::try_from(len).ok()?;
        let end = ffi::HEADROOM.checked_add(len)?;
        if end > self.0.room {
            return None;
        }
        self.0.offset = ffi::HEADROOM;
        self.0.length = len;
        Some(self.octets_mut())
    }

    /// Makes it longer at its front. The new octets are of whatever value. `None` where there is
    /// no room in front.
    #[inline]
    pub fn prepend(&mut self, octets: usize) -> Option<&mut [u8]> {
        let octets = u16::try_from(octets).ok()?;
        self.0.offset = self.0.offset.checked_sub(octets)?;
        // Both are parts of one buffer, whose room 16 bits hold.
        self.0.length += octets;
        Some(self.octets_mut())
    }

    /// It goes on in another buffer, which is not shown: a frame that was longer than the MTU
    /// that its port was opened with.
    #[inline]
    #[must_use]
    pub fn is_chained(&self) -> bool {
        self.0.flags & ffi::CHAINED != 0
    }

    /// The port found a checksum of it wrong.
    #[inline]
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.0.flags & ffi::DAMAGED != 0
    }

    /// Gives the buffers of many back, a burst a call.
    pub fn free_all(frames: &mut Vec<Frame>) {
        for burst in frames.chunks(BURST) {
            // SAFETY: so many frames of the shim's, which nobody uses after this.
            unsafe { ffi::shim_frames_free(burst.as_ptr().cast(), count_of(burst)) };
        }
        frames.drain(..).for_each(std::mem::forget);
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // SAFETY: one frame of the shim's, which nobody uses after this.
        unsafe { ffi::shim_frames_free(&raw const self.0, 1) };
    }
}

/// Frames of one burst, as C counts them.
pub(crate) fn count_of(burst: &[Frame]) -> u16 {
    u16::try_from(burst.len()).map_or(ffi::BURST, |count| count.min(ffi::BURST))
}

/// A port's buffers. They stay as long as EAL does, which a port sees to.
#[derive(Clone, Copy, Debug)]
pub struct Pool(*mut c_void);

// SAFETY: DPDK's pools are used by any number of threads at once.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    pub(crate) fn of(handle: *mut c_void) -> Pool {
        Pool(handle)
    }

    /// Adds a burst of empty frames.
    ///
    /// # Errors
    ///
    /// All buffers are in use: none was added.
    pub fn take(&self, frames: &mut Vec<Frame>) -> Result<(), Fault> {
        let mut burst = [NO_FRAME; BURST];
        // SAFETY: the pool lives, and there is room for so many frames.
        let status = unsafe { ffi::shim_frames_take(self.0, burst.as_mut_ptr(), ffi::BURST) };
        if status < 0 {
            return Err(Fault::short("rte_pktmbuf_alloc_bulk", -status));
        }
        for parts in burst {
            // SAFETY: just given out, to nobody else.
            frames.push(unsafe { Frame::adopt(parts) });
        }
        Ok(())
    }
}
