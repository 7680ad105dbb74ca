//! Book-keeping of one end: every piece of work is told of once and in order, every session ends
//! once, and nothing is told afterwards.

use crate::support::Told;
use rpcrdma_iwarp::StreamId;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, Default)]
struct Account {
    live: bool,
    receives: VecDeque<u64>,
    works: VecDeque<u64>,
}

/// The books.
#[derive(Debug, Default)]
pub(crate) struct Ledger(BTreeMap<StreamId, Account>);

impl Ledger {
    fn account(&mut self, id: StreamId) -> &mut Account {
        self.0.entry(id).or_default()
    }

    /// This side has asked for a session.
    pub(crate) fn initiated(&mut self, id: StreamId) {
        let account = self.account(id);
        assert!(!account.live, "{id:?}");
        account.live = true;
    }

    pub(crate) fn receive(&mut self, id: StreamId, work: u64) {
        self.account(id).receives.push_back(work);
    }

    pub(crate) fn work(&mut self, id: StreamId, work: u64) {
        self.account(id).works.push_back(work);
    }

    /// The endpoint was taken back, and its receives with it.
    pub(crate) fn unbound(&mut self, id: StreamId) {
        self.account(id).receives.clear();
    }

    /// Something was told.
    pub(crate) fn told(&mut self, id: StreamId, told: &Told) {
        let account = self.account(id);
        assert_eq!(
            account.live,
            !matches!(told, Told::Requested(..)),
            "{id:?} {told:?}"
        );
        match told {
            Told::Requested(..) => account.live = true,
            Told::Accepted(..) | Told::Rejected(_) => {}
            Told::Received { id, .. } => assert_eq!(account.receives.pop_front(), Some(*id)),
            Told::Done(id) => assert_eq!(account.works.pop_front(), Some(*id)),
            Told::Failed(id, _) => {
                let queue = if account.works.front() == Some(id) {
                    &mut account.works
                } else {
                    &mut account.receives
                };
                assert_eq!(queue.pop_front(), Some(*id));
            }
            Told::Ended(_) => {
                assert!(account.works.is_empty() && account.receives.is_empty());
                account.live = false;
            }
        }
    }

    /// Nothing is left.
    pub(crate) fn close(&self) {
        for (id, account) in &self.0 {
            assert!(!account.live, "{id:?} {account:?}");
        }
    }
}
