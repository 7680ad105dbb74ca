//! Ports of Ethernet, with one queue each way.
//!
//! A port belongs to one lcore: what receives and sends takes it by `&mut`. It was made by EAL, of an
//! argument such as `--vdev=net_memif0,...` or `-a 0000:01:00.0`, and is opened by its name.

use crate::fault::Fault;
use crate::ffi::{self, NO_FRAME};
use crate::frame::{BURST, Frame, Pool, count_of};
use std::ffi::CString;

/// A port that is open. Dropped, it is stopped, for good.
#[derive(Debug)]
pub struct Port {
    parts: ffi::Port,
    mtu: u16,
}

// SAFETY: a port is numbers and the handle of a pool, which any thread may use.
unsafe impl Send for Port {}

/// What a port has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Frames received.
    pub frames_in: u64,
    /// Octets received.
    pub bytes_in: u64,
    /// Frames sent.
    pub frames_out: u64,
    /// Octets sent.
    pub bytes_out: u64,
    /// Frames lost because nobody took them in time.
    pub missed: u64,
    /// Frames that came damaged.
    pub errors_in: u64,
    /// Frames that could not be sent.
    pub errors_out: u64,
    /// Frames lost because the pool was empty.
    pub no_buffer: u64,
}

/// Octets of EAL's memory that so many frames of a port with that MTU take.
#[must_use]
pub fn pool_bytes(mtu: u16, frames: u32) -> u64 {
    ffi::shim_pool_bytes(mtu, frames)
}

impl Port {
    /// Opens the port of that name, with a pool of `frames` buffers, each with room for a frame
    /// of that MTU (octets of an IP packet), and starts it. One that cannot be started is closed,
    /// for good, and leaves nothing behind.
    pub(crate) fn open(name: &str, mtu: u16, frames: u32) -> Result<Port, Fault> {
        const FIND: &str = "rte_eth_dev_get_port_by_name";
        let Ok(text) = CString::new(name) else {
            return Err(Fault::ours(FIND, libc::EINVAL, "a zero octet in a name"));
        };
        let mut parts = ffi::Port {
            pool: std::ptr::null_mut(),
            number: 0,
            mac: [0; 6],
            socket: 0,
            mbufs: 0,
            driver: [0; 32],
            call: std::ptr::null(),
        };
        // SAFETY: the name ends in a zero octet, and `parts` is there to be written.
        let status = unsafe { ffi::shim_port_open(text.as_ptr(), mtu, frames, &raw mut parts) };
        if status == -libc::ENODEV && ffi::shim_port_count() == 0 {
            let meaning = format!("no port {name}, nor any other");
            return Err(Fault::ours(FIND, libc::ENODEV, &meaning));
        }
        if status < 0 {
            let call = crate::fault::constant(parts.call).unwrap_or(FIND);
            return Err(Fault::of(call, status));
        }
        Ok(Port { parts, mtu })
    }

    /// Its address.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        self.parts.mac
    }

    /// Octets of the longest IP packet.
    #[must_use]
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Its driver's name: `net_memif`.
    #[must_use]
    pub fn driver(&self) -> String {
        crate::fault::text(self.parts.driver.as_ptr())
    }

    /// Its buffers.
    #[must_use]
    pub fn pool(&self) -> Pool {
        Pool::of(self.parts.pool)
    }

    /// Somebody is at the other end of its cable.
    #[must_use]
    pub fn is_up(&self) -> bool {
        ffi::shim_port_is_up(self.parts.number) != 0
    }

    /// What it has counted; nothing, where its driver does not count.
    #[must_use]
    pub fn counts(&self) -> PortCounts {
        let mut raw = ffi::PortCounts::default();
        // SAFETY: there to be written; where it is not, it stays zero.
        let _ = unsafe { ffi::shim_port_counts(self.parts.number, &raw mut raw) };
        PortCounts {
            frames_in: raw.frames_in,
            bytes_in: raw.bytes_in,
            frames_out: raw.frames_out,
            bytes_out: raw.bytes_out,
            missed: raw.missed,
            errors_in: raw.errors_in,
            errors_out: raw.errors_out,
            no_buffer: raw.no_buffer,
        }
    }

    /// Adds frames that have come, a burst at most; how many.
    #[inline]
    pub fn receive(&mut self, frames: &mut Vec<Frame>) -> usize {
        let mut burst = [NO_FRAME; BURST];
        // SAFETY: there is room for so many frames, and the port is borrowed mutably: nobody
        // else is at its queue.
        let count =
            unsafe { ffi::shim_port_receive(self.parts.number, burst.as_mut_ptr(), ffi::BURST) };
        for &parts in burst.iter().take(count.into()) {
            // SAFETY: just given out, to nobody else; DPDK has frames lie within their buffers.
            frames.push(unsafe { Frame::adopt(parts) });
        }
        count.into()
    }

    /// Sends frames, from the first on, as far as the port takes them now; those are gone from
    /// the list then. True when all are.
    #[inline]
    pub fn send(&mut self, frames: &mut Vec<Frame>) -> bool {
        let mut sent = 0;
        for burst in frames.chunks(BURST) {
            let count = count_of(burst);
            // SAFETY: so many frames that are ours, and the port is borrowed mutably: nobody
            // else is at its queue.
            let took =
                unsafe { ffi::shim_port_send(self.parts.number, burst.as_ptr().cast(), count) };
            sent += usize::from(took);
            if took < count {
                break;
            }
        }
        // The port's now.
        frames.drain(..sent).for_each(std::mem::forget);
        frames.is_empty()
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let closed = ffi::shim_port_close(self.parts.number);
        debug_assert_eq!(closed, 0, "closing our own port");
    }
}
