//! Which source ports were used, and which to try next.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// Parties and backends remembered; the oldest is forgotten for a new one.
const REMEMBERED: usize = 4096;
/// The ports that servers trust: reserved, and not those of well-known services.
const LOWEST: u16 = 512;
const HIGHEST: u16 = 1023;

/// What is known of source ports.
#[derive(Debug)]
pub(super) struct Ports {
    used: HashMap<(String, SocketAddr), u16>,
    order: VecDeque<(String, SocketAddr)>,
    next_privileged: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Self {
            used: HashMap::new(),
            order: VecDeque::new(),
            next_privileged: HIGHEST,
        }
    }
}

impl Ports {
    /// The port that `party` last reached `backend` from.
    pub(super) fn remembered(&self, party: &str, backend: SocketAddr) -> Option<u16> {
        self.used.get(&(party.to_owned(), backend)).copied()
    }

    /// Keeps the port that `party` has reached `backend` from.
    pub(super) fn remember(&mut self, party: &str, backend: SocketAddr, port: u16) {
        let key = (party.to_owned(), backend);
        if self.used.insert(key.clone(), port).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.used.remove(&oldest);
        }
    }

    /// How many privileged ports there are to try.
    pub(super) const PRIVILEGED: u16 = HIGHEST - LOWEST + 1;

    /// A privileged port, another each time: from the highest down, and round again, so that
    /// the one just given up is the last to be tried.
    pub(super) fn next_privileged(&mut self) -> u16 {
        let port = self.next_privileged;
        self.next_privileged = if port == LOWEST { HIGHEST } else { port - 1 };
        port
    }
}

/// True for a port that [`Ports::next_privileged`] could have given.
pub(super) fn is_privileged(port: u16) -> bool {
    (LOWEST..=HIGHEST).contains(&port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privileged_ports_go_round() {
        let mut ports = Ports::default();
        let mut given: Vec<u16> = (0..Ports::PRIVILEGED)
            .map(|_| ports.next_privileged())
            .collect();
        assert_eq!((given[0], given[511]), (1023, 512));
        assert_eq!(ports.next_privileged(), 1023);
        given.dedup();
        assert_eq!(given.len(), 512);
        assert!(given.into_iter().all(is_privileged));
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut ports = Ports::default();
        let backend = "127.0.0.1:2049".parse().unwrap();
        for party in 0..=4096_u16 {
            ports.remember(&party.to_string(), backend, party);
            ports.remember(&party.to_string(), backend, party);
        }
        assert_eq!(ports.remembered("0", backend), None);
        assert_eq!(ports.remembered("1", backend), Some(1));
        assert_eq!(ports.remembered("4096", backend), Some(4096));
        assert_eq!(
            ports.remembered("1", "127.0.0.2:2049".parse().unwrap()),
            None
        );
        assert_eq!((ports.used.len(), ports.order.len()), (4096, 4096));
    }
}
