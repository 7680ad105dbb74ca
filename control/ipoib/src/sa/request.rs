//! What the SA is asked, and what it answers.

use crate::gid::Gid;
use crate::mad::{
    AttributeId, ClassPortInfo, InformInfo, Mad, MadOctets, McLeft, McMember, McMemberTemplate,
    Method, Path, PathTemplate, Reject, Status, Tid, emit,
};

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The one record that fits: a group's, or of a port's own membership.
    Record(McMemberTemplate),
    /// All records that fit.
    Records(McMemberTemplate),
    /// To join a group, or to create it.
    Join(McMemberTemplate),
    /// To leave a group.
    Leave(McMemberTemplate),
    /// To begin or end a subscription to reports.
    Subscribe(InformInfo),
    /// What the SA can do.
    Capabilities,
    /// The path to a port.
    Path(PathTemplate),
}

/// What a request was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A record of a group or a membership.
    Member(McMember),
    /// What of a membership is left.
    Left(McLeft),
    /// Several; of them that could not be parsed nothing is here.
    Members(Vec<McMember>),
    /// The subscription stands.
    Subscribed,
    /// The SA's abilities.
    Capabilities(ClassPortInfo),
    /// A path.
    Path(Path),
}

/// Why what came does not answer the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// It cannot be parsed.
    Broken(Reject),
    /// It is of another method or attribute.
    OtherKind,
    /// It is about another group or another port.
    OtherRecord,
}

impl From<Reject> for Mismatch {
    fn from(reject: Reject) -> Self {
        Self::Broken(reject)
    }
}

impl Request {
    /// The datagram that asks it.
    #[must_use]
    pub fn octets(&self, tid: Tid) -> MadOctets {
        match self {
            Self::Record(template) => emit::request(Method::Get, tid, template),
            Self::Records(template) => emit::request(Method::GetTable, tid, template),
            Self::Join(template) => emit::request(Method::Set, tid, template),
            Self::Leave(template) => emit::request(Method::Delete, tid, template),
            Self::Subscribe(inform) => emit::whole(Method::Set, tid, inform),
            Self::Capabilities => emit::bare(Method::Get, tid, AttributeId::CLASS_PORT_INFO),
            Self::Path(template) => emit::request(Method::Get, tid, template),
        }
    }

    /// Reads its answer.
    ///
    /// # Errors
    /// What came is no answer to it: the SA's refusal is one, though, and is `Ok(Err(status))`.
    pub fn read(&self, mad: &Mad<'_>, records: usize) -> Result<Result<Answer, Status>, Mismatch> {
        if (mad.method, mad.attribute) != self.answered_by() {
            return Err(Mismatch::OtherKind);
        }
        if mad.status != Status::Ok {
            return Ok(Err(mad.status));
        }
        Ok(Ok(match self {
            Self::Record(template) | Self::Join(template) => {
                let record: McMember = mad.record()?;
                same_group(template, record.mgid, record.port_gid)?;
                Answer::Member(record)
            }
            Self::Leave(template) => {
                let left: McLeft = mad.record()?;
                same_group(template, left.mgid, left.port_gid)?;
                Answer::Left(left)
            }
            Self::Records(_) => {
                let table = mad.table::<McMember>()?;
                Answer::Members(table.take(records).flatten().collect())
            }
            Self::Subscribe(_) => Answer::Subscribed,
            Self::Capabilities => Answer::Capabilities(mad.record()?),
            Self::Path(template) => {
                let path: Path = mad.record()?;
                let other = |asked: Option<Gid>, got| asked.is_some_and(|asked| asked != got);
                if other(template.dgid, path.dgid) || other(template.sgid, path.sgid) {
                    return Err(Mismatch::OtherRecord);
                }
                Answer::Path(path)
            }
        }))
    }

    const fn answered_by(&self) -> (Method, AttributeId) {
        match self {
            Self::Record(_) | Self::Join(_) => (Method::GetResp, AttributeId::MC_MEMBER_RECORD),
            Self::Records(_) => (Method::GetTableResp, AttributeId::MC_MEMBER_RECORD),
            Self::Leave(_) => (Method::DeleteResp, AttributeId::MC_MEMBER_RECORD),
            Self::Subscribe(_) => (Method::GetResp, AttributeId::INFORM_INFO),
            Self::Capabilities => (Method::GetResp, AttributeId::CLASS_PORT_INFO),
            Self::Path(_) => (Method::GetResp, AttributeId::PATH_RECORD),
        }
    }
}

/// It is of the group that was asked about, and of the port if it names one: the SA hides ports from who is not trusted.
fn same_group(asked: &McMemberTemplate, mgid: Gid, port_gid: Gid) -> Result<(), Mismatch> {
    let other_group = asked.mgid.is_some_and(|asked| asked != mgid);
    let hidden = port_gid == Gid::default();
    let other_port = asked.port_gid.is_some_and(|asked| asked != port_gid) && !hidden;
    if other_group || other_port {
        return Err(Mismatch::OtherRecord);
    }
    Ok(())
}
