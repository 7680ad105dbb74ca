//! Fronts, backs, services and the embedded server, as the file has them.

use super::{Maybe, Road, Transport};
use crate::allow::{Networks, Peers};
use crate::form;
use crate::plan::{BackendAddress, Fabric, Programs, SourcePort};
use crate::schema as key;
use crate::section::Section;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The fabric of an endpoint.
pub(crate) struct InFabric {
    /// As it is written.
    pub(crate) written: Maybe<Fabric>,
    /// Which it is; `None`: what is written is none.
    pub(crate) known: Option<Fabric>,
}

impl InFabric {
    fn read(table: &Section<'_>) -> InFabric {
        let written = table.text(&key::FABRIC, form::fabric);
        let known = match &written {
            Some(at) => Some(at.value),
            None => (!table.has(&key::FABRIC)).then_some(Fabric::Memory),
        };
        InFabric { written, known }
    }
}

/// What fronts and services have in common: a place in a fabric where peers arrive.
pub(crate) struct Listener {
    pub(crate) name: Maybe<String>,
    pub(crate) fabric: InFabric,
    pub(crate) listen: Maybe<String>,
    pub(crate) allow: Maybe<Peers>,
    pub(crate) transport: Transport,
}

impl Listener {
    fn read(table: &Section<'_>) -> Listener {
        table.require(&[&key::NAME, &key::LISTEN]);
        let fabric = InFabric::read(table);
        Listener {
            name: table.text(&key::NAME, form::name),
            // In what form it is depends on the fabric.
            listen: fabric
                .known
                .and_then(|it| table.text(&key::LISTEN, |text| form::door(text, it))),
            fabric,
            allow: table.value(&key::PEERS, "a list", form::peers),
            transport: Transport::below(table),
        }
    }
}

/// `[[front]]`.
pub(crate) struct Front {
    pub(crate) listener: Listener,
    pub(crate) backends: Vec<Backend>,
}

impl Front {
    pub(super) fn read(table: &Section<'_>) -> Front {
        table.require(&[&key::BACKEND_TABLES]);
        Front {
            listener: Listener::read(table),
            backends: table
                .tables(&key::BACKEND_TABLES)
                .iter()
                .map(Backend::read)
                .collect(),
        }
    }
}

/// `[[front.backend]]`.
pub(crate) struct Backend {
    pub(crate) programs: Maybe<Programs>,
    pub(crate) address: Maybe<BackendAddress>,
    pub(crate) connect_timeout: Maybe<u32>,
    pub(crate) keepalive: Maybe<u32>,
    pub(crate) source_port: Maybe<SourcePort>,
}

impl Backend {
    fn read(table: &Section<'_>) -> Backend {
        table.require(&[&key::PROGRAMS, &key::BACKEND_ADDRESS]);
        Backend {
            programs: table.value(&key::PROGRAMS, "a list or \"others\"", form::programs),
            address: table.text(&key::BACKEND_ADDRESS, form::backend),
            connect_timeout: table.integer(&key::CONNECT_TIMEOUT),
            keepalive: table.integer(&key::KEEPALIVE),
            source_port: table.word(&key::SOURCE_PORT),
        }
    }
}

/// `[[back]]`.
pub(crate) struct Back {
    pub(crate) name: Maybe<String>,
    pub(crate) listen: Maybe<SocketAddr>,
    pub(crate) allow: Maybe<Networks>,
    pub(crate) keepalive: Maybe<u32>,
    pub(crate) fabric: InFabric,
    pub(crate) upstream: Maybe<Road>,
    pub(crate) transport: Transport,
}

impl Back {
    pub(super) fn read(table: &Section<'_>) -> Back {
        table.require(&[&key::NAME, &key::TCP_LISTEN, &key::UPSTREAM]);
        let fabric = InFabric::read(table);
        Back {
            name: table.text(&key::NAME, form::name),
            listen: table.text(&key::TCP_LISTEN, form::listen),
            allow: table.value(&key::NETWORKS, "a list", form::networks),
            keepalive: table.integer(&key::KEEPALIVE),
            upstream: Road::read(table, fabric.known),
            fabric,
            transport: Transport::below(table),
        }
    }
}

/// `[[service]]`.
pub(crate) struct Service {
    pub(crate) listener: Listener,
}

impl Service {
    pub(super) fn read(table: &Section<'_>) -> Service {
        Service {
            listener: Listener::read(table),
        }
    }
}

/// `[export]`.
pub(crate) struct Export {
    pub(crate) directory: Maybe<PathBuf>,
    pub(crate) listen: Maybe<SocketAddr>,
    pub(crate) read_only: Maybe<bool>,
}

impl Export {
    pub(super) fn read(table: &Section<'_>) -> Export {
        table.require(&[&key::DIRECTORY]);
        Export {
            directory: table.text(&key::DIRECTORY, form::directory),
            listen: table.text(&key::EXPORT_LISTEN, form::listen),
            read_only: table.flag(&key::READ_ONLY),
        }
    }
}
