use super::*;
use rpcrdma_wire::Xid;
use rpcrdma_wire::rpc::{emit_call, emit_reply};

fn call(program: u32, version: u32, procedure: u32, arguments: &[u32]) -> Vec<u8> {
    let mut octets = vec![0; CALL_BYTES];
    emit_call(&mut octets, Xid(7), program, version, procedure).unwrap();
    octets.extend(arguments.iter().flat_map(|word| word.to_be_bytes()));
    octets
}

fn judged(message: &[u8]) -> Result<Request<'_>, RpcError> {
    request(&CallHeader::parse(message).unwrap(), message)
}

#[test]
fn the_program_number_is_the_users_to_define() {
    assert!((0x2000_0000..0x4000_0000).contains(&PROGRAM));
}

#[test]
fn null_is_recognised_whole() {
    let message = call(PROGRAM, VERSION, NULL, &[]);
    let mut expected = [0; 24];
    emit_reply(&mut expected, Xid(7)).unwrap();
    assert_eq!(null_reply(&message), Some(expected));
    assert_eq!(judged(&message), Ok(Request::Null));
    for at in 4..message.len() {
        let mut other = message.clone();
        other[at] ^= 1;
        assert_eq!(null_reply(&other), None, "octet {at}");
    }
    assert_eq!(null_reply(&message[..39]), None);
    assert_eq!(null_reply(&[&message[..], &[0; 4]].concat()), None);
}

#[test]
fn arguments_are_read() {
    let message = call(PROGRAM, VERSION, READ, &[5, 9]);
    assert_eq!(
        judged(&message),
        Ok(Request::Read {
            offset: 5,
            count: 9
        })
    );
    let message = call(PROGRAM, VERSION, ECHO, &[3, 0x6162_6300]);
    assert_eq!(judged(&message), Ok(Request::Echo(b"abc")));
    let message = call(PROGRAM, VERSION, WRITE, &[1, 4, 0x6162_6364]);
    assert_eq!(
        judged(&message),
        Ok(Request::Write {
            checksum: true,
            data: b"abcd"
        })
    );
}

#[test]
fn what_is_wrong_is_named() {
    for (message, error) in [
        (
            call(PROGRAM + 1, VERSION, NULL, &[]),
            RpcError::ProgramUnavailable,
        ),
        (
            call(PROGRAM, 2, NULL, &[]),
            RpcError::ProgramMismatch { low: 1, high: 1 },
        ),
        (
            call(PROGRAM, VERSION, 4, &[]),
            RpcError::ProcedureUnavailable,
        ),
        (
            call(PROGRAM, VERSION, NULL, &[0]),
            RpcError::GarbageArguments,
        ),
        (
            call(PROGRAM, VERSION, READ, &[1]),
            RpcError::GarbageArguments,
        ),
        (
            call(PROGRAM, VERSION, READ, &[1, 2, 3]),
            RpcError::GarbageArguments,
        ),
        (
            call(PROGRAM, VERSION, ECHO, &[5, 1]),
            RpcError::GarbageArguments,
        ),
        (
            call(PROGRAM, VERSION, WRITE, &[2, 0]),
            RpcError::GarbageArguments,
        ),
    ] {
        assert_eq!(judged(&message), Err(error));
    }
    let mut message = call(PROGRAM, VERSION, NULL, &[]);
    message[11] = 3;
    assert_eq!(judged(&message), Err(RpcError::RpcMismatch));
    let mut message = call(PROGRAM, VERSION, NULL, &[]);
    message[27] = 6;
    assert_eq!(judged(&message), Err(RpcError::BadCredential));
}

#[test]
fn checksums_pad_with_zeros() {
    assert_eq!(checksum(&[]), 0);
    assert_eq!(checksum(&[0, 0, 0, 1, 0, 0, 0, 2]), 3);
    assert_eq!(checksum(&[1]), 0x0100_0000);
    assert_eq!(checksum(&[0xFF; 8]), 0xFFFF_FFFE);
}
