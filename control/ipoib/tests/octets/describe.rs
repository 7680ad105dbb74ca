//! What the crate found, in the words of the oracle.

use rpcrdma_ipoib::mad::{
    Attribute, AttributeId, ClassPortInfo, InformInfo, Mad, McLeft, McMember, McMemberTemplate,
    Method, Notice, Path, PathTemplate, Reject, Selector, Table,
};
use rpcrdma_ipoib::packet::{self, HardwareAddress, Operation, Packet};

/// Names with numbers, of which some are absent.
#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn say(mut self, name: &str, value: impl Into<u128>) -> Self {
        self.0.push(format!("{name}={:#x}", value.into()));
        self
    }

    fn maybe(self, name: &str, value: Option<impl Into<u128>>) -> Self {
        match value {
            Some(value) => self.say(name, value),
            None => self,
        }
    }

    fn selected(self, name: &str, value: Option<(Selector, u8)>) -> Self {
        let Some((selector, value)) = value else {
            return self;
        };
        let selector: u8 = match selector {
            Selector::Greater => 0,
            Selector::Less => 1,
            Selector::Exactly => 2,
            Selector::Best => 3,
        };
        self.say(&format!("{name}sel"), selector).say(name, value)
    }

    fn text(self) -> String {
        or_nothing(self.0.join(" "))
    }
}

/// A dash for nothing.
fn or_nothing(text: String) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

fn gid(gid: rpcrdma_ipoib::gid::Gid) -> u128 {
    u128::from_be_bytes(gid.0)
}

fn member(it: &McMember) -> String {
    let words = Words::default()
        .say("mgid", gid(it.mgid))
        .say("port", gid(it.port_gid))
        .say("qkey", it.q_key.0)
        .say("mlid", it.mlid.0)
        .say("mtu", it.mtu as u8)
        .say("tclass", it.t_class)
        .say("pkey", it.p_key.0)
        .say("rate", it.rate.code())
        .say("life", it.packet_life.code());
    let words = words
        .say("sl", it.sl)
        .say("flow", it.flow_label)
        .say("hop", it.hop_limit)
        .say("scope", it.scope.bits())
        .say("state", it.join_state.bits())
        .say("proxy", it.proxy_join);
    words.text()
}

fn left(it: &McLeft) -> String {
    let words = Words::default().say("mgid", gid(it.mgid));
    let words = words.say("port", gid(it.port_gid));
    words.say("state", it.remains.bits()).text()
}

fn member_template(it: &McMemberTemplate) -> String {
    let words = Words::default()
        .maybe("mgid", it.mgid.map(gid))
        .maybe("port", it.port_gid.map(gid))
        .maybe("qkey", it.q_key.map(|it| it.0))
        .maybe("mlid", it.mlid.map(|it| it.0))
        .selected("mtu", it.mtu.map(|(by, it)| (by, it as u8)))
        .maybe("tclass", it.t_class)
        .maybe("pkey", it.p_key.map(|it| it.0))
        .selected("rate", it.rate.map(|(by, it)| (by, it.code())))
        .selected("life", it.packet_life.map(|(by, it)| (by, it.code())));
    let words = words
        .maybe("sl", it.sl)
        .maybe("flow", it.flow_label)
        .maybe("hop", it.hop_limit)
        .maybe("scope", it.scope.map(|it| it.bits()))
        .maybe("state", it.join_state.map(|it| it.bits()))
        .maybe("proxy", it.proxy_join);
    words.text()
}

fn path(it: &Path) -> String {
    let words = Words::default()
        .say("dgid", gid(it.dgid))
        .say("sgid", gid(it.sgid))
        .say("dlid", it.dlid.0)
        .say("slid", it.slid.0)
        .say("flow", it.flow_label)
        .say("hop", it.hop_limit)
        .say("tclass", it.t_class)
        .say("reversible", it.reversible);
    let words = words
        .say("pkey", it.p_key.0)
        .say("sl", it.sl)
        .say("mtu", it.mtu as u8)
        .say("rate", it.rate.code())
        .say("life", it.packet_life.code());
    words.text()
}

fn path_template(it: &PathTemplate) -> String {
    let words = Words::default()
        .maybe("dgid", it.dgid.map(gid))
        .maybe("sgid", it.sgid.map(gid))
        .maybe("dlid", it.dlid.map(|it| it.0))
        .maybe("slid", it.slid.map(|it| it.0))
        .maybe("reversible", it.reversible)
        .maybe("numb", it.numb_path)
        .maybe("pkey", it.p_key.map(|it| it.0))
        .maybe("sl", it.sl)
        .selected("mtu", it.mtu.map(|(by, it)| (by, it as u8)))
        .selected("rate", it.rate.map(|(by, it)| (by, it.code())));
    words.text()
}

fn inform(it: &InformInfo) -> String {
    let words = Words::default()
        .say("gid", gid(it.gid))
        .say("begin", it.lid_begin)
        .say("end", it.lid_end)
        .say("generic", it.generic)
        .say("subscribe", it.subscribe)
        .say("kind", it.kind)
        .say("trap", it.trap)
        .say("qpn", it.qpn)
        .say("time", it.response_time)
        .say("producer", it.producer);
    words.text()
}

fn notice(it: &Notice) -> String {
    let words = Words::default()
        .say("generic", it.generic)
        .say("kind", it.kind)
        .say("producer", it.producer)
        .say("trap", it.trap)
        .say("issuer", it.issuer_lid.0)
        .say("gid", gid(it.gid))
        .say("issuergid", gid(it.issuer_gid));
    words.text()
}

fn class_port_info(it: &ClassPortInfo) -> String {
    let words = Words::default()
        .say("mask", it.capability_mask)
        .say("mask2", it.capability_mask_2)
        .say("time", it.response_time);
    words.text()
}

fn said<T>(found: Result<T, Reject>, describe: impl Fn(&T) -> String) -> String {
    found.map_or_else(|reject| format!("reject {reject}"), |it| describe(&it))
}

fn records<A: Attribute + Clone>(table: &Table<'_, A>, describe: impl Fn(&A) -> String) -> String {
    let mut text = "table".to_owned();
    for record in table.clone() {
        text += &format!(" | {}", said(record, &describe));
    }
    if table.cut_bytes() > 0 {
        text += &format!(" | cut {}", table.cut_bytes());
    }
    text
}

/// A management datagram.
pub(crate) fn mad(octets: &[u8], limit: usize) -> String {
    said(Mad::parse(octets, limit), |mad| {
        let head = format!(
            "method {:#x} status {:#x} tid {:#x} attribute {:#x} mask {:#x}",
            mad.method.code(),
            mad.status.word(),
            mad.whole_tid,
            mad.attribute.0,
            mad.mask
        );
        format!("{head} : {}", mad_body(mad))
    })
}

fn mad_body(mad: &Mad<'_>) -> String {
    let request = !mad.method.is_response();
    match (mad.attribute, mad.method) {
        (AttributeId::MC_MEMBER_RECORD, Method::GetTableResp) => {
            said(mad.table(), |table| records(table, member))
        }
        (AttributeId::MC_MEMBER_RECORD, Method::DeleteResp) => said(mad.record(), left),
        (AttributeId::MC_MEMBER_RECORD, _) if request => said(mad.template(), member_template),
        (AttributeId::MC_MEMBER_RECORD, _) => said(mad.record(), member),
        (AttributeId::PATH_RECORD, Method::GetTableResp) => {
            said(mad.table(), |table| records(table, path))
        }
        (AttributeId::PATH_RECORD, _) if request => said(mad.template(), path_template),
        (AttributeId::PATH_RECORD, _) => said(mad.record(), path),
        (AttributeId::INFORM_INFO, _) => said(mad.record(), inform),
        (AttributeId::NOTICE, _) => said(mad.record(), notice),
        (AttributeId::CLASS_PORT_INFO, _) => said(mad.record(), class_port_info),
        _ => "opaque".to_owned(),
    }
}

fn hardware(it: &HardwareAddress) -> String {
    let flags = it.modes.flags();
    format!("{flags:#x}/{:#x}/{:#x}", it.qpn, gid(it.gid))
}

fn maybe_hardware(it: Option<&HardwareAddress>) -> String {
    it.map_or_else(|| "-".to_owned(), hardware)
}

/// A frame.
pub(crate) fn frame(octets: &[u8]) -> String {
    match Packet::parse(octets) {
        Ok(packet) => self::packet(&packet),
        Err(reject) => format!("reject {reject}"),
    }
}

/// What a frame is.
pub(crate) fn packet(packet: &Packet<'_>) -> String {
    match packet {
        Packet::Arp(it) => {
            let kind = match it.operation {
                Operation::Request => "request",
                Operation::Reply => "reply",
            };
            let (sender, target) = (hardware(&it.sender), hardware(&it.target));
            format!(
                "arp {kind} {} at {sender} to {} at {target}",
                it.sender_ip, it.target_ip
            )
        }
        Packet::Solicitation(it) => {
            let at = maybe_hardware(it.hardware.as_ref());
            format!(
                "solicitation {} at {at} to {} of {}",
                it.source, it.destination, it.target
            )
        }
        Packet::Advertisement(it) => {
            let at = maybe_hardware(it.hardware.as_ref());
            let flags = format!(
                "{}{}{}",
                u8::from(it.router),
                u8::from(it.solicited),
                u8::from(it.overrides)
            );
            format!(
                "advertisement {flags} {} at {at} to {} of {}",
                it.source, it.destination, it.target
            )
        }
        Packet::Udp(packet::Udp {
            from,
            to,
            hop_limit,
            payload,
        }) => {
            let payload = or_nothing(hex::encode(payload));
            format!("udp {from} to {to} hops {hop_limit} payload {payload}")
        }
    }
}
