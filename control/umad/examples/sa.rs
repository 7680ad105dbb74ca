//! Single requests to the subnet administrator, by hand or by a script: reads commands, says in a line what came of each.
//!
//! ```text
//! get MGID [COMPONENT]...          the record of a group, or of a member of it
//! table MGID [COMPONENT]...        all that match
//! join MGID state=1 [COMPONENT]... the port becomes a member; components create the group where it does not exist
//! leave MGID state=1
//! subscribe TRAP, unsubscribe TRAP
//! report SECONDS                   waits for a report, and acknowledges it
//! facts                            the port, as it is known now
//! capabilities                     ClassPortInfo
//! path GID                         a way to a port, good for the way back too
//! end
//! ```
//!
//! Components are numbers, but for `port`, which is a GID, and may be compared where a request can: `mtu=2048`, `mtu=greater:2048`,
//! `rate=less:3`. The answer begins with the status in hexadecimal: `0x0000 ok mgid=... mlid=0xc003 state=0x1 ...`, `0x0200 request invalid`, or is
//! `silence`. A request is sent once more when nothing has come for a second.

mod kit;

use anyhow::{Context, Result, anyhow, bail};
use rpcrdma_ipoib::gid::Gid;
use rpcrdma_ipoib::join::JoinState;
use rpcrdma_ipoib::mad::{
    AttributeId, ClassPortInfo, InformInfo, Mad, McMember, McMemberTemplate, Method, Notice,
    PacketLife, Path, PathTemplate, Rate, Reject, Selector, Status, TABLE_BYTES, Tid, emit,
};
use rpcrdma_ipoib::mgid::Scope;
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::qkey::QKey;
use rpcrdma_umad::{Class, Event, Reply, Subnet, Target, Umad};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{BufRead, Write};
use std::net::Ipv6Addr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often a request is sent, and how long its answer may take.
const TRIES: u32 = 2;
const ANSWER: Duration = Duration::from_secs(1);
/// How long the port itself may take.
const FACTS: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    kit::report(serve())
}

fn serve() -> Result<()> {
    let mut client = Client {
        port: kit::open()?,
        last: 0,
        reports: Vec::new(),
    };
    client.learn()?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match line.trim() {
            "" => continue,
            "end" => break,
            _ => {}
        }
        let said = client
            .obey(&line)
            .unwrap_or_else(|error| format!("no: {error:#}"));
        writeln!(out, "{said}")?;
        out.flush()?;
    }
    Ok(())
}

/// The port, and what has come of its own accord.
struct Client {
    port: Umad,
    last: u32,
    reports: Vec<(Gid, u16)>,
}

impl Client {
    fn obey(&mut self, line: &str) -> Result<String> {
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap_or("");
        let mut target = || words.next().context("of what?");
        match verb {
            "facts" => self.facts(),
            "capabilities" => self.capabilities(),
            "subscribe" | "unsubscribe" => {
                let trap = number(target()?)?;
                self.inform(trap, verb == "subscribe")
            }
            "report" => {
                let time = Duration::from_secs(number(target()?)?);
                self.report(time)
            }
            "path" => {
                let dgid = gid(target()?)?;
                self.path(dgid)
            }
            "get" | "table" | "join" | "leave" => {
                let mgid = gid(target()?)?;
                let template = self.template(mgid, verb, words)?;
                self.membership(verb, &template)
            }
            _ => bail!("there is no command {verb}"),
        }
    }

    /// Waits for the first facts: a request needs the SA's address.
    fn learn(&mut self) -> Result<()> {
        self.port.ask_facts();
        let until = Instant::now() + FACTS;
        while Instant::now() < until {
            self.wait(until)?;
            while let Some(event) = self.port.take() {
                if matches!(event, Event::Facts(_)) {
                    return Ok(());
                }
                self.note(event)?;
            }
        }
        bail!("the port tells nothing of itself")
    }

    /// Until something came, or until then.
    fn wait(&self, until: Instant) -> Result<()> {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now()))?;
        poll(&mut [PollFd::new(&self.port, PollFlags::IN)], Some(&left))?;
        Ok(())
    }

    fn facts(&mut self) -> Result<String> {
        self.learn()?;
        let facts = self.port.facts();
        let mtu = facts.mtu.map_or(0, |mtu| mtu.active.octets());
        let (state, gid) = (format!("{:?}", facts.state).to_lowercase(), facts.gid());
        let (lid, sm_lid) = (facts.lid.0, facts.sm_lid.0);
        Ok(format!("{state} {gid} lid={lid} sm_lid={sm_lid} mtu={mtu}"))
    }

    fn capabilities(&mut self) -> Result<String> {
        let tid = self.tid();
        let request = emit::bare(Method::Get, tid, AttributeId::CLASS_PORT_INFO);
        let Some(answer) = self.ask(tid, &request)? else {
            return Ok("silence".into());
        };
        let mad = sound(Mad::parse(&answer, TABLE_BYTES))?;
        let info: ClassPortInfo = sound(mad.record())?;
        let full = info.has_send_only_full_member();
        Ok(format!(
            "{} send_only_full_member={full}",
            status(mad.status)
        ))
    }

    fn inform(&mut self, trap: u16, subscribe: bool) -> Result<String> {
        let tid = self.tid();
        let request = emit::whole(Method::Set, tid, &InformInfo::of_trap(trap, subscribe));
        let answer = self.ask(tid, &request)?;
        let Some(answer) = answer else {
            return Ok("silence".into());
        };
        Ok(status(sound(Mad::parse(&answer, TABLE_BYTES))?.status))
    }

    fn path(&mut self, dgid: Gid) -> Result<String> {
        let tid = self.tid();
        let template = PathTemplate {
            dgid: Some(dgid),
            sgid: Some(self.port.facts().gid()),
            reversible: Some(true),
            numb_path: Some(1),
            ..PathTemplate::default()
        };
        let Some(answer) = self.ask(tid, &emit::request(Method::Get, tid, &template))? else {
            return Ok("silence".into());
        };
        let mad = sound(Mad::parse(&answer, TABLE_BYTES))?;
        let mut said = status(mad.status);
        if mad.status == Status::Ok {
            let path: Path = sound(mad.record())?;
            let (from, to, mtu) = (path.slid.0, path.dlid.0, path.mtu.octets());
            said.push_str(&format!(
                " from={from} to={to} mtu={mtu} rate={}",
                path.rate.code()
            ));
        }
        Ok(said)
    }

    fn membership(&mut self, verb: &str, template: &McMemberTemplate) -> Result<String> {
        let method = match verb {
            "get" => Method::Get,
            "table" => Method::GetTable,
            "join" => Method::Set,
            _ => Method::Delete,
        };
        let tid = self.tid();
        let request = emit::request(method, tid, template);
        let Some(answer) = self.ask(tid, &request)? else {
            return Ok("silence".into());
        };
        let mad = sound(Mad::parse(&answer, TABLE_BYTES))?;
        if mad.status != Status::Ok || method == Method::Delete {
            return Ok(status(mad.status));
        }
        let mut said = status(mad.status);
        match method {
            Method::GetTable => {
                for record in sound(mad.table())? {
                    said.push_str(&described(&sound(record)?));
                }
            }
            _ => said.push_str(&described(&sound(mad.record())?)),
        }
        Ok(said)
    }

    fn report(&mut self, time: Duration) -> Result<String> {
        let until = Instant::now() + time;
        while self.reports.is_empty() && Instant::now() < until {
            self.wait(until)?;
            while let Some(event) = self.port.take() {
                self.note(event)?;
            }
        }
        if self.reports.is_empty() {
            return Ok("silence".into());
        }
        let (group, trap) = self.reports.remove(0);
        Ok(format!("trap {trap} {group}"))
    }

    /// The answer to a request, or `None`.
    fn ask(&mut self, tid: Tid, request: &[u8]) -> Result<Option<Vec<u8>>> {
        for _ in 0..TRIES {
            let facts = self.port.facts();
            let to = Target {
                lid: facts.sm_lid,
                sl: facts.sm_sl,
            };
            let reply = Reply::Within(ANSWER);
            self.port.send(Class::Administration, to, request, reply)?;
            let until = Instant::now() + ANSWER;
            while Instant::now() < until {
                self.wait(until)?;
                if let Some(answer) = self.answer(tid)? {
                    return Ok(Some(answer));
                }
            }
        }
        Ok(None)
    }

    fn answer(&mut self, tid: Tid) -> Result<Option<Vec<u8>>> {
        let mut found = None;
        while let Some(event) = self.port.take() {
            match event {
                Event::Arrived(arrived)
                    if arrived.class == Class::Administration
                        && Mad::parse(&arrived.mad, TABLE_BYTES)
                            .is_ok_and(|mad| mad.method.is_response() && mad.tid == tid) =>
                {
                    found = Some(arrived.mad);
                }
                other => self.note(other)?,
            }
        }
        Ok(found)
    }

    /// What nobody waits for now.
    fn note(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Arrived(arrived) if arrived.class == Class::DirectedRoute => {
                kit::answer_manager(&mut self.port, &arrived)
            }
            Event::Arrived(arrived) => {
                let mad = sound(Mad::parse(&arrived.mad, TABLE_BYTES))?;
                if mad.method != Method::Report {
                    return Ok(());
                }
                let notice: Notice = sound(mad.record())?;
                self.reports.push((notice.gid, notice.trap));
                let answer = emit::acknowledge(&mad, &notice);
                let back = arrived.source.target();
                Ok(self
                    .port
                    .send(Class::Administration, back, &answer, Reply::No)?)
            }
            Event::Ended(fault) => Err(fault.into()),
            Event::Facts(_) | Event::Undelivered { .. } => Ok(()),
        }
    }

    fn tid(&mut self) -> Tid {
        self.last += 1;
        Tid(self.last)
    }

    /// The components that a command names. Who joins or leaves is this port, unless something else is said.
    fn template<'a>(
        &self,
        mgid: Gid,
        verb: &str,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<McMemberTemplate> {
        let joins = matches!(verb, "join" | "leave");
        let mut template = McMemberTemplate {
            mgid: Some(mgid),
            port_gid: joins.then(|| self.port.facts().gid()),
            ..McMemberTemplate::default()
        };
        for word in words {
            let (key, value) = word.split_once('=').context("components are KEY=VALUE")?;
            set(&mut template, key, value)?;
        }
        Ok(template)
    }
}

fn set(template: &mut McMemberTemplate, key: &str, value: &str) -> Result<()> {
    let (selector, compared) = selected(value)?;
    match key {
        "port" => template.port_gid = Some(gid(value)?),
        "state" => template.join_state = Some(JoinState::from_bits(number(value)?)),
        "q_key" => template.q_key = Some(QKey(number(value)?)),
        "p_key" => template.p_key = Some(PKey(number(value)?)),
        "sl" => template.sl = Some(number(value)?),
        "t_class" => template.t_class = Some(number(value)?),
        "flow_label" => template.flow_label = Some(number(value)?),
        "hop_limit" => template.hop_limit = Some(number(value)?),
        "scope" => template.scope = Some(Scope::from_bits(number(value)?)),
        "rate" => template.rate = Some((selector, Rate::from_code(number(compared)?))),
        "life" => template.packet_life = Some((selector, PacketLife::from_code(number(compared)?))),
        "mtu" => {
            let octets: u16 = number(compared)?;
            let mtu = (1..=5)
                .filter_map(Mtu::from_code)
                .find(|mtu| mtu.octets() == octets);
            template.mtu = Some((selector, mtu.context("no such MTU")?));
        }
        _ => bail!("there is no component {key}"),
    }
    Ok(())
}

/// A MAD that was refused, as an error.
fn sound<T>(parsed: Result<T, Reject>) -> Result<T> {
    parsed.map_err(|reject| anyhow!("{reject:?}"))
}

fn selected(value: &str) -> Result<(Selector, &str)> {
    Ok(match value.split_once(':') {
        Some(("greater", rest)) => (Selector::Greater, rest),
        Some(("less", rest)) => (Selector::Less, rest),
        _ => (Selector::Exactly, value),
    })
}

fn number<N>(text: &str) -> Result<N>
where
    N: TryFrom<u64, Error: std::error::Error + Send + Sync + 'static>,
{
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16)?,
        None => text.parse()?,
    };
    Ok(N::try_from(number)?)
}

fn gid(text: &str) -> Result<Gid> {
    Ok(Gid(text.parse::<Ipv6Addr>()?.octets()))
}

fn status(status: Status) -> String {
    format!("{:#06x} {}", status.word(), status.name())
}

fn described(record: &McMember) -> String {
    format!(
        " mgid={} mlid={:#06x} state={:#x} p_key={} q_key={:#x} mtu={} rate={} sl={} t_class={} flow_label={:#x} hop_limit={}",
        record.mgid,
        record.mlid.0,
        record.join_state.bits(),
        record.p_key,
        record.q_key.0,
        record.mtu.octets(),
        record.rate.code(),
        record.sl,
        record.t_class,
        record.flow_label,
        record.hop_limit
    )
}
