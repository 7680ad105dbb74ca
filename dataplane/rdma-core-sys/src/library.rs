//! Loading both libraries, once.

use crate::{Absent, ConnectionManager, Verbs};
use std::fmt;
use std::io;
use std::ptr;
use std::sync::OnceLock;

const VERBS: &str = "libibverbs.so.1";
const MANAGER: &str = "librdmacm.so.1";

/// Both libraries' calls. They stay loaded until the process ends: providers start threads and
/// keep tables of their own.
pub struct Library {
    /// libibverbs.so.1.
    pub verbs: Verbs,
    /// librdmacm.so.1.
    pub manager: ConnectionManager,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Library")
    }
}

static LIBRARY: OnceLock<Result<Library, Absent>> = OnceLock::new();

impl Library {
    /// Loads the libraries at the first call, and sees whether there is a device, at each: one
    /// may have been added since.
    ///
    /// # Errors
    /// [`Absent`], to be shown as it is.
    pub fn load() -> Result<&'static Library, Absent> {
        let library = Library::without_device()?;
        library.device_count().and_then(|count| match count {
            0 => Err(Absent::NoDevice),
            _ => library.probe_manager().map(|()| library),
        })
    }

    /// The libraries, whether there is a device or not.
    ///
    /// # Errors
    /// [`Absent::LibraryNotFound`] or [`Absent::LibraryTooOld`].
    pub fn without_device() -> Result<&'static Library, Absent> {
        LIBRARY
            .get_or_init(|| {
                let verbs = open(VERBS)?;
                let manager = open(MANAGER)?;
                Ok(Library {
                    // SAFETY: the table was made from the headers of this very library, whose
                    // symbols are versioned, and old ones are kept as they are.
                    verbs: unsafe { Verbs::from_library(verbs) }
                        .map_err(|error| too_old(VERBS, &error))?,
                    // SAFETY: as above.
                    manager: unsafe { ConnectionManager::from_library(manager) }
                        .map_err(|error| too_old(MANAGER, &error))?,
                })
            })
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Devices the kernel has now.
    fn device_count(&self) -> Result<i32, Absent> {
        let mut count = 0;
        // SAFETY: the count lives through the call.
        let list = unsafe { self.verbs.ibv_get_device_list(&raw mut count) };
        if list.is_null() {
            return Err(Absent::by_errno("ibv_get_device_list", last_errno()));
        }
        // SAFETY: the list is ours, and is freed once.
        unsafe { self.verbs.ibv_free_device_list(list) };
        Ok(count)
    }

    /// Whether the connection manager answers.
    fn probe_manager(&self) -> Result<(), Absent> {
        // SAFETY: takes nothing.
        let channel = unsafe { self.manager.rdma_create_event_channel() };
        if ptr::eq(channel, ptr::null()) {
            return Err(Absent::by_errno("rdma_create_event_channel", last_errno()));
        }
        // SAFETY: the channel is ours, nothing was made on it, and it is destroyed once.
        unsafe { self.manager.rdma_destroy_event_channel(channel) };
        Ok(())
    }
}

fn open(name: &'static str) -> Result<libloading::Library, Absent> {
    // SAFETY: rdma-core's constructors only set up tables of their own.
    unsafe { libloading::Library::new(name) }.map_err(|error| Absent::LibraryNotFound {
        name,
        text: text(&error),
    })
}

fn too_old(name: &'static str, error: &libloading::Error) -> Absent {
    Absent::LibraryTooOld {
        name,
        text: text(error),
    }
}

/// What the loader itself said, where it did.
fn text(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever this machine has, loading says the same each time, and never fails to say why.
    #[test]
    fn loading_is_repeatable() {
        let first = Library::load().map(ptr::from_ref);
        let second = Library::load().map(ptr::from_ref);
        assert_eq!(first, second);
        if let Err(absent) = first {
            let line = absent.to_string();
            assert!(line.starts_with("no RDMA device: "), "{line}");
            assert!(!line.contains('\n'), "{line}");
        }
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let absent = open("libnothing-of-the-kind.so.1").expect_err("there is no such library");
        assert_eq!(
            absent.to_string(),
            "no RDMA device: libnothing-of-the-kind.so.1 not found"
        );
    }
}
