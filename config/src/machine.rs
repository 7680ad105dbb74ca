//! What a plan has to know of the machine it is made for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The name of the status socket in its directory.
const SOCKET: &str = "status.sock";
/// Where a service of the system keeps such things.
const SYSTEM: &str = "/run/rpcrdmad";

/// What a plan has to know of the machine, handed in so that a plan can be made for any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Processors that this process may use, in any order.
    pub cores: Vec<usize>,
    /// The status socket where the file names none.
    pub status_socket: PathBuf,
}

impl Machine {
    /// A machine of these processors, with the status socket that the environment suggests: see
    /// [`status_sockets`].
    #[must_use]
    pub fn new(cores: Vec<usize>, user: u32, environment: impl Environment) -> Machine {
        Machine {
            cores,
            status_socket: status_socket(user, &environment),
        }
    }
}

/// Looks up an environment variable: `|name| std::env::var_os(name)`.
pub trait Environment: Fn(&str) -> Option<OsString> {}

impl<F: Fn(&str) -> Option<OsString>> Environment for F {}

/// Where a client should look for the status socket, best first: where a daemon of the same user
/// and environment puts it, then where the system's service has it.
#[must_use]
pub fn status_sockets(user: u32, environment: impl Environment) -> Vec<PathBuf> {
    let mut places = vec![
        status_socket(user, &environment),
        Path::new(SYSTEM).join(SOCKET),
    ];
    places.dedup();
    places
}

/// In the service's runtime directory; without one, root's in the system's place, others' in
/// their own runtime directory or in one below the directory for temporary files.
fn status_socket(user: u32, environment: &impl Environment) -> PathBuf {
    let directory = |name| {
        environment(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    // The variable may list several directories; the first is ours.
    let first = |path: PathBuf| {
        let text = path.to_string_lossy().into_owned();
        PathBuf::from(text.split(':').next().unwrap_or_default())
    };
    let own = || match user {
        0 => PathBuf::from(SYSTEM),
        _ => directory("XDG_RUNTIME_DIR")
            .map(|path| path.join("rpcrdmad"))
            .unwrap_or_else(|| {
                let temporary = directory("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
                temporary.join(format!("rpcrdmad-{user}"))
            }),
    };
    directory("RUNTIME_DIRECTORY")
        .map_or_else(own, first)
        .join(SOCKET)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(user: u32, variables: &[(&str, &str)]) -> Vec<String> {
        let look = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.into())
        };
        let places = status_sockets(user, look);
        places
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    }

    #[test]
    fn the_status_socket_goes_where_its_user_may_write() {
        let system = "/run/rpcrdmad/status.sock";
        assert_eq!(places(0, &[("XDG_RUNTIME_DIR", "/run/user/0")]), [system]);
        assert_eq!(
            places(7, &[("RUNTIME_DIRECTORY", "/run/rpcrdmad:/run/x")]),
            [system]
        );
        let session = "/run/user/7/rpcrdmad/status.sock";
        assert_eq!(
            places(7, &[("XDG_RUNTIME_DIR", "/run/user/7")]),
            [session, system]
        );
        assert_eq!(places(7, &[]), ["/tmp/rpcrdmad-7/status.sock", system]);
        let temporary = "/var/tmp/rpcrdmad-7/status.sock";
        assert_eq!(places(7, &[("TMPDIR", "/var/tmp")]), [temporary, system]);
        assert_eq!(
            places(7, &[("TMPDIR", "relative")])[0],
            "/tmp/rpcrdmad-7/status.sock"
        );
    }
}
