//! What both ends know of every RPC of a run: the judge of what arrives.

use crate::message::{Rpc, check_same};
use rpcrdma_engine::CallError;
use rpcrdma_wire::{Version, Xid};
use std::collections::BTreeMap;

/// How an RPC ended at its requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its Reply came, as it was sent.
    Answered,
    /// It failed.
    Failed(CallError),
    /// It was given up, and its memory came back.
    Cancelled,
}

/// One RPC and what has become of it.
#[derive(Debug)]
pub struct Entry {
    /// What is called and answered.
    pub rpc: Rpc,
    /// Times it reached a service on this connection.
    pub runs: u32,
    /// The service gave it up, with an error.
    pub abandoned: bool,
    /// The requester was told that it needs more room.
    pub starved: bool,
    /// How it ended; once.
    pub outcome: Option<Outcome>,
}

/// All RPCs of a run, by the end that calls and the xid.
pub struct Ledger {
    entries: BTreeMap<(usize, u32), Entry>,
    /// The client's BRS never changes, and the server knows it.
    policed: bool,
}

impl Ledger {
    /// An empty ledger. `policed`: the server knows at any time which Calls the client takes,
    /// so that none of them is refused for what it is (V2-22).
    #[must_use]
    pub fn new(policed: bool) -> Ledger {
        Ledger {
            entries: BTreeMap::new(),
            policed,
        }
    }

    /// A new RPC; false when this end has used the xid before.
    pub fn open(&mut self, end: usize, xid: Xid, rpc: Rpc) -> bool {
        let entry = Entry {
            rpc,
            runs: 0,
            abandoned: false,
            starved: false,
            outcome: None,
        };
        match self.entries.entry((end, xid.0)) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(entry);
                true
            }
            std::collections::btree_map::Entry::Occupied(_) => false,
        }
    }

    /// An RPC that was never taken: as if it had not been made.
    pub fn withdraw(&mut self, end: usize, xid: Xid) {
        self.entries.remove(&(end, xid.0));
    }

    /// The RPC that end `caller` calls with this xid.
    #[must_use]
    pub fn rpc(&self, caller: usize, xid: Xid) -> &Rpc {
        &self.entry(caller, xid).rpc
    }

    fn entry(&self, caller: usize, xid: Xid) -> &Entry {
        let entry = self.entries.get(&(caller, xid.0));
        entry.unwrap_or_else(|| panic!("an RPC that end {caller} never made: {xid:?}"))
    }

    fn entry_mut(&mut self, caller: usize, xid: Xid) -> &mut Entry {
        let entry = self.entries.get_mut(&(caller, xid.0));
        entry.unwrap_or_else(|| panic!("an RPC that end {caller} never made: {xid:?}"))
    }

    /// A Call reached the service: whole, as it was sent, and for the first time.
    pub fn serve(&mut self, caller: usize, xid: Xid, message: &[u8]) {
        let entry = self.entry_mut(caller, xid);
        check_same(message, &entry.rpc.call.whole(), "a Call");
        entry.runs += 1;
        assert_eq!(entry.runs, 1, "{xid:?} ran twice on one connection");
        // The server may not know yet that the connection is lost, or its Call cancelled.
        let known = [
            None,
            Some(Outcome::Cancelled),
            Some(Outcome::Failed(CallError::ConnectionLost)),
        ];
        assert!(known.contains(&entry.outcome), "{xid:?} runs after its end");
    }

    /// The service gave it up.
    pub fn abandon(&mut self, caller: usize, xid: Xid) {
        self.entry_mut(caller, xid).abandoned = true;
    }

    /// The requester is asked for more room.
    pub fn starve(&mut self, caller: usize, xid: Xid) {
        self.entry_mut(caller, xid).starved = true;
    }

    /// It ended.
    pub fn end(&mut self, caller: usize, xid: Xid, outcome: Outcome, version: Option<Version>) {
        let policed = self.policed || caller == 0;
        let entry = self.entry_mut(caller, xid);
        assert_eq!(entry.outcome, None, "{xid:?} ended twice, now {outcome:?}");
        entry.outcome = Some(outcome);
        match outcome {
            Outcome::Answered => assert!(entry.runs > 0, "{xid:?} answered, and never run"),
            // Version one has no other word for any of it.
            Outcome::Failed(CallError::Chunk) if policed => {
                assert_eq!(version, Some(Version::One));
            }
            Outcome::Failed(CallError::System) if policed => {
                assert!(
                    entry.abandoned || entry.starved,
                    "{xid:?}: SYSTEM for nothing"
                );
            }
            _ => {}
        }
    }

    /// A new connection: what is called again may run again.
    pub fn reconnect(&mut self) {
        self.entries.values_mut().for_each(|entry| entry.runs = 0);
    }

    /// Every RPC ended.
    pub fn check_all_ended(&self) {
        for ((end, xid), entry) in &self.entries {
            assert!(entry.outcome.is_some(), "end {end}: {xid:#x} never ended");
        }
    }

    /// How many ended in each way: answered, failed, cancelled.
    #[must_use]
    pub fn tally(&self) -> [u64; 3] {
        let mut tally = [0; 3];
        for entry in self.entries.values() {
            match entry.outcome {
                Some(Outcome::Answered) => tally[0] += 1,
                Some(Outcome::Failed(_)) => tally[1] += 1,
                Some(Outcome::Cancelled) => tally[2] += 1,
                None => {}
            }
        }
        tally
    }
}
