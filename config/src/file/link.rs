//! `[[link]]`, and an upstream that is found.

use super::Maybe;
use crate::allow::Networks;
use crate::error::Origin;
use crate::form;
use crate::link::{DevicePort, Ipv4, Subnet};
use crate::plan::{Fabric, Upstream};
use crate::schema as key;
use crate::section::{At, Section};
use std::net::IpAddr;

/// `[[link]]`.
pub(crate) struct Link {
    pub(crate) origin: Origin,
    pub(crate) name: Maybe<String>,
    pub(crate) subnet: Maybe<Subnet>,
    /// Something was written there that is no subnet.
    pub(crate) subnet_refused: bool,
    pub(crate) device: Maybe<DevicePort>,
    /// Something was written there that is no device.
    pub(crate) device_refused: bool,
    pub(crate) p_key: Maybe<u32>,
    /// Something was written there that is no partition.
    pub(crate) p_key_refused: bool,
    pub(crate) ipv4: Maybe<Ipv4>,
    /// Something was written there that is no address.
    pub(crate) ipv4_refused: bool,
    pub(crate) ipv6: Maybe<bool>,
    pub(crate) administrator: Maybe<bool>,
    /// Something was written there that says neither.
    pub(crate) administrator_refused: bool,
    pub(crate) mtu: Maybe<u32>,
    pub(crate) q_key: Maybe<u32>,
    pub(crate) router: Maybe<bool>,
    pub(crate) send_only_full: Maybe<bool>,
    pub(crate) groups: Maybe<Vec<IpAddr>>,
    pub(crate) answer: Maybe<Vec<IpAddr>>,
    /// Something was written there that is no list of groups.
    pub(crate) answer_refused: bool,
    pub(crate) answers: Maybe<u32>,
    pub(crate) answer_allow: Maybe<Networks>,
    pub(crate) datagrams: Maybe<bool>,
    pub(crate) verify: Maybe<u32>,
    pub(crate) cache: Maybe<u32>,
}

impl Link {
    pub(super) fn read(table: &Section<'_>) -> Link {
        table.require(&[&key::LINK_NAME]);
        let subnet = table.word(&key::SUBNET);
        let p_key = table.integer(&key::P_KEY);
        let administrator = table.flag(&key::ADMINISTRATOR);
        let ipv4 = table.text(&key::IPV4, form::link_ipv4);
        let device = table.text(&key::DEVICE, form::device_port);
        let answer = table.value(&key::ANSWER, "a list", form::groups);
        Link {
            origin: table.origin.clone(),
            name: table.text(&key::LINK_NAME, form::name),
            subnet_refused: subnet.is_none() && table.has(&key::SUBNET),
            subnet,
            device_refused: device.is_none() && table.has(&key::DEVICE),
            device,
            p_key_refused: p_key.is_none() && table.has(&key::P_KEY),
            p_key,
            ipv4_refused: ipv4.is_none() && table.has(&key::IPV4),
            ipv4,
            ipv6: table.flag(&key::IPV6),
            administrator_refused: administrator.is_none() && table.has(&key::ADMINISTRATOR),
            administrator,
            mtu: table.integer(&key::LINK_MTU),
            q_key: table.integer(&key::Q_KEY),
            router: table.flag(&key::ROUTER),
            send_only_full: table.flag(&key::SEND_ONLY_FULL),
            groups: table.value(&key::GROUPS, "a list", form::groups),
            answer_refused: answer.is_none() && table.has(&key::ANSWER),
            answer,
            answers: table.integer(&key::ANSWERS),
            answer_allow: table.value(&key::ANSWER_ALLOW, "a list", form::networks),
            datagrams: table.flag(&key::DATAGRAMS),
            verify: table.integer(&key::VERIFY),
            cache: table.integer(&key::CACHE),
        }
    }
}

/// What leads a back to its upstream.
pub(crate) enum Road {
    /// `upstream` as a string.
    Address(Upstream),
    /// `upstream` as a table.
    Discover(Box<Discover>),
}

impl Road {
    pub(super) fn read(back: &Section<'_>, fabric: Option<Fabric>) -> Maybe<Road> {
        if let Some(table) = back.table_for_form(&key::UPSTREAM) {
            let discover = Box::new(Discover::read(&table));
            return Some(At {
                value: Road::Discover(discover),
                origin: table.origin,
            });
        }
        // Without its fabric an address has no form.
        let fabric = fabric?;
        let written = back.text(&key::UPSTREAM, |text| form::upstream(text, fabric))?;
        Some(At {
            value: Road::Address(written.value),
            origin: written.origin,
        })
    }
}

/// `upstream` as a table.
pub(crate) struct Discover {
    pub(crate) origin: Origin,
    pub(crate) group: Maybe<IpAddr>,
    pub(crate) program: Maybe<u32>,
    pub(crate) version: Maybe<u32>,
    pub(crate) link: Maybe<String>,
    pub(crate) period: Maybe<u32>,
    pub(crate) allow: Maybe<Networks>,
}

impl Discover {
    pub(super) fn read(table: &Section<'_>) -> Discover {
        table.require(&[&key::DISCOVER]);
        Discover {
            origin: table.origin.clone(),
            group: table.text(&key::DISCOVER, form::group),
            program: table.integer(&key::DISCOVER_PROGRAM),
            version: table.integer(&key::DISCOVER_VERSION),
            link: table.text(&key::DISCOVER_LINK, form::name),
            period: table.integer(&key::DISCOVER_PERIOD),
            allow: table.value(&key::DISCOVER_ALLOW, "a list", form::networks),
        }
    }
}
