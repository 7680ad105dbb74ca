//! How memory is exposed to a peer on a device: what stands behind [`Port::expose`].
//!
//! | means | what a handle is | made | ended |
//! |---|---|---|---|
//! | [`Means::Windows`] | a memory window of type 2, of one connection | by a work request | by a work request, or the peer |
//! | [`Means::Regions`] | a region of exactly that memory | by a thread beside the lcore, while the Call waits | by the same thread, or the peer |
//! | [`Means::Arena`] | the one region of all the lcore's memory | when the port is opened | never |
//!
//! What a region costs, made and ended, in the emulated guest: 75 us on siw and 125 us on rxe, the same
//! from 4 to 64 KiB, so it is the two system calls. A window costs two entries of the send queue.
//!
//! The first is what a device should have. The second is for one that has no windows: slower, and
//! a region can be used from every connection of its port, by who knows its handle. The third
//! gives every peer all memory of the lcore for as long as it is connected: the configuration has
//! to ask for it by name.
//!
//! [`Port::expose`]: rpcrdma_fabric::Port::expose

mod directory;
mod region;
mod registrar;
mod window;

pub(crate) use region::{Regions, Told};
pub(crate) use registrar::{Registrar, Site};
pub(crate) use window::{Window, Windows};

use rpcrdma_fabric::{Exposure, Handle};

/// How memory is exposed on a port.
#[derive(Debug)]
pub(crate) enum Means {
    /// By memory windows.
    Windows(Windows),
    /// By short-lived regions.
    Regions(Regions),
    /// By the region of the whole arena, whose handle this is.
    Arena(Handle),
}

impl Means {
    /// What a peer gets.
    pub(crate) fn kind(&self) -> Exposure {
        match self {
            Means::Windows(_) => Exposure::Window,
            Means::Regions(_) => Exposure::Region,
            Means::Arena(_) => Exposure::Arena,
        }
    }

    /// Whether the thread beside the lcore has said something.
    #[inline]
    pub(crate) fn has_answer(&self) -> bool {
        match self {
            Means::Regions(regions) => regions.has_answer(),
            Means::Windows(_) | Means::Arena(_) => false,
        }
    }
}
