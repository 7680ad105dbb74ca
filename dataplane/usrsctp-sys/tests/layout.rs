//! Every structure, field and constant of the bindings against the header that is installed.

use std::mem::{offset_of, size_of};
use usrsctp_sys::types::*;

/// C expressions, and what they are here.
fn expected() -> Vec<(String, u64)> {
    let mut all = Vec::new();
    macro_rules! layout {
        ($kind:literal $name:ident; $($field:ident)*) => {
            let name = concat!($kind, " ", stringify!($name));
            all.push((format!("sizeof({name})"), size_of::<$name>() as u64));
            $(
                let offset = offset_of!($name, $field) as u64;
                all.push((format!("offsetof({name}, {})", stringify!($field)), offset));
            )*
        };
    }
    macro_rules! constants {
        ($($name:ident)*) => {
            $( all.push((stringify!($name).into(), i64::from($name).cast_unsigned())); )*
        };
    }
    layout! { "struct" sockaddr_conn; sconn_family sconn_port sconn_addr }
    layout! { "union" sctp_sockstore; sin6 sconn }
    layout! { "struct" sctp_rcvinfo; rcv_sid rcv_ssn rcv_flags rcv_ppid rcv_tsn rcv_cumtsn
    rcv_context rcv_assoc_id }
    layout! { "struct" sctp_sndinfo; snd_sid snd_flags snd_ppid snd_context snd_assoc_id }
    layout! { "struct" sctp_assoc_change; sac_type sac_flags sac_length sac_state sac_error
    sac_outbound_streams sac_inbound_streams sac_assoc_id }
    layout! { "struct" sctp_adaptation_event; sai_type sai_flags sai_length sai_adaptation_ind
    sai_assoc_id }
    layout! { "struct" sctp_event; se_assoc_id se_type se_on }
    layout! { "struct" sctp_initmsg; sinit_num_ostreams sinit_max_instreams sinit_max_attempts
    sinit_max_init_timeo }
    layout! { "struct" sctp_rtoinfo; srto_assoc_id srto_initial srto_max srto_min }
    layout! { "struct" sctp_assocparams; sasoc_assoc_id sasoc_peer_rwnd sasoc_local_rwnd
    sasoc_cookie_life sasoc_asocmaxrxt sasoc_number_peer_destinations }
    layout! { "struct" sctp_setadaptation; ssb_adaptation_ind }
    layout! { "struct" sctp_assoc_value; assoc_id assoc_value }
    layout! { "struct" sctp_sack_info; sack_assoc_id sack_delay sack_freq }
    layout! { "struct" sctp_paddrparams; spp_address spp_assoc_id spp_hbinterval spp_pathmtu
    spp_flags spp_ipv6_flowlabel spp_pathmaxrxt spp_dscp }
    constants! { AF_CONN MSG_NOTIFICATION SCTP_SENDV_SNDINFO SCTP_EOF SCTP_ABORT SCTP_UNORDERED
    SCTP_ASSOC_CHANGE SCTP_SHUTDOWN_EVENT SCTP_ADAPTATION_INDICATION SCTP_PARTIAL_DELIVERY_EVENT
    SCTP_SENDER_DRY_EVENT SCTP_COMM_UP SCTP_COMM_LOST SCTP_RESTART SCTP_SHUTDOWN_COMP
    SCTP_CANT_STR_ASSOC SCTP_RTOINFO SCTP_ASSOCINFO SCTP_INITMSG SCTP_NODELAY
    SCTP_ADAPTATION_LAYER SCTP_DISABLE_FRAGMENTS SCTP_PEER_ADDR_PARAMS SCTP_DELAYED_SACK
    SCTP_FRAGMENT_INTERLEAVE SCTP_PARTIAL_DELIVERY_POINT SCTP_MAX_BURST SCTP_EVENT SPP_HB_ENABLE
    SPP_PMTUD_DISABLE MSG_EOR }
    all
}

fn by_c_compiler(expressions: &[&str]) -> Result<Vec<u64>, String> {
    rpcrdma_proof::layout::by_c_compiler(&["usrsctp.h"], expressions)
}

#[test]
fn layouts_and_constants_are_those_of_the_header() {
    if let Err(why) = by_c_compiler(&["sizeof(struct sctp_rcvinfo)"]) {
        let line = why.lines().next().unwrap_or("");
        println!("SKIPPED: no usrsctp.h to compare with: {line}");
        return;
    }
    let expected = expected();
    let expressions: Vec<&str> = expected.iter().map(|(text, _)| text.as_str()).collect();
    let found = by_c_compiler(&expressions).expect("each name is in the header");
    assert_eq!(found.len(), expressions.len());
    for ((expression, ours), theirs) in expected.iter().zip(found) {
        assert_eq!(*ours, theirs, "{expression}: here, and in C");
    }
}
