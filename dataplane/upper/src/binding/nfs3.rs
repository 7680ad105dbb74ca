//! NFS version 3 (RFC 1813) as RFC 8267 section 4 binds it: the data of READ and WRITE and the
//! paths of READLINK and SYMLINK are DDP-eligible.

use super::shape::Step::{self, Arm2, Opaque, Optional, Success, Words};
use super::{Room, Rule};

/// The NFS program.
pub const PROGRAM: u32 = 100_003;
/// The version this binding is for.
pub const VERSION: u32 = 3;

/// Longest path a READLINK is given room for, in octets. RFC 1813 sets no limit; every client
/// and server in use stops at this one.
pub(super) const PATH_BYTES: u32 = 4096;

// Sizes in octets, each at its largest (RFC 1813 section 2.6).
const STATUS: u32 = 4;
const FILE_HANDLE: u32 = 4 + 64;
const ATTRIBUTES: u32 = 84;
const POST_OP_ATTRIBUTES: u32 = 4 + ATTRIBUTES;
const POST_OP_FILE_HANDLE: u32 = 4 + FILE_HANDLE;
const WCC_DATA: u32 = (4 + 24) + POST_OP_ATTRIBUTES;
const VERIFIER: u32 = 8;

// Steps over parts of arguments and results.
const HANDLE: Step = Opaque(64);
const POST_OP: Step = Optional(ATTRIBUTES / 4);
const OFFSET: Step = Words(2);

const READ_DATA: &[Step] = &[Success, POST_OP, Words(2)];
const READLINK_PATH: &[Step] = &[Success, POST_OP];
const WRITE_DATA: &[Step] = &[HANDLE, OFFSET, Words(2)];
/// `where`, then `sattr3`: mode, uid, gid, size, atime, mtime.
const SYMLINK_PATH: &[Step] = &[
    HANDLE,
    Opaque(u32::MAX),
    Optional(1),
    Optional(1),
    Optional(1),
    Optional(2),
    Arm2(2),
    Arm2(2),
];

const READ_COUNT: &[Step] = &[HANDLE, OFFSET];
/// Cookie and cookie verifier stand before the count.
const READDIR_COUNT: &[Step] = &[HANDLE, Words(4)];
/// So does `dircount`, which leaves the attributes out.
const READDIRPLUS_MAXCOUNT: &[Step] = &[HANDLE, Words(5)];

/// READDIR and READDIRPLUS: `count` covers the whole of the `resok` structure (RFC 1813 section
/// 3.3.16), which an empty directory or a failure may still exceed.
const LEAST_LISTING: u32 = POST_OP_ATTRIBUTES + VERIFIER + 4 + 4;

const CREATED: u32 = STATUS + POST_OP_FILE_HANDLE + POST_OP_ATTRIBUTES + WCC_DATA;

/// What the binding says of each procedure, by number.
pub(super) static RULES: [Rule; 22] = [
    /* NULL        */ Rule::fixed(0),
    /* GETATTR     */ Rule::fixed(STATUS + ATTRIBUTES),
    /* SETATTR     */ Rule::fixed(STATUS + WCC_DATA),
    /* LOOKUP      */ Rule::fixed(STATUS + FILE_HANDLE + 2 * POST_OP_ATTRIBUTES),
    /* ACCESS      */ Rule::fixed(STATUS + POST_OP_ATTRIBUTES + 4),
    /* READLINK    */
    Rule {
        argument: None,
        result: Some(READLINK_PATH),
        room: Room::Item {
            base: STATUS + POST_OP_ATTRIBUTES + 4,
            item: PATH_BYTES,
        },
    },
    /* READ        */
    Rule {
        argument: None,
        result: Some(READ_DATA),
        room: Room::CountedItem {
            base: STATUS + POST_OP_ATTRIBUTES + 12,
            count: READ_COUNT,
        },
    },
    /* WRITE       */
    Rule {
        argument: Some(WRITE_DATA),
        ..Rule::fixed(STATUS + WCC_DATA + 8 + VERIFIER)
    },
    /* CREATE      */ Rule::fixed(CREATED),
    /* MKDIR       */ Rule::fixed(CREATED),
    /* SYMLINK     */
    Rule {
        argument: Some(SYMLINK_PATH),
        ..Rule::fixed(CREATED)
    },
    /* MKNOD       */ Rule::fixed(CREATED),
    /* REMOVE      */ Rule::fixed(STATUS + WCC_DATA),
    /* RMDIR       */ Rule::fixed(STATUS + WCC_DATA),
    /* RENAME      */ Rule::fixed(STATUS + 2 * WCC_DATA),
    /* LINK        */ Rule::fixed(STATUS + POST_OP_ATTRIBUTES + WCC_DATA),
    /* READDIR     */
    Rule::counted(STATUS, LEAST_LISTING, READDIR_COUNT),
    /* READDIRPLUS */
    Rule::counted(STATUS, LEAST_LISTING, READDIRPLUS_MAXCOUNT),
    /* FSSTAT      */ Rule::fixed(STATUS + POST_OP_ATTRIBUTES + 6 * 8 + 4),
    /* FSINFO      */ Rule::fixed(STATUS + POST_OP_ATTRIBUTES + 7 * 4 + 8 + 8 + 4),
    /* PATHCONF    */ Rule::fixed(STATUS + POST_OP_ATTRIBUTES + 6 * 4),
    /* COMMIT      */ Rule::fixed(STATUS + WCC_DATA + VERIFIER),
];
