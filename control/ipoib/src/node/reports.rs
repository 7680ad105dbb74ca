//! Management datagrams that come: answers, and reports of the SA. Anything else is counted and left.

use super::{Node, Output};
use crate::gid::Lid;
use crate::mad::{AttributeId, Event, Mad, Method, Notice, TABLE_BYTES, emit};
use crate::time::Moment;
use crate::trouble::{Ignored, Trouble};

impl Node {
    /// A management datagram came from a port of this LID: 256 octets, or a table of many put together.
    pub fn mad_came(&mut self, now: Moment, from: Lid, bytes: &[u8]) {
        if self.closed {
            return;
        }
        if let Err(why) = self.take_mad(now, from, bytes) {
            self.ledger.ignored(why);
        }
        self.settle(now);
    }

    fn take_mad(&mut self, now: Moment, from: Lid, bytes: &[u8]) -> Result<(), Ignored> {
        let mad = Mad::parse(bytes, TABLE_BYTES).map_err(|_| Ignored::BrokenMad)?;
        let manager = self.port.as_ref().map(|port| port.sm_lid);
        if manager != Some(from) {
            return Err(Ignored::Stranger);
        }
        match (mad.method, mad.attribute) {
            (Method::Report, AttributeId::NOTICE) => self.report(now, &mad),
            (method, _) if method.is_response() => self.answer_came(now, &mad),
            _ => Err(Ignored::OtherMad),
        }
    }

    fn answer_came(&mut self, now: Moment, mad: &Mad<'_>) -> Result<(), Ignored> {
        if let Some(settled) = self.sa.answer(now, mad, &mut self.chance)? {
            self.outcome(now, settled);
        }
        Ok(())
    }

    /// A report. One beyond the rate is not answered: the SA says it again later, or the list of all groups has said it.
    fn report(&mut self, now: Moment, mad: &Mad<'_>) -> Result<(), Ignored> {
        if !self.reports.take(now) {
            if self.census_for_storm(now) {
                self.tell(now, Trouble::Storm);
            }
            return Err(Ignored::ReportStorm);
        }
        let notice: Notice = mad.record().map_err(|_| Ignored::BrokenMad)?;
        self.acknowledge(mad, &notice);
        match notice.event() {
            Some(Event::GroupCreated(mgid)) => self.group_appeared(now, mgid),
            Some(Event::GroupDeleted(mgid)) => self.group_ended(now, mgid),
            _ => return Err(Ignored::OtherReport),
        }
        Ok(())
    }

    fn acknowledge(&mut self, report: &Mad<'_>, notice: &Notice) {
        let Some(port) = self.port.as_ref() else {
            return;
        };
        self.outputs.push_back(Output::Mad {
            to: port.sm_lid,
            sl: port.sm_sl,
            bytes: emit::acknowledge(report, notice).to_vec(),
        });
    }
}
