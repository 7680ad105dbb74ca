//! What the library hands over: a message or a notification, in memory from the C allocator.

use libc::c_void;
use std::ptr::NonNull;
use std::slice;

/// The path that packets of an association take, as the library knows it: what stands where
/// others have an address. Never zero, never a pointer.
pub(super) type PathToken = u64;

/// A message or notification.
#[derive(Debug)]
pub(super) struct Parcel {
    data: NonNull<u8>,
    len: usize,
    pub(super) token: PathToken,
    pub(super) label: Label,
}

/// What the library says of a parcel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label {
    pub(super) stream: u16,
    /// Host order.
    pub(super) ppid: u32,
    pub(super) unordered: bool,
    pub(super) notification: bool,
    /// All of a message, or its end.
    pub(super) complete: bool,
}

// SAFETY: the memory has one owner, and the C allocator takes it back from any thread.
unsafe impl Send for Parcel {}

impl Parcel {
    /// Takes over what the library gave; `None` where there is nothing.
    ///
    /// # Safety
    ///
    /// `data` is null, or came from `malloc` with `len` octets set, and nobody else has it.
    pub(super) unsafe fn adopt(
        data: *mut c_void,
        len: usize,
        token: PathToken,
        label: Label,
    ) -> Option<Parcel> {
        let data = NonNull::new(data.cast())?;
        Some(Parcel {
            data,
            len,
            token,
            label,
        })
    }

    /// A parcel as the library would make it.
    #[cfg(test)]
    pub(super) fn copy_of(octets: &[u8], token: PathToken, label: Label) -> Parcel {
        // SAFETY: takes a length.
        let data = unsafe { libc::malloc(octets.len()) };
        assert!(!data.is_null(), "memory");
        // SAFETY: so many octets were allocated, apart from those that are read.
        unsafe { data.copy_from_nonoverlapping(octets.as_ptr().cast(), octets.len()) };
        // SAFETY: from `malloc`, set, and nobody else's.
        unsafe { Parcel::adopt(data, octets.len(), token, label) }.expect("not null")
    }

    /// Its octets.
    pub(super) fn octets(&self) -> &[u8] {
        // SAFETY: `adopt` was promised so many octets that are this parcel's until it is dropped.
        unsafe { slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        // SAFETY: `adopt` was promised memory from `malloc`, and this is its one owner.
        unsafe { libc::free(self.data.as_ptr().cast()) };
    }
}
