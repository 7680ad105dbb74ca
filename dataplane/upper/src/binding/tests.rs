//! The bindings against encodings made by an independent NFS version 3 implementation.

use super::*;
use nfs3_types::nfs3::*;
use nfs3_types::xdr_codec::{List, Opaque, Pack};
use proptest::prelude::*;

/// Octets before arguments and results: any RPC header would do, none is looked at.
const HEAD: usize = 28;

fn nfs(procedure: NFS_PROGRAM) -> Binding {
    Binding::of_procedure(nfs3::PROGRAM, nfs3::VERSION, procedure as u32)
}

fn message(body: &impl Pack) -> Vec<u8> {
    let mut octets = vec![0xEE; HEAD];
    body.pack(&mut octets).unwrap();
    octets
}

fn handle(octets: &[u8]) -> nfs_fh3 {
    nfs_fh3 {
        data: Opaque::owned(octets.to_vec()),
    }
}

fn attributes() -> fattr3 {
    fattr3 {
        type_: ftype3::NF3REG,
        mode: 0o644,
        nlink: 1,
        uid: 1,
        gid: 1,
        size: 9,
        used: 9,
        rdev: specdata3::default(),
        fsid: 1,
        fileid: 1,
        atime: nfstime3::default(),
        mtime: nfstime3::default(),
        ctime: nfstime3::default(),
    }
}

fn post_op(there: bool) -> post_op_attr {
    if there {
        Nfs3Option::Some(attributes())
    } else {
        Nfs3Option::None
    }
}

fn wcc() -> wcc_data {
    let before = wcc_attr {
        size: 1,
        mtime: nfstime3::default(),
        ctime: nfstime3::default(),
    };
    wcc_data {
        before: Nfs3Option::Some(before),
        after: post_op(true),
    }
}

/// The one item of a message, as octets.
fn octets<'a>(message: &'a [u8], items: &Items) -> Option<&'a [u8]> {
    let item = items.first()?;
    Some(&message[item.at as usize..][..item.len as usize])
}

fn times() -> impl Strategy<Value = (set_atime, set_mtime)> {
    let time = nfstime3 {
        seconds: 7,
        nseconds: 8,
    };
    let atime = prop_oneof![
        Just(set_atime::DONT_CHANGE),
        Just(set_atime::SET_TO_SERVER_TIME),
        Just(set_atime::SET_TO_CLIENT_TIME(time)),
    ];
    let mtime = prop_oneof![
        Just(set_mtime::DONT_CHANGE),
        Just(set_mtime::SET_TO_SERVER_TIME),
        Just(set_mtime::SET_TO_CLIENT_TIME(time)),
    ];
    (atime, mtime)
}

fn new_attributes() -> impl Strategy<Value = sattr3> {
    let word = || {
        prop_oneof![
            Just(Nfs3Option::None),
            any::<u32>().prop_map(Nfs3Option::Some)
        ]
    };
    let size = prop_oneof![
        Just(Nfs3Option::None),
        any::<u64>().prop_map(Nfs3Option::Some)
    ];
    (word(), word(), word(), size, times()).prop_map(|(mode, uid, gid, size, (atime, mtime))| {
        sattr3 {
            mode,
            uid,
            gid,
            size,
            atime,
            mtime,
        }
    })
}

fn some_octets(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 1..most)
}

proptest! {
    #[test]
    fn write_data_is_found(fh in some_octets(64), data in some_octets(5000), offset: u64) {
        let message = message(&WRITE3args {
            file: handle(&fh),
            offset,
            count: u32::try_from(data.len()).unwrap(),
            stable: stable_how::FILE_SYNC,
            data: Opaque::borrowed(&data),
        });
        let items = nfs(NFS_PROGRAM::NFSPROC3_WRITE).call_items(&message, HEAD);
        prop_assert_eq!(octets(&message, &items), Some(&data[..]));
    }

    #[test]
    fn symlink_path_is_found(
        fh in some_octets(64),
        name in some_octets(255),
        symlink_attributes in new_attributes(),
        path in some_octets(4096),
    ) {
        let message = message(&SYMLINK3args {
            where_: diropargs3 { dir: handle(&fh), name: name.into() },
            symlink: symlinkdata3 { symlink_attributes, symlink_data: path.clone().into() },
        });
        let items = nfs(NFS_PROGRAM::NFSPROC3_SYMLINK).call_items(&message, HEAD);
        prop_assert_eq!(octets(&message, &items), Some(&path[..]));
    }

    #[test]
    fn read_data_is_found_and_its_gap_restored(
        attributes: bool,
        eof: bool,
        data in some_octets(5000),
    ) {
        let message = message(&READ3res::Ok(READ3resok {
            file_attributes: post_op(attributes),
            count: u32::try_from(data.len()).unwrap(),
            eof,
            data: Opaque::borrowed(&data),
        }));
        let read = nfs(NFS_PROGRAM::NFSPROC3_READ);
        let items = read.reply_items(&message, HEAD);
        prop_assert_eq!(octets(&message, &items), Some(&data[..]));
        let reduced = &message[..items[0].at as usize];
        prop_assert_eq!(read.reply_gaps(reduced, HEAD), items);
    }

    #[test]
    fn readlink_path_is_found_and_its_gap_restored(attributes: bool, path in some_octets(4096)) {
        let message = message(&READLINK3res::Ok(READLINK3resok {
            symlink_attributes: post_op(attributes),
            data: path.clone().into(),
        }));
        let readlink = nfs(NFS_PROGRAM::NFSPROC3_READLINK);
        let items = readlink.reply_items(&message, HEAD);
        prop_assert_eq!(octets(&message, &items), Some(&path[..]));
        let reduced = &message[..items[0].at as usize];
        prop_assert_eq!(readlink.reply_gaps(reduced, HEAD), items);
    }

    #[test]
    fn a_failure_has_no_item(attributes: bool) {
        let file_attributes = post_op(attributes);
        let failed = message(&READ3res::Err((nfsstat3::NFS3ERR_IO, READ3resfail { file_attributes })));
        let read = nfs(NFS_PROGRAM::NFSPROC3_READ);
        prop_assert!(read.reply_items(&failed, HEAD).is_empty());
        prop_assert!(read.reply_gaps(&failed, HEAD).is_empty());
    }

    #[test]
    fn counts_size_the_reply(fh in some_octets(64), count in 0..1_u32 << 20, dircount: u32) {
        let read = message(&READ3args { file: handle(&fh), offset: 3, count });
        let expected = nfs(NFS_PROGRAM::NFSPROC3_READ).expected(&read, HEAD);
        prop_assert_eq!(expected.results.as_slice(), &[count]);
        prop_assert_eq!(expected.body, Some(REPLY_HEAD_BYTES + 104));

        let (cookie, cookieverf) = (5, cookieverf3([6; 8]));
        let list = READDIR3args { dir: handle(&fh), cookie, cookieverf, count };
        let expected = nfs(NFS_PROGRAM::NFSPROC3_READDIR).expected(&message(&list), HEAD);
        let listed = (REPLY_HEAD_BYTES + 4 + count.max(104)).next_multiple_of(4);
        prop_assert_eq!(expected.body, Some(listed));
        prop_assert!(expected.results.is_empty());

        let dir = handle(&fh);
        let plus = READDIRPLUS3args { dir, cookie, cookieverf, dircount, maxcount: count };
        let expected = nfs(NFS_PROGRAM::NFSPROC3_READDIRPLUS).expected(&message(&plus), HEAD);
        prop_assert_eq!(expected.body, Some(listed));
    }

    /// Whatever the octets, any item named lies within the message.
    #[test]
    fn arbitrary_octets_are_walked_safely(
        message in proptest::collection::vec(prop_oneof![Just(0), Just(1), any::<u8>()], 0..400),
        procedure in 0..30_u32,
        program in prop_oneof![Just(100_003_u32), Just(100_005), Just(100_227), any::<u32>()],
        at in 0..500_usize,
    ) {
        let binding = Binding::of_procedure(program, 3, procedure);
        for items in [binding.call_items(&message, at), binding.reply_items(&message, at)] {
            for item in items {
                prop_assert!(item.at as usize + item.len as usize <= message.len());
            }
        }
        for gap in binding.reply_gaps(&message, at) {
            prop_assert!(gap.at as usize <= message.len());
        }
        let expected = binding.expected(&message, at);
        prop_assert!(expected.results.len() <= MAX_RESULTS);
    }
}

#[test]
fn every_shorter_message_has_no_item() {
    let data = [7; 13];
    let whole = message(&WRITE3args {
        file: handle(&[1; 32]),
        offset: 0,
        count: 13,
        stable: stable_how::UNSTABLE,
        data: Opaque::borrowed(&data),
    });
    let write = nfs(NFS_PROGRAM::NFSPROC3_WRITE);
    assert_eq!(write.call_items(&whole, HEAD).len(), 1);
    for end in 0..whole.len() {
        assert!(write.call_items(&whole[..end], HEAD).is_empty(), "at {end}");
    }
}

#[test]
fn empty_data_is_nothing_to_place() {
    let nothing = message(&READ3res::Ok(READ3resok {
        file_attributes: post_op(true),
        count: 0,
        eof: true,
        data: Opaque::borrowed(&[]),
    }));
    let read = nfs(NFS_PROGRAM::NFSPROC3_READ);
    assert!(read.reply_items(&nothing, HEAD).is_empty());
    assert!(read.reply_gaps(&nothing, HEAD).is_empty());
}

#[test]
fn the_largest_results_just_fit() {
    let fh = || handle(&[1; 64]);
    let some_fh = || Nfs3Option::Some(fh());
    let verf = writeverf3([0; 8]);
    let at = nfstime3::default();
    let largest: [(NFS_PROGRAM, usize); 12] = [
        (
            NFS_PROGRAM::NFSPROC3_GETATTR,
            GETATTR3res::Ok(GETATTR3resok {
                obj_attributes: attributes(),
            })
            .packed_size(),
        ),
        (
            NFS_PROGRAM::NFSPROC3_SETATTR,
            SETATTR3res::Ok(SETATTR3resok { obj_wcc: wcc() }).packed_size(),
        ),
        (
            NFS_PROGRAM::NFSPROC3_LOOKUP,
            LOOKUP3res::Ok(LOOKUP3resok {
                object: fh(),
                obj_attributes: post_op(true),
                dir_attributes: post_op(true),
            })
            .packed_size(),
        ),
        (
            NFS_PROGRAM::NFSPROC3_ACCESS,
            ACCESS3res::Ok(ACCESS3resok {
                obj_attributes: post_op(true),
                access: 1,
            })
            .packed_size(),
        ),
        (
            NFS_PROGRAM::NFSPROC3_WRITE,
            WRITE3res::Ok(WRITE3resok {
                file_wcc: wcc(),
                count: 1,
                committed: stable_how::FILE_SYNC,
                verf,
            })
            .packed_size(),
        ),
        (
            NFS_PROGRAM::NFSPROC3_CREATE,
            CREATE3res::Ok(CREATE3resok {
                obj: some_fh(),
                obj_attributes: post_op(true),
                dir_wcc: wcc(),
            })
            .packed_size(),
        ),
        (
            NFS_PROGRAM::NFSPROC3_RENAME,
            RENAME3res::Ok(RENAME3resok {
                fromdir_wcc: wcc(),
                todir_wcc: wcc(),
            })
            .packed_size(),
        ),
        (
            NFS_PROGRAM::NFSPROC3_LINK,
            LINK3res::Ok(LINK3resok {
                file_attributes: post_op(true),
                linkdir_wcc: wcc(),
            })
            .packed_size(),
        ),
        (
            NFS_PROGRAM::NFSPROC3_FSSTAT,
            FSSTAT3res::Ok(FSSTAT3resok {
                obj_attributes: post_op(true),
                tbytes: 0,
                fbytes: 0,
                abytes: 0,
                tfiles: 0,
                ffiles: 0,
                afiles: 0,
                invarsec: 0,
            })
            .packed_size(),
        ),
        (
            NFS_PROGRAM::NFSPROC3_FSINFO,
            FSINFO3res::Ok(FSINFO3resok {
                obj_attributes: post_op(true),
                rtmax: 0,
                rtpref: 0,
                rtmult: 0,
                wtmax: 0,
                wtpref: 0,
                wtmult: 0,
                dtpref: 0,
                maxfilesize: 0,
                time_delta: at,
                properties: 0,
            })
            .packed_size(),
        ),
        (
            NFS_PROGRAM::NFSPROC3_PATHCONF,
            PATHCONF3res::Ok(PATHCONF3resok {
                obj_attributes: post_op(true),
                linkmax: 0,
                name_max: 0,
                no_trunc: true,
                chown_restricted: true,
                case_insensitive: false,
                case_preserving: true,
            })
            .packed_size(),
        ),
        (
            NFS_PROGRAM::NFSPROC3_COMMIT,
            COMMIT3res::Ok(COMMIT3resok {
                file_wcc: wcc(),
                verf,
            })
            .packed_size(),
        ),
    ];
    for (procedure, size) in largest {
        let expected = nfs(procedure).expected(&[], 0);
        let size = u32::try_from(size).unwrap();
        assert_eq!(expected.body, Some(REPLY_HEAD_BYTES + size), "{procedure}");
    }
}

#[test]
fn the_shortest_listing_fits_a_count_of_zero() {
    let empty = READDIR3res::Ok(READDIR3resok {
        dir_attributes: post_op(true),
        cookieverf: cookieverf3([0; 8]),
        reply: dirlist3 {
            entries: List::default(),
            eof: true,
        },
    });
    let args = READDIR3args {
        dir: handle(&[1; 8]),
        cookie: 0,
        cookieverf: cookieverf3([0; 8]),
        count: 0,
    };
    let expected = nfs(NFS_PROGRAM::NFSPROC3_READDIR).expected(&message(&args), HEAD);
    let size = u32::try_from(empty.packed_size()).unwrap();
    assert_eq!(expected.body, Some(REPLY_HEAD_BYTES + size));
}

#[test]
fn the_head_of_a_call_is_enough_to_size_its_reply() {
    let args = READDIRPLUS3args {
        dir: handle(&[1; 64]),
        cookie: 0,
        cookieverf: cookieverf3([0; 8]),
        dircount: 1,
        maxcount: 2,
    };
    let rpc_header = 6 * 4 + 2 * (8 + 400);
    assert!(rpc_header + args.packed_size() <= CALL_HEAD_BYTES as usize);
}

#[test]
fn programs_without_a_binding_have_no_bound() {
    for binding in [
        Binding::NONE,
        Binding::of_procedure(100_003, 4, 1),
        Binding::of_procedure(100_003, 3, 22),
        Binding::of_procedure(100_021, 4, 1),
        Binding::of_procedure(100_005, 3, 5),
    ] {
        let expected = binding.expected(&[0; 200], HEAD);
        assert_eq!((expected.body, expected.results.len()), (None, 0));
        assert!(binding.call_items(&[0; 200], HEAD).is_empty());
        assert!(binding.reply_items(&[0; 200], HEAD).is_empty());
    }
}

#[test]
fn access_lists_and_mounts_are_sized() {
    let getacl = Binding::of_procedure(100_227, 3, 1).expected(&[], 0);
    assert_eq!(
        getacl.body,
        Some(REPLY_HEAD_BYTES + 4 + 88 + 4 + 2 * (8 + 12 * 1024))
    );
    let mnt = Binding::of_procedure(100_005, 3, 1).expected(&[], 0);
    assert_eq!(mnt.body, Some(REPLY_HEAD_BYTES + 4 + 68 + 4 + 256));
}
