//! One library, as many times as there are users of it.
//!
//! All state of usrsctp is in its global variables, with locks around them. Two lcores on one
//! library would take each other's locks for every packet, and one's timers would send the
//! other's packets. So each gets a library of its own: the first, the one that is installed; each
//! further one, the same file read into memory and loaded from there, which the dynamic loader
//! takes for another library and gives variables of its own. They share their user's C library
//! and nothing else.
//!
//! A copy is never unloaded, as a thread of its sleeps in it. It goes back to a list when its
//! user is gone, and to the next one that comes. The list's lock is taken for these two moments.

use crate::{Absent, Calls, library};
use libc::c_void;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{ffi::CStr, mem::MaybeUninit, ops::Deref};

/// A loaded library that nobody else in the process uses.
#[derive(Debug)]
pub struct Instance {
    calls: &'static Calls,
    fresh: bool,
}

#[derive(Debug)]
struct Shelf {
    /// The file that the first was loaded from.
    path: Option<PathBuf>,
    idle: Vec<&'static Calls>,
}

static SHELF: Mutex<Shelf> = Mutex::new(Shelf {
    path: None,
    idle: Vec::new(),
});

fn shelf() -> MutexGuard<'static, Shelf> {
    SHELF.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Instance {
    /// A copy that has no user.
    ///
    /// # Errors
    ///
    /// [`Absent`], to be shown as it is.
    pub fn take() -> Result<Instance, Absent> {
        let mut shelf = shelf();
        if let Some(calls) = shelf.idle.pop() {
            return Ok(Instance {
                calls,
                fresh: false,
            });
        }
        let calls = match &shelf.path {
            None => {
                let first = library::load(library::NAME)?;
                shelf.path = Some(file_of(&first)?);
                first
            }
            Some(path) => loaded_from_memory(path)?,
        };
        Ok(Instance {
            calls: Box::leak(Box::new(calls)),
            fresh: true,
        })
    }

    /// Nobody has used it before: it has to be set up.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }
}

impl Deref for Instance {
    type Target = Calls;

    fn deref(&self) -> &Calls {
        self.calls
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        shelf().idle.push(self.calls);
    }
}

/// The file that a library was loaded from.
fn file_of(calls: &Calls) -> Result<PathBuf, Absent> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let inside = calls.usrsctp_conninput as *const c_void;
    // SAFETY: the structure is writable.
    let found = unsafe { libc::dladdr(inside, info.as_mut_ptr()) };
    // SAFETY: all zeros is a value of this structure, and so is what the call made of it.
    let info = unsafe { info.assume_init() };
    if found == 0 || info.dli_fname.is_null() {
        return Err(Absent::NoCopy {
            text: "its file is not known".into(),
        });
    }
    // SAFETY: the loader's own name of a library that stays loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Ok(PathBuf::from(name.to_string_lossy().into_owned()))
}

fn loaded_from_memory(path: &PathBuf) -> Result<Calls, Absent> {
    let failed = |step: &str, error: io::Error| Absent::NoCopy {
        text: format!("{step}: {error}"),
    };
    let image = fs::read(path).map_err(|error| failed("read", error))?;
    let memory = memfd_create(library::NAME, MemfdFlags::CLOEXEC)
        .map_err(|errno| failed("memfd_create", errno.into()))?;
    let mut memory = File::from(memory);
    memory
        .write_all(&image)
        .map_err(|error| failed("write", error))?;
    let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
    let calls = library::load(&path).map_err(|absent| Absent::NoCopy {
        text: absent.to_string(),
    })?;
    // It stays open: the loader knows a library by its path, and must not meet this one again.
    let _ = memory.into_raw_fd();
    Ok(calls)
}
