//! What the library hands over: a message or a notification, in memory from the C allocator.

use crate::roster::{Label, Token};
use libc::c_void;
use std::ptr::NonNull;
use std::slice;

/// A message or notification.
#[derive(Debug)]
pub(super) struct Parcel {
    data: NonNull<u8>,
    len: usize,
    pub(super) token: Token,
    /// Of a message; `None` with a notification.
    pub(super) label: Option<Label>,
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
        token: Token,
        label: Option<Label>,
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
    pub(super) fn copy_of(octets: &[u8], token: Token, label: Option<Label>) -> Parcel {
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
