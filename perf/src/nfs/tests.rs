//! Against encodings made by an independent NFS version 3 implementation.

use super::*;
use nfs3_types::nfs3::*;
use nfs3_types::xdr_codec::{Opaque, Pack, Unpack};

/// A handle whose length is no multiple of four.
const HANDLE: [u8; 27] = [0xA5; 27];

fn work(procedure: Procedure) -> Work {
    Work {
        procedure,
        file: FileHandle::new(&HANDLE).unwrap(),
        user: User { uid: 7, gid: 8 },
    }
}

fn file() -> nfs_fh3 {
    nfs_fh3 {
        data: Opaque::owned(HANDLE.to_vec()),
    }
}

fn packed(value: &impl Pack) -> Vec<u8> {
    let mut octets = Vec::new();
    value.pack(&mut octets).unwrap();
    octets
}

fn arguments(work: Work, lane: u32) -> Vec<u8> {
    work.head(lane)[HEAD_WORDS * 4..].to_vec()
}

/// A regular file, of whose attributes each other number is one.
fn attributes() -> fattr3 {
    let words = [0, 0, 0, 1].repeat(21);
    let (attributes, octets) = fattr3::unpack(&mut words.as_slice()).unwrap();
    assert_eq!(octets, words.len());
    attributes
}

#[test]
fn arguments_are_as_others_encode_them() {
    assert_eq!(arguments(work(Procedure::Null), 0), [0; 0]);
    let getattr = packed(&GETATTR3args { object: file() });
    assert_eq!(arguments(work(Procedure::Getattr), 3), getattr);
    // A lane beyond 2^32 octets.
    let (lane, size) = (5_000, 1 << 20);
    let read = READ3args {
        file: file(),
        offset: u64::from(lane) * u64::from(size),
        count: size,
    };
    let work_read = work(Procedure::Read(size));
    assert_eq!(arguments(work_read, lane), packed(&read));
    assert_eq!(work_read.result_bytes(), Some(size));

    let size = 1001;
    let data = vec![0x5a; size as usize];
    let write = packed(&WRITE3args {
        file: file(),
        offset: 2 * u64::from(size),
        count: size,
        stable: stable_how::UNSTABLE,
        data: Opaque::owned(data),
    });
    let work_write = work(Procedure::Write(size));
    assert_eq!(arguments(work_write, 2), write[..write.len() - 1004]);
    let head = u32::try_from(HEAD_WORDS * 4).unwrap();
    assert_eq!(
        work_write.call_bytes() as usize,
        write.len() + head as usize
    );
    let whole = Span {
        offset: 0,
        len: work_write.call_bytes(),
    };
    let parts = work_write.parts(whole);
    let lengths: Vec<_> = parts.iter().map(|it| (it.span.len, it.item)).collect();
    let before = work_write.call_bytes() - 1004;
    assert_eq!(lengths, [(before, false), (size, true), (3, false)]);
}

#[test]
fn results_are_read_as_others_encode_them() {
    for there in [true, false] {
        let after = match there {
            true => post_op_attr::Some(attributes()),
            false => post_op_attr::None,
        };
        let before = match there {
            true => pre_op_attr::Some(wcc_attr {
                size: 1,
                mtime: nfstime3::default(),
                ctime: nfstime3::default(),
            }),
            false => pre_op_attr::None,
        };
        let read = READ3res::Ok(READ3resok {
            file_attributes: after.clone(),
            count: 512,
            eof: false,
            data: Opaque::owned(vec![1; 512]),
        });
        let octets = packed(&read);
        assert!(work(Procedure::Read(512)).is_right(&octets));
        assert!(!work(Procedure::Read(513)).is_right(&octets), "short");
        let longest = work(Procedure::Read(512)).reply_bytes() - REPLY;
        assert!(octets.len() - 512 <= longest as usize);

        let write = WRITE3res::Ok(WRITE3resok {
            file_wcc: wcc_data { before, after },
            count: 99,
            committed: stable_how::UNSTABLE,
            verf: writeverf3([3; 8]),
        });
        let octets = packed(&write);
        assert!(work(Procedure::Write(99)).is_right(&octets));
        assert!(!work(Procedure::Write(98)).is_right(&octets), "short");
        assert!(octets.len() <= (work(Procedure::Write(99)).reply_bytes() - REPLY) as usize);
    }
    let octets = packed(&GETATTR3res::Ok(GETATTR3resok {
        obj_attributes: attributes(),
    }));
    assert!(work(Procedure::Getattr).is_right(&octets));
    let whole = work(Procedure::Getattr).reply_bytes() - REPLY;
    assert_eq!(octets.len(), whole as usize);
}

#[test]
fn failures_and_fragments_are_not_right() {
    let stale = 70_u32.to_be_bytes();
    for procedure in [Procedure::Getattr, Procedure::Read(1), Procedure::Write(1)] {
        assert!(!work(procedure).is_right(&stale), "{procedure:?}");
        assert!(!work(procedure).is_right(&[]), "{procedure:?}");
    }
    assert!(work(Procedure::Null).is_right(&[]));
    assert!(FileHandle::new(&[0; 65]).is_none());
}
