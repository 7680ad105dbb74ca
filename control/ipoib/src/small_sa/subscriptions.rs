//! Subscriptions to reports, and the reports.

use super::{SmallSa, SubnetPort, refusal};
use crate::gid::Lid;
use crate::mad::{Event, InformInfo, Mad, Method, Notice, Status, Tid, emit};

impl SmallSa {
    pub(super) fn answer_subscription(&mut self, from: &SubnetPort, mad: &Mad<'_>) -> Vec<u8> {
        let Ok(asked) = mad.record::<InformInfo>() else {
            return refusal(mad, Status::RequestInvalid);
        };
        let key = (from.lid, asked.trap);
        let valid = if asked.subscribe {
            self.subscribers.insert(key);
            true
        } else {
            self.subscribers.remove(&key)
        };
        let status = if valid {
            Status::Ok
        } else {
            Status::RequestInvalid
        };
        emit::reply(mad, status, Some(&asked)).to_vec()
    }

    /// Tells every subscriber of an event.
    pub(super) fn report(&mut self, event: Event) {
        let notice = Notice::of_event(event, self.lid, self.gid);
        let to = |(_, trap): &&(Lid, u16)| *trap == event.trap() || *trap == 0xFFFF;
        let subscribers: Vec<Lid> = self.subscribers.iter().filter(to).map(|it| it.0).collect();
        for lid in subscribers {
            if self.reports.len() >= self.capacity.reports {
                return;
            }
            self.report_tid = self.report_tid.wrapping_add(1);
            let mad = emit::whole(Method::Report, Tid(self.report_tid), &notice);
            self.reports.push_back((lid, mad.to_vec()));
        }
    }

    /// The next report, and the LID that it goes to.
    pub fn next_report(&mut self) -> Option<(Lid, Vec<u8>)> {
        self.reports.pop_front()
    }

    /// Who has subscribed to what trap.
    pub fn subscriptions(&self) -> impl Iterator<Item = (Lid, u16)> + '_ {
        self.subscribers.iter().copied()
    }
}
