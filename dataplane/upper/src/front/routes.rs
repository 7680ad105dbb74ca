//! Which backend an RPC program goes to.

/// A backend of a front, by its place in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BackendId(pub u16);

/// The routing table of a front, shared by its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    programs: Box<[(u32, BackendId)]>,
    others: Option<BackendId>,
    backends: u16,
}

impl Routes {
    /// Each of `programs` to its backend, all other programs to `others`. Of a program that is
    /// named twice the first counts. NFS and NFSACL belong on one backend (RFC 8267 section 5.2).
    #[must_use]
    pub fn new(
        programs: impl IntoIterator<Item = (u32, BackendId)>,
        others: Option<BackendId>,
    ) -> Self {
        let programs: Box<[_]> = programs.into_iter().collect();
        let ids = programs.iter().map(|&(_, id)| id).chain(others);
        let backends = ids
            .map(|BackendId(id)| id.saturating_add(1))
            .max()
            .unwrap_or(0);
        Self {
            programs,
            others,
            backends,
        }
    }

    /// The backend of a program; `None`: nobody serves it (PROG_UNAVAIL).
    #[must_use]
    pub fn backend_of(&self, program: u32) -> Option<BackendId> {
        let named = self.programs.iter().find(|&&(number, _)| number == program);
        named.map(|&(_, id)| id).or(self.others)
    }

    /// How many backends there are: every id is below it.
    #[must_use]
    pub fn backends(&self) -> u16 {
        self.backends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_go_where_they_are_sent() {
        let (nfs, mount, rest) = (BackendId(0), BackendId(1), BackendId(2));
        let named = [(100_003, nfs), (100_227, nfs), (100_005, mount)];
        let routes = Routes::new(named, None);
        assert_eq!(routes.backend_of(100_227), Some(nfs));
        assert_eq!(routes.backend_of(100_005), Some(mount));
        assert_eq!(routes.backend_of(100_021), None);
        assert_eq!(routes.backends(), 2);
        let routes = Routes::new(named, Some(rest));
        assert_eq!(routes.backend_of(100_021), Some(rest));
        assert_eq!(routes.backends(), 3);
        assert_eq!(Routes::new([], None).backends(), 0);
    }
}
