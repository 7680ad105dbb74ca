//! What an operator wants to know of the devices of a machine.

use super::{Gid, Limits, gid, query, sysfs};
use crate::error::Error;
use crate::object::{Context, Device};
use crate::settings::Settings;
use rdma_core_sys as rdma;
use rdma_core_sys::{Absent, Library};
use std::sync::Arc;

/// What a device speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// InfiniBand, or RoCE on Ethernet.
    InfiniBand,
    /// RDMA over TCP.
    Iwarp,
    /// Something else: not usable here.
    Other,
}

/// The state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Ready.
    Active,
    /// No link.
    Down,
    /// On its way.
    Coming,
}

/// A link of a device: a port, in the words of InfiniBand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// From 1.
    pub number: u8,
    /// Whether it is ready.
    pub state: LinkState,
    /// Largest packet now, octets; 0 where that is not known.
    pub mtu: u32,
    /// It is Ethernet, not InfiniBand.
    pub ethernet: bool,
    /// Its GID table.
    pub gids: Vec<Gid>,
    /// The GID that the rule, or the configuration, picks for peers of IPv4 and of IPv6.
    pub chosen: [Option<Gid>; 2],
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Its name.
    pub name: String,
    /// Its firmware's version, in its own words.
    pub firmware: String,
    /// The NUMA node it sits at.
    pub node: Option<u32>,
    /// What it speaks.
    pub transport: Transport,
    /// What it can do.
    pub limits: Limits,
    /// Its links.
    pub links: Vec<Link>,
}

/// What there is to be said of all devices of a machine.
#[derive(Debug, Default)]
pub struct Surveys {
    /// Those that answered.
    pub devices: Vec<Survey>,
    /// The names of those that did not, and why.
    pub silent: Vec<(String, Error)>,
}

impl Surveys {
    /// What came of one.
    fn add(&mut self, name: String, found: Result<Survey, Error>) {
        match found {
            Ok(survey) => self.devices.push(survey),
            Err(error) => self.silent.push((name, error)),
        }
    }
}

/// Looks at all devices of this machine that `settings` allows. One that does not answer keeps
/// nothing from the others.
///
/// # Errors
///
/// [`Error::Absent`] where there is none.
pub fn survey(settings: &Settings) -> Result<Surveys, Error> {
    let library = Library::load().map_err(Error::Absent)?;
    let lease = super::Lease::take(library).ok_or(Error::Absent(Absent::NoDevice))?;
    let mut found = Surveys::default();
    for context in lease.contexts() {
        let name = context.name(library);
        if settings.allows(&name) {
            found.add(name, look(library, context, settings));
        }
    }
    Ok(found)
}

fn look(library: &'static Library, context: Context, settings: &Settings) -> Result<Survey, Error> {
    let device = &Arc::new(Device::new(library, context)?);
    let attributes = query::attributes(library, context)?;
    Ok(Survey {
        name: device.name().to_owned(),
        firmware: firmware(&attributes),
        node: sysfs::node(device.name()),
        transport: transport(context),
        limits: query::limits(device)?,
        links: links(library, context, attributes.phys_port_cnt, settings)?,
    })
}

fn transport(context: Context) -> Transport {
    match context.transport() {
        rdma::IBV_TRANSPORT_IB => Transport::InfiniBand,
        rdma::IBV_TRANSPORT_IWARP => Transport::Iwarp,
        _ => Transport::Other,
    }
}

fn firmware(attributes: &rdma::ibv_device_attr) -> String {
    let octets = attributes.fw_ver.map(|c| c.to_ne_bytes()[0]);
    let text = octets.split(|octet| *octet == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The links of a device that has `count` of them.
pub(crate) fn links(
    library: &Library,
    context: Context,
    count: u8,
    settings: &Settings,
) -> Result<Vec<Link>, Error> {
    let mut links = Vec::new();
    for number in 1..=count {
        let attributes = query::link(context, number)?;
        let entries = usize::try_from(attributes.gid_tbl_len).unwrap_or(0) * usize::from(count);
        let gids = query::gids(library, context, number, entries);
        links.push(Link {
            number,
            state: match attributes.state {
                rdma::IBV_PORT_ACTIVE => LinkState::Active,
                rdma::IBV_PORT_DOWN | rdma::IBV_PORT_NOP => LinkState::Down,
                _ => LinkState::Coming,
            },
            mtu: mtu(attributes.active_mtu),
            ethernet: u32::from(attributes.link_layer) == rdma::IBV_LINK_LAYER_ETHERNET,
            chosen: [true, false].map(|ipv4| gid::choose(&gids, ipv4, settings.gid_index)),
            gids,
        });
    }
    Ok(links)
}

fn mtu(code: rdma::ibv_mtu) -> u32 {
    match code {
        rdma::IBV_MTU_256..=rdma::IBV_MTU_4096 => 128 << code,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_silent_is_named_and_the_others_are_shown() {
        let survey = |name: &str| Survey {
            name: name.to_owned(),
            firmware: String::new(),
            node: None,
            transport: Transport::Other,
            limits: Limits::default(),
            links: Vec::new(),
        };
        let mut found = Surveys::default();
        found.add("d0".to_owned(), Ok(survey("d0")));
        found.add("d1".to_owned(), Err(Error::LinkDown));
        found.add("d2".to_owned(), Ok(survey("d2")));
        assert_eq!(found.devices, [survey("d0"), survey("d2")]);
        assert_eq!(found.silent.len(), 1);
        assert_eq!(found.silent[0].0, "d1");
    }

    #[test]
    fn codes_are_octets() {
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 0].map(mtu),
            [256, 512, 1024, 2048, 4096, 0, 0]
        );
    }

    #[test]
    fn firmware_is_text_up_to_its_end() {
        let mut attributes = rdma::ibv_device_attr::default();
        for (place, c) in attributes.fw_ver.iter_mut().zip(*b"16.35.2000\0xx") {
            *place = c.cast_signed();
        }
        assert_eq!(firmware(&attributes), "16.35.2000");
    }
}
