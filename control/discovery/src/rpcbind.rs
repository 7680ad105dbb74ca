//! rpcbind version 4 as octets (RFC 1833 section 2.1): the calls that an appliance answers, and the one that it makes.

use crate::universal;
use rpcrdma_unicast::is_reachable;
use rpcrdma_upper::xdr::{Cursor, padding};
use rpcrdma_wire::Xid;
use rpcrdma_wire::rpc::{CALL_BYTES, CallHeader, REPLY_BYTES, ReplyHeader, emit_call, emit_reply};
use std::net::SocketAddr;

/// The program number of rpcbind.
pub const PROGRAM: u32 = 100_000;
/// The version that knows lists of addresses.
pub const VERSION: u32 = 4;
/// The UDP port of rpcbind.
pub const PORT: u16 = 111;
/// Addresses of one list, told or believed.
pub const ADDRESSES: usize = 8;

const NULL: u32 = 0;
const GETADDR: u32 = 3;
const GETVERSADDR: u32 = 9;
const GETADDRLIST: u32 = 11;

/// Most octets of a netid, an owner, and the other strings that are read and not used.
const STRING_BYTES: u32 = 255;
/// NC_TPI_COTS_ORD: connection oriented with graceful close.
const CONNECTION_ORIENTED: u32 = 3;

/// A call to rpcbind that can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<'a> {
    /// Of the call; in network order on the wire, here a number.
    pub xid: Xid,
    /// What is asked.
    pub asked: Asked<'a>,
}

/// What a [`Query`] asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// RPCBPROC_NULL: are you there?
    Null,
    /// RPCBPROC_GETADDR: where is this program, by this netid? The version is a wish.
    Address(Wanted<'a>),
    /// RPCBPROC_GETVERSADDR: the same, and the version has to be that one.
    VersionAddress(Wanted<'a>),
    /// RPCBPROC_GETADDRLIST: all places of this program.
    AddressList(Wanted<'a>),
}

impl<'a> Asked<'a> {
    /// The service that is asked for, if one is.
    #[must_use]
    pub const fn wanted(&self) -> Option<Wanted<'a>> {
        match self {
            Self::Null => None,
            Self::Address(wanted) | Self::VersionAddress(wanted) | Self::AddressList(wanted) => {
                Some(*wanted)
            }
        }
    }
}

/// Which service is meant: of `struct rpcb`, what counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// RPC program.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// Network identifier, as sent.
    pub netid: &'a [u8],
}

rpcrdma_listed::listed! {
    /// Why a datagram is no call that is answered. One counter each.
    pub Reject {
        /// No RPC call, or its head cannot be read.
        NotACall,
        /// RPC of another version than 2.
        RpcVersion,
        /// Another program than rpcbind.
        Program,
        /// Another version than 4.
        Version,
        /// A procedure that is not answered here: SET, UNSET, calls to be passed on, statistics.
        Procedure,
        /// Arguments that cannot be read, or more octets than the arguments.
        Arguments,
    }
}

impl<'a> Query<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    ///
    /// [`Reject`]: answered by silence, as errors of broadcast calls are (RFC 5531 section 8.4.3).
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Reject> {
        let head = CallHeader::parse(datagram).ok_or(Reject::NotACall)?;
        if head.rpc_version != rpcrdma_wire::rpc::RPC_VERSION {
            return Err(Reject::RpcVersion);
        }
        if head.program != PROGRAM {
            return Err(Reject::Program);
        }
        if head.version != VERSION {
            return Err(Reject::Version);
        }
        let mut arguments = Cursor::new(datagram, head.arguments);
        let wanted = |arguments: &mut Cursor<'a>| take_rpcb(arguments).ok_or(Reject::Arguments);
        let asked = match head.procedure {
            NULL => Asked::Null,
            GETADDR => Asked::Address(wanted(&mut arguments)?),
            GETVERSADDR => Asked::VersionAddress(wanted(&mut arguments)?),
            GETADDRLIST => Asked::AddressList(wanted(&mut arguments)?),
            _ => return Err(Reject::Procedure),
        };
        if arguments.at() != datagram.len() {
            return Err(Reject::Arguments);
        }
        Ok(Self {
            xid: head.xid,
            asked,
        })
    }
}

/// Takes `struct rpcb`: program, version, netid, address, owner.
fn take_rpcb<'a>(arguments: &mut Cursor<'a>) -> Option<Wanted<'a>> {
    let program = arguments.take_word()?;
    let version = arguments.take_word()?;
    let netid = arguments.take_opaque(STRING_BYTES)?;
    let _address = arguments.take_opaque(STRING_BYTES)?;
    let _owner = arguments.take_opaque(STRING_BYTES)?;
    Some(Wanted {
        program,
        version,
        netid,
    })
}

/// The call that asks a group for all places of a program.
#[must_use]
pub fn emit_query(xid: Xid, program: u32, version: u32) -> Vec<u8> {
    let mut call = vec![0; CALL_BYTES];
    // The buffer is as long as the head.
    let _ = emit_call(&mut call, xid, PROGRAM, VERSION, GETADDRLIST);
    word(&mut call, program);
    word(&mut call, version);
    for netid_address_owner in ["rdma", "", ""] {
        string(&mut call, netid_address_owner);
    }
    call
}

/// The reply to RPCBPROC_NULL.
#[must_use]
pub fn emit_null(xid: Xid) -> Vec<u8> {
    let mut reply = vec![0; REPLY_BYTES];
    // The buffer is as long as the head.
    let _ = emit_reply(&mut reply, xid);
    reply
}

/// The reply to RPCBPROC_GETADDR and RPCBPROC_GETVERSADDR.
#[must_use]
pub fn emit_address(xid: Xid, address: SocketAddr) -> Vec<u8> {
    let mut reply = emit_null(xid);
    string(&mut reply, &universal::emit(address));
    reply
}

/// The reply to RPCBPROC_GETADDRLIST: at most [`ADDRESSES`] of them, the first ones.
#[must_use]
pub fn emit_address_list(xid: Xid, addresses: &[SocketAddr]) -> Vec<u8> {
    let mut reply = emit_null(xid);
    for &address in addresses.iter().take(ADDRESSES) {
        word(&mut reply, 1);
        string(&mut reply, &universal::emit(address));
        string(&mut reply, universal::netid(address));
        word(&mut reply, CONNECTION_ORIENTED);
        // The protocol family of the address, and none of the protocols that RFC 1833 names.
        string(&mut reply, if address.is_ipv4() { "inet" } else { "inet6" });
        string(&mut reply, "-");
    }
    word(&mut reply, 0);
    reply
}

/// The xid of a datagram that may be a reply; `None` when it is none.
#[must_use]
pub fn reply_to(datagram: &[u8]) -> Option<Xid> {
    use rpcrdma_wire::rpc::{MessageType, peek};
    peek(datagram).and_then(|(xid, kind)| (kind == MessageType::Reply).then_some(xid))
}

/// The places over RDMA in a reply to RPCBPROC_GETADDRLIST: netids `rdma` and `rdma6` whose address is of that family, and one that
/// [can be reached](is_reachable). Other entries are stepped over; at most [`ADDRESSES`] are taken. `None` when the reply is of failure, or cannot
/// be read to its end.
#[must_use]
pub fn parse_address_list(datagram: &[u8]) -> Option<Vec<SocketAddr>> {
    let head = ReplyHeader::parse(datagram).filter(ReplyHeader::succeeded)?;
    let mut results = Cursor::new(datagram, head.results);
    let mut addresses = Vec::new();
    // Each entry takes octets of the datagram, so its length bounds the loop.
    while take_flag(&mut results)? {
        if let Some(address) = take_entry(&mut results)?
            && addresses.len() < ADDRESSES
            && !addresses.contains(&address)
        {
            addresses.push(address);
        }
    }
    (results.at() == datagram.len()).then_some(addresses)
}

/// Takes `struct rpcb_entry`: `None` outside when it cannot be read, inside when it is no place over RDMA.
fn take_entry(results: &mut Cursor<'_>) -> Option<Option<SocketAddr>> {
    let text = results.take_opaque(STRING_BYTES)?;
    let netid = results.take_opaque(STRING_BYTES)?;
    let _semantics = results.take_word()?;
    let _family = results.take_opaque(STRING_BYTES)?;
    let _protocol = results.take_opaque(STRING_BYTES)?;
    Some(
        universal::parse(text).filter(|&address| {
            is_reachable(address) && universal::netid(address).as_bytes() == netid
        }),
    )
}

fn take_flag(results: &mut Cursor<'_>) -> Option<bool> {
    match results.take_word()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn word(out: &mut Vec<u8>, word: u32) {
    out.extend(word.to_be_bytes());
}

/// An XDR string. All of them here are short.
fn string(out: &mut Vec<u8>, text: &str) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    word(out, length);
    out.extend(text.as_bytes());
    out.resize(out.len() + padding(length) as usize, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NFS: u32 = 100_003;

    fn places() -> [SocketAddr; 2] {
        ["192.0.2.1:20049", "[2001:db8::1]:20049"].map(|text| text.parse().unwrap())
    }

    #[test]
    fn rfc1833_2_1_the_query_as_octets() {
        let call = emit_query(Xid(0x0102_0304), NFS, 3);
        let words: Vec<u32> = call
            .chunks(4)
            .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
            .collect();
        let head = [0x0102_0304, 0, 2, 100_000, 4, 11, 0, 0, 0, 0];
        let arguments = [NFS, 3, 4, u32::from_be_bytes(*b"rdma"), 0, 0];
        assert_eq!(words, [&head[..], &arguments].concat());
    }

    #[test]
    fn a_query_is_read_as_it_was_written() {
        let call = emit_query(Xid(7), NFS, 3);
        let wanted = Wanted {
            program: NFS,
            version: 3,
            netid: b"rdma",
        };
        assert_eq!(
            Query::parse(&call),
            Ok(Query {
                xid: Xid(7),
                asked: Asked::AddressList(wanted)
            })
        );
    }

    #[test]
    fn every_word_of_the_head_is_looked_at() {
        let call = emit_query(Xid(7), NFS, 3);
        for (word, value, expected) in [
            (1, 1, Reject::NotACall),
            (1, 9, Reject::NotACall),
            (2, 3, Reject::RpcVersion),
            (3, NFS, Reject::Program),
            (4, 3, Reject::Version),
            (5, 1, Reject::Procedure),
            (5, 5, Reject::Procedure),
            (7, 401, Reject::NotACall),
            (12, 256, Reject::Arguments),
            (12, u32::MAX, Reject::Arguments),
        ] {
            let mut call = call.clone();
            call[word * 4..][..4].copy_from_slice(&u32::to_be_bytes(value));
            assert_eq!(Query::parse(&call), Err(expected), "word {word} = {value}");
        }
        let longer = [&call[..], &[0; 4]].concat();
        assert_eq!(Query::parse(&longer), Err(Reject::Arguments));
    }

    #[test]
    fn no_prefix_of_a_query_or_reply_is_taken() {
        let call = emit_query(Xid(7), NFS, 3);
        for end in 0..call.len() {
            assert!(Query::parse(&call[..end]).is_err());
        }
        let reply = emit_address_list(Xid(7), &places());
        for end in 0..reply.len() {
            assert_eq!(parse_address_list(&reply[..end]), None, "{end} octets");
        }
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let reply = emit_address_list(Xid(7), &places());
        assert_eq!(reply_to(&reply), Some(Xid(7)));
        assert_eq!(parse_address_list(&reply), Some(places().to_vec()));
        assert_eq!(
            parse_address_list(&emit_address_list(Xid(7), &[])),
            Some(vec![])
        );
    }

    #[test]
    fn a_list_is_cut_at_its_limit_by_writer_and_reader() {
        let many: Vec<SocketAddr> = (1..=40)
            .map(|port| SocketAddr::from(([192, 0, 2, 1], port)))
            .collect();
        let reply = emit_address_list(Xid(7), &many);
        assert_eq!(parse_address_list(&reply).unwrap(), &many[..ADDRESSES]);
    }

    #[test]
    fn other_netids_and_port_0_are_stepped_over() {
        let mut reply = emit_null(Xid(7));
        for (address, netid) in [
            ("192.0.2.1.8.1", "tcp"),
            ("192.0.2.1.8.1", "rdma6"),
            ("192.0.2.1.0.0", "rdma"),
            ("/run/rpcbind.sock", "local"),
            ("192.0.2.2.8.1", "rdma"),
            ("192.0.2.2.8.1", "rdma"),
        ] {
            word(&mut reply, 1);
            for text in [address, netid] {
                string(&mut reply, text);
            }
            word(&mut reply, 3);
            for text in ["inet", "tcp"] {
                string(&mut reply, text);
            }
        }
        word(&mut reply, 0);
        let only: SocketAddr = "192.0.2.2:2049".parse().unwrap();
        assert_eq!(parse_address_list(&reply), Some(vec![only]));
    }

    proptest::proptest! {
        #[test]
        fn no_datagram_does_harm(octets in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let _ = Query::parse(&octets);
            let _ = parse_address_list(&octets);
            let mut call = emit_query(Xid(7), NFS, 3);
            call.truncate(CALL_BYTES);
            call.extend(&octets);
            let _ = Query::parse(&call);
            let mut reply = emit_null(Xid(7));
            reply.extend(&octets);
            proptest::prop_assert!(parse_address_list(&reply).is_none_or(|list| list.len() <= ADDRESSES));
        }
    }
}
