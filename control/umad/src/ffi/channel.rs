//! An open port: agents registered on it, MADs sent and received.

use super::calls::Library;
use super::sysfs::c_string;
use crate::frame::Frame;
use crate::reader::Line;
use crate::{Absent, Fault, PortName};
use libc::{c_int, c_long};
use std::time::Duration;

/// Words of the mask of methods that an agent wants to hear of: 128 bits.
const MASK_WORDS: usize = 16 / size_of::<c_long>();
/// Methods that a bit mask has room for in its first word, on every architecture.
const METHODS: u8 = 32;

/// An open port. Dropped, it is closed, its agents with it. Sending and receiving may happen at the same time on two threads:
/// the kernel has a lock for each.
#[derive(Debug)]
pub(crate) struct Channel {
    library: &'static Library,
    descriptor: c_int,
}

impl Channel {
    /// Opens a port.
    ///
    /// # Errors
    /// It is not there, may not be opened (that needs the right to write to /dev/infiniband/umad*), or the kernel is too old.
    pub(crate) fn open(library: &'static Library, name: &PortName) -> Result<Self, Absent> {
        let device = c_string(name)?;
        // SAFETY: the name is a C string.
        let descriptor =
            unsafe { (library.umad_open_port)(device.as_ptr(), c_int::from(name.number())) };
        if descriptor < 0 {
            return Err(Self::not_opened(descriptor).into());
        }
        let channel = Self {
            library,
            descriptor,
        };
        library.has_long_header()?;
        Ok(channel)
    }

    /// The library answers EIO for whatever kept the file from being opened; errno still knows.
    fn not_opened(returned: c_int) -> Fault {
        let left = std::io::Error::last_os_error().raw_os_error();
        match (returned, left) {
            (code, Some(errno)) if code == -libc::EIO && errno != 0 => Fault {
                call: "umad_open_port",
                errno,
            },
            _ => Fault::of("umad_open_port", returned),
        }
    }

    /// Makes an agent of a management class, which hears unasked of `methods` (below 32), and with `rmpp` 1 sends and receives
    /// messages of several MADs as one.
    ///
    /// # Errors
    /// Methods of this class are taken by somebody else on this port, or there are too many agents.
    pub(crate) fn register(
        &self,
        class: u8,
        version: u8,
        rmpp: u8,
        methods: &[u8],
    ) -> Result<u32, Fault> {
        let mut mask: [c_long; MASK_WORDS] = [0; MASK_WORDS];
        for method in methods.iter().filter(|method| **method < METHODS) {
            mask[0] |= 1 << method;
        }
        // SAFETY: the descriptor is open, and the mask has its 128 bits.
        let agent = unsafe {
            (self.library.umad_register)(
                self.descriptor,
                c_int::from(class),
                c_int::from(version),
                rmpp,
                mask.as_mut_ptr(),
            )
        };
        u32::try_from(agent).map_err(|_| Fault::of("umad_register", agent))
    }

    /// Ends an agent: what is on its way to it is dropped.
    pub(crate) fn unregister(&self, agent: u32) {
        // Fails only when it is gone already.
        // SAFETY: the descriptor is open.
        let _ = unsafe { (self.library.umad_unregister)(self.descriptor, agent.cast_signed()) };
    }
}

impl Line for Channel {
    fn send(&self, frame: &mut Frame, timeout: Duration) -> Result<(), Fault> {
        let agent = frame.header().agent_id.cast_signed();
        let length = c_int::try_from(frame.mad().len()).unwrap_or(0);
        let timeout = milliseconds(timeout);
        // SAFETY: the descriptor is open; the frame is a header and `length` octets, which the library reads, and it writes
        // to the header alone.
        let returned = unsafe {
            (self.library.umad_send)(self.descriptor, agent, frame.start(), length, timeout, 0)
        };
        if returned < 0 {
            return Err(Fault::of("umad_send", returned));
        }
        Ok(())
    }

    fn receive(&self, frame: &mut Frame, wait: Duration) -> Result<Option<u32>, Fault> {
        frame.clear();
        let mut length = c_int::try_from(frame.room()).unwrap_or(c_int::MAX);
        let wait = milliseconds(wait);
        // SAFETY: the descriptor is open; the frame has room for a header and `length` octets.
        let returned = unsafe {
            (self.library.umad_recv)(self.descriptor, frame.start(), &raw mut length, wait)
        };
        let length = usize::try_from(length).unwrap_or(0);
        match returned {
            0.. => {
                frame.arrived(length);
                Ok(Some(returned.cast_unsigned()))
            }
            _ => match Fault::of("umad_recv", returned) {
                fault if fault.errno == libc::ETIMEDOUT => Ok(None),
                fault if fault.errno == libc::ENOSPC && frame.grow(length) => Ok(None),
                fault => Err(fault),
            },
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours, and is closed once.
        unsafe { (self.library.umad_close_port)(self.descriptor) };
    }
}

/// At least 1 where there is any time at all: 0 means no time limit, and no answer, to the kernel.
fn milliseconds(time: Duration) -> c_int {
    let rounded_up = time.as_nanos().div_ceil(1_000_000);
    c_int::try_from(rounded_up).unwrap_or(c_int::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_is_at_least_a_millisecond() {
        assert_eq!(milliseconds(Duration::ZERO), 0);
        assert_eq!(milliseconds(Duration::from_nanos(1)), 1);
        assert_eq!(milliseconds(Duration::from_millis(250)), 250);
        assert_eq!(milliseconds(Duration::MAX), c_int::MAX);
    }
}
